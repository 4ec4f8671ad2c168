//! Assembles: settings into a running proxy. The rooms stand; their assembly is on its way.

use std::path::Path;
use std::process::ExitCode;

use crate::config::Settings;

/// Serving is not assembled yet: says so and fails, rather than pretend.
#[must_use]
pub fn serve(_settings: Settings, _path: &Path) -> ExitCode {
    eprintln!("thinwire: this build does not serve yet");
    ExitCode::FAILURE
}
