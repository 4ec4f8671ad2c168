//! The file as a tree whose every node knows where it stands.
//!
//! YAML 1.2 with anchors, aliases and merge keys (`<<`); tags, keys that are not words and a second
//! document are refused. It never says what a key means, and it is bounded: neither deep nesting nor
//! aliases of aliases can exhaust the process.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::fault::Finding;

/// Deeper than any configuration; keeps recursion over the tree harmless.
const MAX_DEPTH: usize = 32;
/// Nodes that a file may come to once its aliases are expanded.
const MAX_NODES: usize = 100_000;

/// Where something stands, both counted from 1; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Position {
    pub(super) const START: Self = Self { line: 1, column: 1 };
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: Position,
    pub(super) value: Value,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    /// Nothing written, `~` or `null`.
    Null,
    /// As written, without its quotes.
    Text {
        text: String,
        quoted: bool,
    },
    List(Vec<Node>),
    /// In file order; a key that is there twice is still there twice.
    Map(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) at: Position,
    pub(super) node: Node,
}

/// The one document in `text`; `None` where there is nothing but comments.
///
/// Broken YAML has no meaning beyond the place where it breaks, so the first fault is the only one.
pub(super) fn parse(text: &str) -> Result<Option<Node>, Finding> {
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        match event {
            Ok((event, span)) => builder.take(event, span)?,
            Err(error) => {
                let marker = error.marker();
                let at = Position {
                    line: marker.line(),
                    column: marker.col() + 1,
                };
                return Err(builder.refuse(at, format!("not YAML from here on: {}", error.info())));
            }
        }
    }
    Ok(builder.root)
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    documents: usize,
    root: Option<Node>,
}

/// A list or mapping that has begun and not ended.
struct Open {
    at: Position,
    anchor: usize,
    items: Items,
}

enum Items {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        key: Option<(String, Position)>,
    },
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Finding> {
        let at = Position {
            line: span.start.line(),
            column: span.start.col() + 1,
        };
        if let Event::Scalar(_, _, _, Some(tag))
        | Event::SequenceStart(_, Some(tag))
        | Event::MappingStart(_, Some(tag)) = &event
        {
            let what = format!("the tag {tag} means nothing here, write the value without it");
            return Err(self.refuse(at, what));
        }
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let quoted = style != ScalarStyle::Plain;
                let value = match &*text {
                    "" | "~" | "null" | "Null" | "NULL" if !quoted => Value::Null,
                    _ => Value::Text {
                        text: text.into_owned(),
                        quoted,
                    },
                };
                self.place(
                    Node {
                        at: self.seen_at(at, &value),
                        value,
                    },
                    anchor,
                )
            }
            Event::Alias(anchor) => self.alias(anchor, at),
            Event::SequenceStart(anchor, _) => self.begin(at, anchor, Items::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.begin(
                at,
                anchor,
                Items::Map {
                    entries: Vec::new(),
                    key: None,
                },
            ),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents == 1 {
                    return Ok(());
                }
                let what = "a second document begins here, a configuration is one document";
                Err(self.refuse(at, what.to_owned()))
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    /// Nothing stands nowhere: the parser reports the next token, the reader looks at the key.
    fn seen_at(&self, at: Position, value: &Value) -> Position {
        match (value, self.open.last()) {
            (
                Value::Null,
                Some(Open {
                    items:
                        Items::Map {
                            key: Some((_, key)),
                            ..
                        },
                    ..
                }),
            ) => *key,
            _ => at,
        }
    }

    fn alias(&mut self, anchor: usize, at: Position) -> Result<(), Finding> {
        let Some(node) = self.anchors.get(&anchor) else {
            let what = "an alias inside of what it stands for, write the value out";
            return Err(self.refuse(at, what.to_owned()));
        };
        let value = node.value.clone();
        self.nodes += value.size();
        self.place(Node { at, value }, 0)
    }

    fn begin(&mut self, at: Position, anchor: usize, items: Items) -> Result<(), Finding> {
        if self.open.len() == MAX_DEPTH {
            let what = format!("nested deeper than {MAX_DEPTH} levels, no key lies so deep");
            return Err(self.refuse(at, what));
        }
        self.open.push(Open { at, anchor, items });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Finding> {
        let Some(Open { at, anchor, items }) = self.open.pop() else {
            return Ok(());
        };
        let value = match items {
            Items::List(items) => Value::List(items),
            Items::Map { entries, .. } => Value::Map(self.merge(entries)?),
        };
        self.place(Node { at, value }, anchor)
    }

    /// A finished node goes to the place that waits for it.
    fn place(&mut self, node: Node, anchor: usize) -> Result<(), Finding> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let what = format!("aliases expand to more than {MAX_NODES} values, write fewer");
            return Err(self.refuse(node.at, what));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.root = Some(node),
            Some(Items::List(items)) => items.push(node),
            Some(Items::Map { entries, key }) => match (key.take(), node) {
                (Some((key, at)), node) => entries.push(Entry { key, at, node }),
                (
                    None,
                    Node {
                        at,
                        value: Value::Text { text, .. },
                    },
                ) => *key = Some((text, at)),
                (None, Node { at, .. }) => {
                    return Err(
                        self.refuse(at, "a key has to be a word, write `key: value`".into())
                    );
                }
            },
        }
        Ok(())
    }

    /// `<<: *other` adds the entries of another mapping that this one does not have itself.
    fn merge(&self, entries: Vec<Entry>) -> Result<Vec<Entry>, Finding> {
        let (merges, mut own): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.key == "<<");
        for Entry { node, .. } in merges {
            let sources = match node.value {
                Value::List(sources) => sources,
                value => vec![Node { at: node.at, value }],
            };
            for source in sources {
                let Value::Map(more) = source.value else {
                    let what = "`<<` takes a mapping, write `<<: *anchor`";
                    return Err(self.refuse(source.at, what.to_owned()));
                };
                for entry in more {
                    if own.iter().all(|mine| mine.key != entry.key) {
                        own.push(entry);
                    }
                }
            }
        }
        Ok(own)
    }

    /// A fault within what is open right now.
    fn refuse(&self, at: Position, what: String) -> Finding {
        let mut path = String::new();
        for open in &self.open {
            match &open.items {
                Items::List(items) => path.push_str(&format!("[{}]", items.len())),
                Items::Map {
                    key: Some((key, _)),
                    ..
                } => super::section::descend(&mut path, key),
                Items::Map { key: None, .. } => {}
            }
        }
        Finding::fault(at, path, what)
    }
}

impl Value {
    pub(super) fn is_empty_list(&self) -> bool {
        matches!(self, Self::List(items) if items.is_empty())
    }

    /// Nodes below and including this one.
    fn size(&self) -> usize {
        match self {
            Self::Null | Self::Text { .. } => 1,
            Self::List(items) => 1 + items.iter().map(|node| node.value.size()).sum::<usize>(),
            Self::Map(entries) => {
                1 + entries
                    .iter()
                    .map(|entry| entry.node.value.size())
                    .sum::<usize>()
            }
        }
    }
}
