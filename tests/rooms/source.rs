//! Sources as the rules see them: lines without comments, and who names whom.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Where a rule is broken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) sentence: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.sentence)
    }
}

/// A source file: its path below `src`, and its lines without comments.
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) lines: Vec<String>,
}

/// One module's use of another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Use {
    pub(crate) line: usize,
    pub(crate) of: String,
}

/// Module name to rank, as the map has it.
pub(crate) type Ranks = BTreeMap<String, u8>;

/// The ranks in the table of the crate's documentation: rows `| 3 | [`body`] | ... |`.
pub(crate) fn map(library: &str) -> Result<Ranks, String> {
    let mut ranks = Ranks::new();
    for line in library
        .lines()
        .filter_map(|line| line.strip_prefix("//! | "))
    {
        let Some((rank, row)) = line.split_once(" | ") else {
            continue;
        };
        let Ok(rank) = rank.parse() else { continue };
        for name in row
            .split("[`")
            .skip(1)
            .filter_map(|rest| rest.split('`').next())
        {
            if ranks.insert(name.to_owned(), rank).is_some() {
                return Err(format!("src/lib.rs: {name} is twice in the map"));
            }
        }
    }
    if ranks.is_empty() {
        Err("src/lib.rs: no map".to_owned())
    } else {
        Ok(ranks)
    }
}

/// Whether a path or name stands in the text, not as a part of a longer word.
pub(crate) fn holds_word(text: &str, word: &str) -> bool {
    let inside = |char: char| char.is_alphanumeric() || char == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(inside) && (word.ends_with('!') || !after.starts_with(inside))
    })
}

impl Source {
    pub(crate) fn new(file: &str, text: &str) -> Self {
        let lines = text.lines().map(|line| match line.find("//") {
            // A URL in a string is no comment.
            Some(at) if !line[..at].ends_with(':') => line[..at].to_owned(),
            _ => line.to_owned(),
        });
        Self {
            file: file.to_owned(),
            lines: lines.collect(),
        }
    }

    pub(crate) fn fault(&self, line: usize, sentence: String) -> Fault {
        Fault {
            file: self.file.clone(),
            line,
            sentence,
        }
    }

    /// The module of the crate that it belongs to; none for the crate itself.
    pub(crate) fn module(&self) -> Option<&str> {
        let below = self.file.strip_prefix("src/")?;
        let module = below.split('/').next()?.trim_end_matches(".rs");
        (!matches!(module, "lib" | "main")).then_some(module)
    }

    /// Every mention of a module of the map: `crate::x`, in a group or alone, and `super::x` where
    /// that leaves the module.
    pub(crate) fn uses(&self, ranks: &Ranks) -> Vec<Use> {
        let text = self.lines.join("\n");
        let mut uses = Vec::new();
        for root in ["crate::".to_owned(), self.way_out()] {
            for (at, _) in text.match_indices(&root) {
                if text[..at].ends_with(|char: char| char.is_alphanumeric() || ":_$".contains(char))
                {
                    continue;
                }
                let line = text[..at].matches('\n').count() + 1;
                for (below, name) in heads(&text[at + root.len()..]) {
                    if ranks.contains_key(name) {
                        uses.push(Use {
                            line: line + below,
                            of: name.to_owned(),
                        });
                    }
                }
            }
        }
        uses
    }

    /// The `super::super::` that leads from this file to the crate.
    fn way_out(&self) -> String {
        let folders = self.file.matches('/').count();
        let depth = if self.file.ends_with("/mod.rs") {
            folders - 1
        } else {
            folders
        };
        "super::".repeat(depth.max(1))
    }
}

/// The first names of the paths that follow: `x`, or each of `{x::y, z}`; with lines further down.
pub(crate) fn heads(rest: &str) -> Vec<(usize, &str)> {
    let name = |text: &'_ str| {
        let end = text.find(|char: char| !char.is_alphanumeric() && char != '_');
        end.unwrap_or(text.len())
    };
    if !rest.starts_with('{') {
        return vec![(0, &rest[..name(rest)])];
    }
    let (mut depth, mut heads, mut due) = (0, Vec::new(), false);
    for (at, char) in rest.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => due = true,
            _ if due && !char.is_whitespace() => {
                heads.push((
                    rest[..at].matches('\n').count(),
                    &rest[at..at + name(&rest[at..])],
                ));
                due = false;
            }
            _ => {}
        }
        due |= char == '{' && depth == 1;
        if depth == 0 {
            break;
        }
    }
    heads
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

pub(crate) fn sources() -> Vec<Source> {
    let files = rust_files("src");
    files
        .iter()
        .map(|file| Source::new(file, &read(file)))
        .collect()
}

/// All .rs files below a folder, sorted, as paths from the root.
pub(crate) fn rust_files(folder: &str) -> Vec<String> {
    let (mut files, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path: PathBuf = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(root()).expect("a path below the root");
                files.push(below.to_string_lossy().into_owned());
            }
        }
    }
    files.sort();
    files
}
