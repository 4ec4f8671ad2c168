//! The real binary, started on ports of its own with a configuration of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

use rustix::process::Signal;
use serde_json::Value;

use super::process::Process;
use super::{App, Ca, Conn, Fields, H2, Metrics, PATIENCE, Reply, Setup, eventually, folder};

/// A running proxy; killed when dropped.
#[derive(Debug)]
pub struct Proxy {
    process: Process,
    file: PathBuf,
    addresses: Vec<String>,
    admin: SocketAddr,
}

/// Runs the binary to its end: `thinwire(&["check", "--config", file])`.
pub fn thinwire(arguments: &[&str]) -> Output {
    let output = command().args(arguments).output();
    output.expect("the binary can be run")
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thinwire"));
    command.env_remove("RUST_LOG");
    command
}

impl Proxy {
    /// Before one app, with a configuration that changes nothing but what tests need.
    #[track_caller]
    pub fn before(app: &impl App) -> Self {
        Setup::before(app).start()
    }

    /// The same, its route having these keys too.
    #[track_caller]
    pub fn with(app: &impl App, route: &str) -> Self {
        Setup::before(app).route(route).start()
    }

    /// With this configuration. Ports should be 0, and an admin address be there.
    #[track_caller]
    pub fn start(yaml: &str) -> Self {
        Self::try_start(yaml).unwrap_or_else(|sentence| panic!("{sentence}\n\n{yaml}"))
    }

    /// The same where it may fail to start: an error tells what it said.
    pub fn try_start(yaml: &str) -> Result<Self, String> {
        let file = folder("proxy").join("config.yaml");
        std::fs::write(&file, yaml).map_err(|error| error.to_string())?;
        Self::try_start_file(&file)
    }

    /// On a machine that trusts this authority.
    #[track_caller]
    pub fn trusting(ca: &Ca, yaml: &str) -> Self {
        let file = folder("proxy").join("config.yaml");
        std::fs::write(&file, yaml).expect("a file");
        let mut command = command();
        command.env("SSL_CERT_FILE", ca.file());
        Self::run(command, &file).unwrap_or_else(|sentence| panic!("{sentence}\n\n{yaml}"))
    }

    /// With a configuration file that is there already.
    pub fn try_start_file(file: &Path) -> Result<Self, String> {
        Self::run(command(), file)
    }

    /// With this configuration and these variables in its environment.
    #[track_caller]
    pub fn start_in(yaml: &str, variables: Fields<'_>) -> Self {
        let file = folder("proxy").join("config.yaml");
        std::fs::write(&file, yaml).unwrap();
        let mut command = command();
        command.envs(variables.iter().copied());
        Self::run(command, &file).unwrap_or_else(|sentence| panic!("{sentence}\n\n{yaml}"))
    }

    fn run(mut command: Command, file: &Path) -> Result<Self, String> {
        let yaml = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
        let process = Process::spawn("thinwire", command.arg("serve").arg("--config").arg(file))?;
        let mut addresses = Vec::new();
        let expected = listeners(&yaml);
        process.wait_for("listening on its addresses", PATIENCE, |line| {
            addresses.extend(after(line, "listening on "));
            (addresses.len() == expected).then_some(())
        })?;
        let admin = process.wait_for("its admin address", PATIENCE, |line| {
            after(line, "admin on ")
        })?;
        let admin = socket(&admin).ok_or_else(|| format!("no admin address: {admin}"))?;
        let proxy = Self {
            process,
            file: file.to_owned(),
            addresses,
            admin,
        };
        eventually("the proxy to be ready", || {
            (proxy.admin("/ready").status == 200).then_some(())
        });
        Ok(proxy)
    }

    /// Its addresses as it logs them, in the order of the file.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// The TCP address that is listed at this place, from 0.
    #[track_caller]
    pub fn addr(&self, index: usize) -> SocketAddr {
        let address = &self.addresses[index];
        socket(address).unwrap_or_else(|| panic!("not a TCP address: {address}"))
    }

    pub fn admin_addr(&self) -> SocketAddr {
        self.admin
    }

    /// A URL of the first address, for curl.
    pub fn url(&self, target: &str) -> String {
        format!("{}{target}", self.addresses[0])
    }

    /// Asks once, on a connection of its own, over HTTP/1.1.
    #[track_caller]
    pub fn get(&self, target: &str, fields: Fields<'_>) -> Reply {
        self.conn().get(target, fields)
    }

