//! The command line.
//!
//! Exit codes: 0 when it worked, 78 (`EX_CONFIG`) on a bad configuration, 1 when the proxy cannot
//! start or is not ready, 2 on wrong arguments. What a script reads goes to standard output,
//! what a person reads about a problem to standard error.

mod health;
mod measure;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::app;
use crate::config::{self, Settings};

/// `EX_CONFIG` of sysexits.h.
const BAD_CONFIGURATION: u8 = 78;

/// Runs the command that the arguments name.
#[must_use]
pub fn main() -> ExitCode {
    match CommandLine::parse().command.unwrap_or_default() {
        Command::Serve(file) => serve(&file.config),
        Command::Check(file) => check(&file.config),
        Command::Health(file) => health(&file.config),
        Command::Measure(measure) => measure.run(),
        Command::Schema => print(&format!("{:#}", config::schema())),
    }
}

/// An edge reverse proxy that takes compression off application servers.
///
/// Without a command it serves ./config.yaml.
#[derive(Parser)]
#[command(name = "thinwire", version, long_version = LONG_VERSION, after_help = AFTER_HELP)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
}

const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncodings:   gzip, br, zstd; deflate for gRPC; permessage-deflate for WebSocket",
    "\nprotocols: HTTP/1.1, HTTP/2, TLS 1.2 and 1.3 (rustls, aws-lc-rs)",
    "\nlicense:   ",
    env!("CARGO_PKG_LICENSE"),
);

const AFTER_HELP: &str = "\
Signals: SIGHUP reloads the configuration, SIGTERM and SIGINT drain and end; a second one ends at once.
Exit codes: 0 done, 1 cannot start or not ready, 2 wrong arguments, 78 bad configuration.";

#[derive(Subcommand)]
enum Command {
    /// Run the proxy in the foreground
    Serve(File),
    /// Report every fault of the configuration, then exit 0 or 78
    Check(File),
    /// Ask the admin address whether the proxy is ready, then exit 0 or 1
    Health(File),
    /// Measure each coding and level on one's own data, and say which policy fits
    Measure(measure::Measure),
    /// Print the JSON schema of the configuration, for editors
    Schema,
}

impl Default for Command {
    fn default() -> Self {
        Self::Serve(File {
            config: PathBuf::from(DEFAULT_FILE),
        })
    }
}

const DEFAULT_FILE: &str = "config.yaml";

#[derive(Args)]
struct File {
    /// The configuration file; relative file names in it start from its directory
    #[arg(long, short, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
}

fn serve(path: &Path) -> ExitCode {
    match load(path) {
        Ok(settings) => app::serve(settings, path),
        Err(code) => code,
    }
}

fn check(path: &Path) -> ExitCode {
    let settings = match load(path) {
        Ok(settings) => settings,
        Err(code) => return code,
    };
    for warning in &settings.warnings {
        eprintln!("{warning}");
    }
    let (listen, upstreams) = (settings.listen.len(), settings.upstreams.len());
    let routes = settings.routes.len();
    print(&format!(
        "{}: ok (listeners: {listen}, upstreams: {upstreams}, routes: {routes})",
        path.display()
    ))
}

fn health(path: &Path) -> ExitCode {
    let Ok(settings) = load(path) else {
        return ExitCode::FAILURE;
    };
    match health::ask(settings.admin.address) {
        Ok(()) => print("ready"),
        Err(error) => {
            eprintln!("not ready: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The settings, or every fault on standard error.
fn load(path: &Path) -> Result<Settings, ExitCode> {
    config::load(path).map_err(|faults| {
        eprintln!("{faults}");
        ExitCode::from(BAD_CONFIGURATION)
    })
}

/// A reader that has gone (`thinwire schema | head`) is no failure.
fn print(text: &str) -> ExitCode {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_well_formed() {
        use clap::CommandFactory;
        CommandLine::command().debug_assert();
    }

    #[test]
    fn without_a_command_it_serves_the_default_file() {
        let Command::Serve(file) = Command::default() else {
            panic!("another command")
        };
        assert_eq!(file.config, Path::new("config.yaml"));
    }
}
