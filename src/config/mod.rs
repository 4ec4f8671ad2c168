//! Understands the user: the file, what it means, and every fault in it.
//!
//! The text becomes a [`tree`] whose nodes know where they stand; [`resolve`] asks it for every key
//! of the contract through a [`section`], each by its [`kind`]; what comes out is [`Settings`], or
//! [`Faults`] with all that is wrong at once. The JSON schema is drawn by the same questions.
//!
//! File names in the configuration are relative to the directory of the configuration file. It
//! never logs and never runs anything: it reads the file and the certificates that it names.

mod fault;
mod json;
mod kind;
mod picture;
mod resolve;
mod section;
pub mod settings;
mod tree;

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use fault::Finding;
pub use fault::{Fault, Faults};
use serde_json::{Value as Json, json};
pub use settings::Settings;

/// Reads and understands a file.
///
/// # Errors
/// Every fault of the file; also when it cannot be read or is not UTF-8.
pub fn load(path: &Path) -> Result<Settings, Faults> {
    let file = path.display().to_string();
    let bytes = fs::read(path)
        .map_err(|error| Faults::of_file(&file, format!("it cannot be read: {error}")))?;
    let text = str::from_utf8(&bytes)
        .map_err(|error| Faults::not_utf8(&file, &bytes, error.valid_up_to()))?;
    parse(text, &file, path.parent().unwrap_or_else(|| Path::new("")))
}

/// Understands the text of a file.
///
/// `file` is what faults call it; relative file names in it start from `base_dir`.
///
/// # Errors
/// Every fault, in the order of the lines.
pub fn parse(text: &str, file: &str, base_dir: &Path) -> Result<Settings, Faults> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = tree::parse(text)
        .map_err(|broken| Faults::found(file, text, vec![broken]))?
        .filter(|root| !matches!(root.value, tree::Value::Null))
        .ok_or_else(|| {
            let what = "the file is empty, it needs at least listen, upstreams and routes";
            Faults::of_file(file, what.to_owned())
        })?;
    let (mut settings, mut findings) = section::read(&root, base_dir, resolve::settings);
    Finding::sort(&mut findings);
    let (warnings, faults): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.warning);
    if !faults.is_empty() {
        return Err(Faults::found(file, text, faults));
    }
    settings.warnings = warnings.iter().map(|warning| warning.line(file)).collect();
    Ok(settings)
}

/// The JSON schema of the configuration, for editors.
#[must_use]
pub fn schema() -> Json {
    let mut schema = section::draw(resolve::settings);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Thinwire configuration");
    schema
}
