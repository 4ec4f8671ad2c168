//! Sections within sections: mappings, lists of mappings, mappings of mappings.

use serde_json::Value as Json;

use super::{EMPTY, Section, descend};
use crate::config::kind::NAME;
use crate::config::picture::Picture;
use crate::config::tree::{Entry, Node, Position};

impl<'a> Section<'a> {
    /// A mapping that is read in any case: absent, all of its keys are.
    pub(in crate::config) fn section<R>(
        &mut self,
        name: &'static str,
        about: &str,
        reader: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let node = self.ask(name).map(|entry| &entry.node);
        let at = self.position(name);
        let mut path = self.path.clone();
        descend(&mut path, name);
        let (result, picture) = self.within(path, at, node, reader);
        self.drawn(picture, |outer, inner| outer.property(name, inner, about));
        result
    }

    /// A mapping that means nothing where it is absent.
    pub(in crate::config) fn optional_section<R>(
        &mut self,
        name: &'static str,
        about: &str,
        reader: impl FnOnce(&mut Self) -> Option<R>,
    ) -> Option<R> {
        let there = self.has(name);
        let result = if there || self.picture.is_some() {
            self.section(name, about, reader)
        } else {
            self.ask(name);
            None
        };
        result.filter(|_| there)
    }

    /// A list of mappings, at least one.
    pub(in crate::config) fn sections<R>(
        &mut self,
        name: &'static str,
        about: &str,
        mut reader: impl FnMut(&mut Self) -> R,
    ) -> Vec<R> {
        self.require(name, about);
        let nodes = self.nodes(name);
        if nodes.is_some_and(<[Node]>::is_empty) {
            self.fault(name, EMPTY);
        }
        let mut results = Vec::new();
        for (index, node) in nodes.unwrap_or_default().iter().enumerate() {
            let path = format!("{}[{index}]", self.path_of(&[name]));
            results.push(self.within(path, node.at, Some(node), &mut reader).0);
        }
        if self.picture.is_some() {
            let picture = self.within(String::new(), self.at, None, reader).1;
            self.drawn(picture, |outer, inner| outer.list_of(name, &inner, about));
        }
        results
    }

    /// A mapping of names to mappings, at least one.
    pub(in crate::config) fn named<R>(
        &mut self,
        name: &'static str,
        about: &str,
        mut reader: impl FnMut(&str, &mut Self) -> R,
    ) -> Vec<(String, R)> {
        self.require(name, about);
        let entries = self.entries_of(name);
        if entries.is_some_and(<[Entry]>::is_empty) {
            self.fault(name, EMPTY);
        }
        let entries = entries.unwrap_or_default();
        self.refuse_duplicates(entries, &[name]);
        let mut results = Vec::new();
        for entry in entries {
            self.key_of(name, entry, &NAME);
            let path = self.path_of(&[name, &entry.key]);
            let read = |section: &mut Self| reader(&entry.key, section);
            let result = self.within(path, entry.at, Some(&entry.node), read).0;
            results.push((entry.key.clone(), result));
        }
        if self.picture.is_some() {
            let picture = self
                .within(String::new(), self.at, None, |s| reader("", s))
                .1;
            self.drawn(picture, |outer, inner| outer.map_of(name, &inner, about));
        }
        results
    }

    /// The keys that `reader` asks for look as they do in `elsewhere`, a key of the file.
    pub(in crate::config) fn alike<R>(
        &mut self,
        elsewhere: &'static str,
        reader: impl FnOnce(&mut Self) -> R,
    ) -> R {
        if let Some(picture) = &mut self.picture {
            picture.refer(Some(elsewhere));
        }
        let result = reader(self);
        if let Some(picture) = &mut self.picture {
            picture.refer(None);
        }
        result
    }

    fn within<R>(
        &mut self,
        path: String,
        at: Position,
        node: Option<&'a Node>,
        reader: impl FnOnce(&mut Self) -> R,
    ) -> (R, Option<Picture>) {
        let mut inner = Section {
            base_dir: self.base_dir,
            path,
            at,
            entries: &[],
            known: Vec::new(),
            findings: Vec::new(),
            picture: self.picture.as_ref().map(|_| Picture::default()),
        };
        let result = inner.fill(node, reader);
        self.findings.append(&mut inner.findings);
        (result, inner.picture)
    }

    fn drawn(&mut self, inner: Option<Picture>, add: impl FnOnce(&mut Picture, Json)) {
        if let (Some(outer), Some(inner)) = (&mut self.picture, inner) {
            add(outer, inner.finish());
        }
    }
}
