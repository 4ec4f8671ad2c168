//! One body to measure on: a file's bytes, or what a URL answers.

use std::io::Read as _;
use std::{fs::File, io};

use bytes::Bytes;

use super::fetch::{self, FetchError};

/// What of a body is measured; the densest levels take seconds a megabyte.
pub(super) const MOST: usize = 8 << 20;

/// A body.
#[derive(Debug)]
pub(super) struct Sample {
    /// As the command line names it.
    pub(super) name: String,
    /// Its bytes, at most [`MOST`].
    pub(super) bytes: Bytes,
    /// More was there.
    pub(super) cut: bool,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSample {
    /// The file.
    #[error("{name}: {error}")]
    Unreadable { name: String, error: io::Error },
    /// The URL.
    #[error("{name}: {error}")]
    Unfetched { name: String, error: FetchError },
    /// It has no bytes.
    #[error("{name}: it is empty")]
    Empty { name: String },
}

impl Sample {
    /// Reads or fetches it.
    pub(super) fn read(name: &str) -> Result<Self, NoSample> {
        let named = || name.to_owned();
        let bytes = if name.starts_with("http://") || name.starts_with("https://") {
            fetch::fetch(name, MOST + 1).map_err(|error| NoSample::Unfetched {
                name: named(),
                error,
            })?
        } else {
            from_file(name).map_err(|error| NoSample::Unreadable {
                name: named(),
                error,
            })?
        };
        if bytes.is_empty() {
            return Err(NoSample::Empty { name: named() });
        }
        Ok(Self {
            name: named(),
            cut: bytes.len() > MOST,
            bytes: bytes.slice(..bytes.len().min(MOST)),
        })
    }
}

fn from_file(name: &str) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    File::open(name)?
        .take(MOST as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes.into())
}
