//! A mapping of the file while it is being read.
//!
//! Each key is stated once: its name, its kind, its default and what it means. Reading collects the
//! faults instead of stopping at them, reports keys that nobody asked for, and can equally well run
//! without a file to draw the JSON schema of everything it asks for. So a reader must ask the same
//! keys whatever the values are.

mod lookup;
mod within;

use std::path::Path;

use serde_json::Value as Json;

use super::fault::Finding;
use super::kind::Kind;
use super::picture::Picture;
use super::tree::{Entry, Node, Position, Value};

const EMPTY: &str = "it is empty, it needs at least one";

/// A mapping that is being read; an absent one has no entries.
pub(super) struct Section<'a> {
    /// Directory that relative file names start from.
    pub(super) base_dir: &'a Path,
    path: String,
    /// Where it is named: what is missing in it is missing there.
    at: Position,
    entries: &'a [Entry],
    known: Vec<&'static str>,
    findings: Vec<Finding>,
    /// Only while there is no file and the schema is drawn.
    picture: Option<Picture>,
}

/// Reads a whole file.
pub(super) fn read<R>(
    root: &Node,
    base_dir: &Path,
    reader: impl FnOnce(&mut Section<'_>) -> R,
) -> (R, Vec<Finding>) {
    let mut section = Section {
        base_dir,
        path: String::new(),
        at: root.at,
        entries: &[],
        known: Vec::new(),
        findings: Vec::new(),
        picture: None,
    };
    let result = section.fill(Some(root), reader);
    (result, section.findings)
}

/// Draws what a reader asks for.
pub(super) fn draw<R>(reader: impl FnOnce(&mut Section<'_>) -> R) -> Json {
    let mut section = Section {
        base_dir: Path::new(""),
        path: String::new(),
        at: Position::START,
        entries: &[],
        known: Vec::new(),
        findings: Vec::new(),
        picture: Some(Picture::default()),
    };
    reader(&mut section);
    section.picture.map_or(Json::Null, Picture::finish)
}

/// Appends a key to a path.
pub(super) fn descend(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

impl Section<'_> {
    /// The value of a key that may be absent, and then has its default.
    pub(super) fn key<K: Kind>(
        &mut self,
        name: &'static str,
        kind: &K,
        default: K::Value,
        about: &str,
    ) -> K::Value {
        if let Some(picture) = &mut self.picture {
            picture.with_default(name, kind.schema(), &kind.show(&default), about);
        }
        self.value(name, kind).unwrap_or(default)
    }

    /// The value of a key that may be absent, and then means nothing.
    pub(super) fn optional<K: Kind>(
        &mut self,
        name: &'static str,
        kind: &K,
        about: &str,
    ) -> Option<K::Value> {
        if let Some(picture) = &mut self.picture {
            picture.property(name, kind.schema(), about);
        }
        self.value(name, kind)
    }

    /// The value of a key that has to be there; `None` is a fault that has been noted.
    pub(super) fn required<K: Kind>(
        &mut self,
        name: &'static str,
        kind: &K,
        about: &str,
    ) -> Option<K::Value> {
        self.require(name, about);
        self.optional(name, kind, about)
    }

    /// A list of values; where it is absent the default stands. No value may be there twice.
    pub(super) fn list<K: Kind>(
        &mut self,
        name: &'static str,
        kind: &K,
        default: &[K::Value],
        about: &str,
    ) -> Vec<K::Value> {
        if let Some(picture) = &mut self.picture {
            let shown = default.iter().map(|value| kind.show(value)).collect();
            picture.list(name, &kind.schema(), &shown, about);
        }
        let Some(nodes) = self.nodes(name) else {
            return default.to_vec();
        };
        let mut values = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            match kind.read(node) {
                Ok(value) if values.contains(&value) => {
                    self.fault_at(
                        node.at,
                        &[name],
                        Some(index),
                        "it is listed already, remove it",
                    );
                }
                Ok(value) => values.push(value),
                Err(what) => self.fault_at(node.at, &[name], Some(index), &what),
            }
        }
        values
    }

    /// A list that has to be there, with at least one value.
    pub(super) fn required_list<K: Kind>(
        &mut self,
        name: &'static str,
        kind: &K,
        about: &str,
    ) -> Vec<K::Value> {
        self.require(name, about);
        if matches!(self.find(name), Some(Entry { node, .. }) if node.value.is_empty_list()) {
            self.fault(name, EMPTY);
        }
        self.list(name, kind, &[], about)
    }

    /// A mapping of values whose keys are values too; its entries are merged over those of `base`.
    pub(super) fn map<K: Kind, V: Kind>(
        &mut self,
        name: &'static str,
        (keys, values): (&K, &V),
        base: &[(K::Value, V::Value)],
        about: &str,
    ) -> Vec<(K::Value, V::Value)> {
        if let Some(picture) = &mut self.picture {
            picture.map(name, &keys.schema(), values.schema(), about);
        }
        let mut merged = base.to_vec();
        let mut written = Vec::new();
        for entry in self.entries_of(name).unwrap_or_default() {
            let Some(key) = self.key_of(name, entry, keys) else {
                continue;
            };
            if written.contains(&key) {
                let what = "it is written already, remove one of the two";
                self.fault_at(entry.at, &[name, &entry.key], None, what);
                continue;
            }
            written.push(key.clone());
            match values.read(&entry.node) {
                Ok(value) => {
                    merged.retain(|(other, _)| *other != key);
                    merged.push((key, value));
                }
                Err(what) => self.fault_at(entry.node.at, &[name, &entry.key], None, &what),
            }
        }
        merged
    }

    /// The key of an entry, read as a value.
    fn key_of<K: Kind>(&mut self, name: &str, entry: &Entry, kind: &K) -> Option<K::Value> {
        let text = entry.key.clone();
        let node = Node {
            at: entry.at,
            value: Value::Text { text, quoted: true },
        };
        kind.read(&node)
            .map_err(|what| self.fault_at(entry.at, &[name, &entry.key], None, &what))
            .ok()
    }
}
