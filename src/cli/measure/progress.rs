//! How far it is: a bar on a terminal, a line a trial elsewhere. Standard error only.

use std::io::{self, IsTerminal as _, Write as _};

/// Characters of the bar.
const WIDTH: usize = 24;

/// Trials done of all.
pub(super) struct Progress {
    done: usize,
    all: usize,
    terminal: bool,
}

impl Progress {
    pub(super) fn new(all: usize) -> Self {
        Self {
            done: 0,
            all,
            terminal: io::stderr().is_terminal(),
        }
    }

    /// A trial of this name runs.
    pub(super) fn begins(&self, name: &str) {
        if self.terminal {
            let bar = bar(self.done, self.all);
            self.show(&format!("\r{bar} {}/{} {name}\x1b[K", self.done, self.all));
        }
    }

    /// It has ended so.
    pub(super) fn ended(&mut self, result: &str) {
        self.done += 1;
        if !self.terminal {
            self.show(&format!("{}/{} {result}\n", self.done, self.all));
        }
    }

    /// Nothing of it stays on the terminal.
    pub(super) fn clear(&self) {
        if self.terminal {
            self.show("\r\x1b[K");
        }
    }

    /// Nobody may be there to read it.
    fn show(&self, text: &str) {
        let mut out = io::stderr().lock();
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    }
}

fn bar(done: usize, all: usize) -> String {
    let full = WIDTH * done / all.max(1);
    format!("[{}{}]", "#".repeat(full), "-".repeat(WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills() {
        assert_eq!(bar(0, 4), "[------------------------]");
        assert_eq!(bar(1, 4), "[######------------------]");
        assert_eq!(bar(4, 4), "[########################]");
    }
}