    #[track_caller]
    pub fn ask(&self, method: &str, target: &str, fields: Fields<'_>, body: &[u8]) -> Reply {
        self.conn().ask(method, target, fields, body)
    }

    /// A connection to the first address.
    pub fn conn(&self) -> Conn {
        Conn::open(self.addr(0))
    }

    /// An h2c connection to the first address.
    pub fn h2(&self) -> H2 {
        H2::open(self.addr(0))
    }

    /// Asks over HTTP/1.1, then over HTTP/2.
    #[track_caller]
    pub fn both(&self, method: &str, target: &str, fields: Fields<'_>) -> [Reply; 2] {
        let first = self.ask(method, target, fields, b"");
        [first, self.h2().ask(method, target, fields, b"")]
    }

    /// Asks the admin address.
    pub fn admin(&self, target: &str) -> Reply {
        super::get(self.admin, target, &[])
    }

    pub fn metrics(&self) -> Metrics {
        Metrics::parse(&self.admin("/metrics").expect(200).text())
    }

    /// Waits until a metric satisfies; for gauges, and for counters written just after the answer.
    #[track_caller]
    pub fn until(&self, name: &str, labels: Fields<'_>, enough: impl Fn(f64) -> bool) -> f64 {
        eventually(&format!("{name}{labels:?}"), || {
            Some(self.metrics().sum(name, labels)).filter(|&sum| enough(sum))
        })
    }

    /// All it has said.
    pub fn log(&self) -> Vec<String> {
        self.process.lines()
    }

    /// Waits for a line, past or future.
    #[track_caller]
    pub fn wait_for_log(&self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let found = self
            .process
            .wait_for(what, PATIENCE, |line| is_it(line).then(|| line.to_owned()));
        found.unwrap_or_else(|sentence| panic!("{sentence}"))
    }

    /// The access lines so far. A line may come a little later than the answer: see `access`.
    pub fn access_lines(&self) -> Vec<Value> {
        let lines = self.log();
        lines.iter().filter_map(|line| access_line(line)).collect()
    }

    /// Waits for the first access line of this path.
    #[track_caller]
    pub fn access(&self, path: &str) -> Value {
        let found = self
            .process
            .wait_for(&format!("an access line of {path}"), PATIENCE, |line| {
                access_line(line).filter(|line| line["path"] == path)
            });
        found.unwrap_or_else(|sentence| panic!("{sentence}"))
    }

    /// Its configuration file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Replaces the configuration file in one step and asks for a reload.
    pub fn reload(&self, yaml: &str) {
        let draft = self.file.with_extension("new");
        std::fs::write(&draft, yaml).unwrap();
        std::fs::rename(&draft, &self.file).unwrap();
        self.signal(Signal::HUP);
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Asks it to drain, and waits for its end.
    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.process.exit()
    }

    /// The process: memory, CPU time, threads.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The names of its threads.
    pub fn threads(&self) -> Vec<String> {
        self.process.threads()
    }

    pub fn memory_kib(&self) -> u64 {
        self.process.memory_kib()
    }

    pub fn cpu_ticks(&self) -> u64 {
        self.process.cpu_ticks()
    }
}

fn access_line(line: &str) -> Option<Value> {
    let line: Value = serde_json::from_str(line).ok()?;
    let is_one = ["path", "status", "duration_ms"]
        .iter()
        .all(|key| line.get(key).is_some());
    is_one.then_some(line)
}

/// How many addresses the file lists under `listen`.
pub(super) fn listeners(yaml: &str) -> usize {
    let inside = yaml
        .lines()
        .skip_while(|line| !line.starts_with("listen:"))
        .skip(1);
    let inside = inside.take_while(|line| line.is_empty() || line.starts_with([' ', '-', '#']));
    inside
        .filter(|line| {
            line.trim_start_matches([' ', '-', '{'])
                .starts_with("address:")
        })
        .count()
}

/// The word behind these words, without the quotes of a JSON line.
pub(super) fn after(line: &str, words: &str) -> Option<String> {
    let (_, rest) = line.split_once(words)?;
    let ends = |char: char| char.is_whitespace() || matches!(char, '"' | ',' | ';');
    rest.split(ends).next().map(str::to_owned)
}

/// The address in `http://127.0.0.1:8080`.
pub(super) fn socket(url: &str) -> Option<SocketAddr> {
    let (_, address) = url.split_once("://")?;
    address.trim_end_matches('/').parse().ok()
}
