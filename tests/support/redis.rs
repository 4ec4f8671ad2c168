//! A real redis-server, on a port of its own, that a test may stop, freeze and start again.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use super::process::Process;
use super::{Ca, PATIENCE, Pair, folder};

/// A running server without persistence; killed when dropped.
pub struct Redis {
    port: u16,
    folder: PathBuf,
    secured: Option<Secured>,
    process: Option<Process>,
}

struct Secured {
    pair: Pair,
    ca: PathBuf,
    password: String,
}

impl Redis {
    /// In cleartext, for everybody.
    #[track_caller]
    pub fn start() -> Self {
        Self::with(None)
    }

    /// Over TLS only, named `localhost`, with this password.
    #[track_caller]
    pub fn secured(ca: &Ca, password: &str) -> Self {
        Self::with(Some(Secured {
            pair: ca.issue(&["localhost"]),
            ca: ca.file(),
            password: password.to_owned(),
        }))
    }

    fn with(secured: Option<Secured>) -> Self {
        let mut redis = Self {
            port: 0,
            folder: folder("redis"),
            secured,
            process: None,
        };
        // Another process may take the port between the look and the start.
        for _ in 0..10 {
            redis.port = free_port();
            match redis.spawn() {
                Ok(process) => {
                    redis.process = Some(process);
                    return redis;
                }
                Err(sentence) if sentence.contains("in use") => {}
                Err(sentence) => panic!("{sentence}"),
            }
        }
        panic!("no port for redis-server");
    }

    fn spawn(&self) -> Result<Process, String> {
        let mut command = Command::new("redis-server");
        let port = self.port.to_string();
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.arg("--dir").arg(&self.folder);
        match &self.secured {
            None => command.args(["--port", &port]),
            Some(secured) => command
                .args(["--port", "0", "--tls-port", &port])
                .args(["--tls-auth-clients", "no", "--requirepass"])
                .arg(&secured.password)
                .arg("--tls-cert-file")
                .arg(&secured.pair.chain)
                .arg("--tls-key-file")
                .arg(&secured.pair.key)
                .arg("--tls-ca-cert-file")
                .arg(&secured.ca),
        };
        let process = Process::spawn("redis-server", &mut command)
            .map_err(|said| format!("{said}; ./tests/run installs or names what is needed"))?;
        process.wait_for("ready", PATIENCE, |line| {
            line.contains("Ready to accept connections").then_some(())
        })?;
        Ok(process)
    }

    /// As `cache.shared.url` names it.
    pub fn url(&self) -> String {
        match &self.secured {
            None => format!("redis://127.0.0.1:{}", self.port),
            Some(secured) => format!("rediss://:{}@localhost:{}", secured.password, self.port),
        }
    }

    /// Top-level keys of a configuration that uses it.
    pub fn yaml(&self) -> String {
        // Busy machines are slow: tests that do not speak of time wait for longer than the default.
        self.yaml_with("timeout: 5s")
    }

    pub fn yaml_with(&self, keys: &str) -> String {
        format!("cache: {{ shared: {{ url: \"{}\", {keys} }} }}", self.url())
    }

    /// Kills it, with all that it holds.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again, empty, on the port that it had.
    #[track_caller]
    pub fn restart(&mut self) {
        let process = self.spawn().unwrap_or_else(|sentence| panic!("{sentence}"));
        self.process = Some(process);
    }

    /// It keeps its connections and says nothing any more.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        self.process.as_ref().expect("it runs").signal(signal);
    }

    /// What `redis-cli` prints for a command.
    #[track_caller]
    pub fn cli(&self, command: &[&str]) -> String {
        let mut cli = Command::new("redis-cli");
        cli.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        let output = cli.args(command).output().expect("redis-cli can be run");
        let said = String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned();
        assert!(
            output.status.success() && !said.starts_with("ERR"),
            "{said}"
        );
        said
    }

    /// The names that begin so, sorted.
    #[track_caller]
    pub fn names(&self, beginning: &str) -> Vec<String> {
        let said = self.cli(&["--raw", "KEYS", &format!("{beginning}*")]);
        let mut names: Vec<_> = said.lines().map(str::to_owned).collect();
        names.sort_unstable();
        names
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
