//! A child process: what it says, what it costs, how it ends.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::PATIENCE;

/// Killed when dropped.
pub struct Process {
    name: String,
    child: Child,
    output: Arc<Output>,
}

#[derive(Default)]
struct Output {
    said: Mutex<Said>,
    more: Condvar,
}

#[derive(Default)]
struct Said {
    lines: Vec<String>,
    /// How many of the two pipes have ended.
    ended: usize,
}

impl Process {
    /// Starts a command; `name` is what sentences call it.
    pub fn spawn(name: &str, command: &mut Command) -> Result<Self, String> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn();
        let mut child = child.map_err(|error| format!("{name} cannot be started: {error}"))?;
        let output = Arc::new(Output::default());
        collect(child.stdout.take().expect("a pipe"), Arc::clone(&output));
        collect(child.stderr.take().expect("a pipe"), Arc::clone(&output));
        Ok(Self {
            name: name.to_owned(),
            child,
            output,
        })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Everything it has said, line by line, both streams together.
    pub fn lines(&self) -> Vec<String> {
        self.output.said.lock().unwrap().lines.clone()
    }

    /// Waits for a line that `look` makes something of, past and future ones.
    pub fn wait_for<T>(
        &self,
        what: &str,
        patience: Duration,
        mut look: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, String> {
        let deadline = Instant::now() + patience;
        let mut said = self.output.said.lock().unwrap();
        let mut next = 0;
        loop {
            for line in &said.lines[next..] {
                if let Some(found) = look(line) {
                    return Ok(found);
                }
            }
            next = said.lines.len();
            let left = deadline.saturating_duration_since(Instant::now());
            let over = said.ended == 2;
            if over || left.is_zero() {
                let why = if over {
                    "ended without"
                } else {
                    "in vain awaited"
                };
                let all = said.lines.join("\n");
                return Err(format!("{}: {why} {what}; it said:\n{all}", self.name));
            }
            said = self.output.more.wait_timeout(said, left).unwrap().0;
        }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a process id");
        rustix::process::kill_process(pid, signal).expect("a process to signal");
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub fn exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "{} does not end", self.name);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// KiB of memory of its own: heaps and stacks, without what it would give back on request.
    pub fn memory_kib(&self) -> u64 {
        let rollup = self.proc("smaps_rollup");
        let kib = |name: &str| -> u64 {
            let line = rollup
                .lines()
                .find(|line| line.starts_with(name))
                .expect("a known row");
            line.split_whitespace()
                .nth(1)
                .and_then(|kib| kib.parse().ok())
                .expect("a number")
        };
        kib("Anonymous:") - kib("LazyFree:")
    }

    /// CPU time that it used, user and system, in clock ticks (mostly 10 ms).
    pub fn cpu_ticks(&self) -> u64 {
        let stat = self.proc("stat");
        // The name in parentheses may hold anything; what follows is counted from it.
        let fields = stat.rsplit(')').next().expect("a stat line");
        let ticks = fields.split_whitespace().skip(11).take(2);
        ticks
            .map(|field| field.parse::<u64>().expect("a number"))
            .sum()
    }

    /// The names of its threads.
    pub fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).expect("a process");
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        let names = tasks.flatten().filter_map(|task| name(task).ok());
        names.map(|name| name.trim_end().to_owned()).collect()
    }

    fn proc(&self, file: &str) -> String {
        let path = format!("/proc/{}/{file}", self.id());
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(pipe: impl Read + Send + 'static, output: Arc<Output>) {
    std::thread::spawn(move || {
        let mut pipe = BufReader::new(pipe);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            output.said.lock().unwrap().lines.push(text);
            output.more.notify_all();
            line.clear();
        }
        output.said.lock().unwrap().ended += 1;
        output.more.notify_all();
    });
}
