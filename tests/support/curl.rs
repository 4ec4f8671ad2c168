//! curl, the client that everybody has.

use std::process::Command;

/// What curl brought.
pub struct Curled {
    pub body: Vec<u8>,
    /// What it said on standard error.
    pub errors: String,
    /// Its exit status: 0 is fine, 22 an HTTP error with --fail, 18 a partial body, 52 nothing.
    pub status: i32,
}

/// Runs `curl --silent --show-error --max-time 20` with these arguments. Proxies of the
/// environment are not asked.
pub fn curl(arguments: &[&str]) -> Curled {
    let mut command = Command::new("curl");
    command.args([
        "--silent",
        "--show-error",
        "--max-time",
        "20",
        "--noproxy",
        "*",
    ]);
    let output = command.args(arguments).output().unwrap_or_else(|error| {
        panic!("these tests need curl ({error}): run ./tests/run, which installs or names it")
    });
    Curled {
        body: output.stdout,
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        status: output.status.code().unwrap_or(-1),
    }
}
