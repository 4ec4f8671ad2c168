//! What is wrong with a file, said so that it can be put right without a manual.
//!
//! Never shows a secret: the lines of a token or of a password's URL are printed without them.

use std::fmt;

use super::tree::Position;

/// Every fault of a file, in the order of the lines.
///
/// Displayed as `FILE:LINE:COLUMN: key.path[0].name: what is wrong, what would be right`, each
/// followed by the offending line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Faults(Vec<Fault>);

/// One thing that keeps a file from being a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// As it was given to [`load`](super::load).
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters; between the key and the end of its line.
    pub column: usize,
    /// `key.path[0].name`; empty for the file as a whole.
    pub path: String,
    /// What is wrong, and what would be right.
    pub what: String,
    /// The line itself, without secrets.
    pub source: String,
}

impl Faults {
    /// Never empty.
    #[must_use]
    pub fn list(&self) -> &[Fault] {
        &self.0
    }

    /// A fault of a file that has no text to point into.
    pub(super) fn of_file(file: &str, what: String) -> Self {
        Self::found(
            file,
            "",
            vec![Finding::fault(Position::START, String::new(), what)],
        )
    }

    /// A file whose bytes are text only up to `valid`.
    pub(super) fn not_utf8(file: &str, bytes: &[u8], valid: usize) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let before = String::from_utf8_lossy(&bytes[..valid]);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        let what = format!("byte {valid} of the file is not UTF-8, save the file as UTF-8");
        let at = Position { line, column };
        Self::found(file, &text, vec![Finding::fault(at, String::new(), what)])
    }

    /// What was found in `text`.
    pub(super) fn found(file: &str, text: &str, findings: Vec<Finding>) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let located = |finding: Finding| Fault {
            file: file.to_owned(),
            line: finding.at.line,
            column: finding.at.column,
            path: finding.path,
            what: finding.what,
            source: lines
                .get(finding.at.line - 1)
                .map_or_else(String::new, |line| masked(line)),
        };
        Self(findings.into_iter().map(located).collect())
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&located(
            &self.file,
            self.line,
            self.column,
            &self.path,
            &self.what,
        ))?;
        if self.source.trim().is_empty() {
            return Ok(());
        }
        write!(f, "\n    {}", self.source)?;
        // Behind what was masked nothing stands where it stood.
        match self.source.find(MASK) {
            Some(masked) if self.column > masked + 1 => Ok(()),
            _ => write!(f, "\n    {:>1$}", "^", self.column),
        }
    }
}

/// Something to tell about a place in the file.
#[derive(Debug)]
pub(super) struct Finding {
    at: Position,
    path: String,
    what: String,
    /// It works, but not as written.
    pub(super) warning: bool,
}

impl Finding {
    pub(super) fn fault(at: Position, path: String, what: String) -> Self {
        Self {
            at,
            path,
            what,
            warning: false,
        }
    }

    /// In the order of the lines.
    pub(super) fn sort(findings: &mut [Self]) {
        findings.sort_by(|a, b| (a.at, &a.path).cmp(&(b.at, &b.path)));
    }

    pub(super) fn warning(at: Position, path: String, what: &str) -> Self {
        Self {
            at,
            path,
            what: format!("warning: {what}"),
            warning: true,
        }
    }

    /// The one line of a warning.
    pub(super) fn line(&self, file: &str) -> String {
        located(file, self.at.line, self.at.column, &self.path, &self.what)
    }
}

fn located(file: &str, line: usize, column: usize, path: &str, what: &str) -> String {
    let separator = if path.is_empty() { "" } else { ": " };
    format!("{file}:{line}:{column}: {path}{separator}{what}")
}

const MASK: &str = "***";
/// Names of keys and header fields whose values are nobody's business.
const SECRET: [&str; 4] = ["token", "authorization", "cookie", "password"];

/// The line without the value of a secret and the userinfo of a URL; columns before them stay true.
fn masked(line: &str) -> String {
    let mut line = line.trim_end().replace('\t', " ");
    let lower = line.to_ascii_lowercase();
    let ends = SECRET
        .iter()
        .filter_map(|word| lower.find(word).map(|at| at + word.len()));
    let colons = ends.filter_map(|end| line[end..].find(':').map(|colon| end + colon));
    if let Some(colon) = colons.min() {
        line.truncate(colon + 1);
        line.push(' ');
        line.push_str(MASK);
    }
    if let (Some(start), Some(end)) = (line.find("://"), line.rfind('@'))
        && start < end
    {
        line.replace_range(start + 3..end, MASK);
    }
    line
}
