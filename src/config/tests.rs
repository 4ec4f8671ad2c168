//! Faults with their places, merging, files, the example and the schema.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;
mod documents;
mod example;
mod faults;
mod files;
mod merging;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Faults, Settings, parse};

/// A whole file without faults; parts of it get replaced by those of a test.
const LISTEN: &str = "listen:\n  - address: 127.0.0.1:8080\n";
const UPSTREAMS: &str = "upstreams:\n  app:\n    servers: [demo]\n";
const ROUTES: &str = "routes:\n  - name: all\n    upstream: app\n";

/// The settings of a file that begins with `lines`; its keys stand instead of the usual ones.
fn parsed(lines: &str) -> Result<Settings, Faults> {
    parse(&completed(lines), "t.yaml", Path::new("/nowhere"))
}

fn completed(lines: &str) -> String {
    let mut text = lines.to_owned();
    for (key, part) in [
        ("listen:", LISTEN),
        ("upstreams:", UPSTREAMS),
        ("routes:", ROUTES),
    ] {
        if !lines.lines().any(|line| line.starts_with(key)) {
            let _ = write!(text, "{part}");
        }
    }
    text
}

/// `LINE:COLUMN path: what` of each fault.
#[track_caller]
fn faults(lines: &str) -> Vec<String> {
    let faults = parsed(lines).expect_err("there should be faults");
    let place = |fault: &super::Fault| {
        format!(
            "{}:{} {}: {}",
            fault.line, fault.column, fault.path, fault.what
        )
    };
    faults.list().iter().map(place).collect()
}

/// Exactly one fault: this one.
#[track_caller]
fn only(lines: &str, expected: &str) {
    assert_eq!(faults(lines), [expected], "in\n{lines}");
}

/// A fresh directory that is removed with everything in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("thinwire-config-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A self-signed certificate that is also a CA, as `NAME.crt` and `NAME.key`.
    fn certificate(&self, name: &str) {
        let mut parameters = rcgen::CertificateParams::new(vec!["app.example".into()]).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        self.write(
            &format!("{name}.crt"),
            parameters.self_signed(&key).unwrap().pem(),
        );
        self.write(&format!("{name}.key"), key.serialize_pem());
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
