//! What stands where in a section, and what is wrong with it.

use super::{Section, descend};
use crate::config::fault::Finding;
use crate::config::kind::{Kind, misfit};
use crate::config::tree::{Entry, Node, Position, Value};

impl<'a> Section<'a> {
    /// Whether a key is written here.
    pub(in crate::config) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// A fault of the value of a key that is written, else of the section.
    pub(in crate::config) fn fault(&mut self, name: &str, what: &str) {
        self.fault_at(self.position(name), &[name], None, what);
    }

    /// A fault of one element of a list.
    pub(in crate::config) fn fault_in(&mut self, name: &str, index: usize, what: &str) {
        let at = match self.find(name).map(|entry| &entry.node.value) {
            Some(Value::List(nodes)) => nodes.get(index).map(|node| node.at),
            _ => None,
        };
        self.fault_at(
            at.unwrap_or_else(|| self.position(name)),
            &[name],
            Some(index),
            what,
        );
    }

    /// A fault of the section as a whole.
    pub(in crate::config) fn fault_here(&mut self, what: &str) {
        self.fault_at(self.at, &[], None, what);
    }

    /// What works, but not as written.
    pub(in crate::config) fn warn(&mut self, name: &str, what: &str) {
        let path = self.path_of(&[name]);
        self.findings
            .push(Finding::warning(self.position(name), path, what));
    }

    /// Reads the entries of a mapping; nothing at all is an empty one.
    pub(super) fn fill<R>(
        &mut self,
        node: Option<&'a Node>,
        reader: impl FnOnce(&mut Self) -> R,
    ) -> R {
        match node.map(|node| (node, &node.value)) {
            None | Some((_, Value::Null)) => {}
            Some((_, Value::Map(entries))) => self.entries = entries,
            Some((node, _)) => {
                let what = misfit(node, "keys and values, such as `key: value`");
                self.fault_at(node.at, &[], None, &what);
                let result = reader(self);
                // What is missing in a mapping that is not there would only distract.
                self.findings.truncate(1);
                return result;
            }
        }
        self.refuse_duplicates(self.entries, &[]);
        let result = reader(self);
        self.refuse_unknown();
        result
    }

    pub(super) fn refuse_duplicates(&mut self, entries: &[Entry], below: &[&str]) {
        for (index, entry) in entries.iter().enumerate() {
            if let Some(first) = entries[..index].iter().find(|first| first.key == entry.key) {
                let line = first.at.line;
                let what = format!("it stands in line {line} already, remove one of the two");
                self.fault_at(entry.at, &[below, &[&entry.key]].concat(), None, &what);
            }
        }
    }

    pub(super) fn refuse_unknown(&mut self) {
        for entry in self.entries {
            if !self.known.contains(&entry.key.as_str()) {
                let what = unknown(&entry.key, &self.known);
                self.fault_at(entry.at, &[&entry.key], None, &what);
            }
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<&'a Entry> {
        self.entries.iter().find(|entry| entry.key == name)
    }

    pub(super) fn ask(&mut self, name: &'static str) -> Option<&'a Entry> {
        self.known.push(name);
        self.find(name)
    }

    pub(super) fn value<K: Kind>(&mut self, name: &'static str, kind: &K) -> Option<K::Value> {
        let entry = self.ask(name)?;
        kind.read(&entry.node)
            .map_err(|what| self.fault(name, &what))
            .ok()
    }

    /// The nodes of a list; anything else is noted and read as absent.
    pub(super) fn nodes(&mut self, name: &'static str) -> Option<&'a [Node]> {
        let entry = self.ask(name)?;
        if let Value::List(nodes) = &entry.node.value {
            return Some(nodes);
        }
        let hint = match &entry.node.value {
            Value::Text { text, .. } => format!("a list such as [{text}]"),
            _ => "a list".to_owned(),
        };
        self.fault(name, &misfit(&entry.node, hint));
        None
    }

    /// The entries of a mapping; anything else is noted and read as absent.
    pub(super) fn entries_of(&mut self, name: &'static str) -> Option<&'a [Entry]> {
        let node = &self.ask(name)?.node;
        match &node.value {
            Value::Map(entries) => Some(entries),
            Value::Null => Some(&[]),
            Value::Text { .. } | Value::List(_) => {
                let what = misfit(node, "names and values, such as `name: value`");
                self.fault(name, &what);
                None
            }
        }
    }

    pub(super) fn require(&mut self, name: &'static str, about: &str) {
        if let Some(picture) = &mut self.picture {
            picture.require(name);
        } else if !self.has(name) {
            self.fault(name, &format!("it is missing: {about}"));
        }
    }

    pub(super) fn position(&self, name: &str) -> Position {
        self.find(name)
            .map_or(self.at, |entry| match entry.node.value {
                // A block mapping or list begins lines below; its key says which one it is.
                Value::Map(_) | Value::List(_) => entry.at,
                _ => entry.node.at,
            })
    }

    pub(super) fn path_of(&self, keys: &[&str]) -> String {
        let mut path = self.path.clone();
        for key in keys {
            descend(&mut path, key);
        }
        path
    }

    pub(super) fn fault_at(
        &mut self,
        at: Position,
        keys: &[&str],
        index: Option<usize>,
        what: &str,
    ) {
        let mut path = self.path_of(keys);
        if let Some(index) = index {
            path.push_str(&format!("[{index}]"));
        }
        self.findings
            .push(Finding::fault(at, path, what.to_owned()));
    }
}

/// The nearest key that is known here, or all of them.
fn unknown(key: &str, known: &[&'static str]) -> String {
    let distance = |name: &&&str| strsim::damerau_levenshtein(name, key);
    match known.iter().min_by_key(distance) {
        Some(nearest) if distance(&nearest) <= 1 + key.len() / 4 => {
            format!("this key is unknown, did you mean {nearest}?")
        }
        _ => format!("this key is unknown, known here are {}", known.join(", ")),
    }
}
