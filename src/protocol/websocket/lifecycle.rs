//! How a connection ends: who has closed, who was told, and how long is waited.

use std::time::Duration;

use bytes::BytesMut;
use tokio::time::Instant;

use super::random;
use crate::body::EndedBy;
use crate::frame::websocket::{Close, CloseCode, Control};

/// From the first Close to the last (RFC 6455 section 7.1.1 leaves it to us).
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of the end.
#[derive(Debug)]
pub(super) struct Lifecycle {
    /// Nothing comes from the client any more: it has closed, or is gone.
    pub(super) client_ended: bool,
    /// Nothing comes from the app any more.
    pub(super) app_ended: bool,
    /// A Close was written to the client; nothing follows it.
    pub(super) client_told: bool,
    /// A Close was written to the app.
    pub(super) app_told: bool,
    /// Clients are asked to leave, who may have a message to end.
    pub(super) leaving: bool,
    since: Option<Instant>,
    /// The first Close that a peer sent.
    first: Option<Option<Close>>,
    /// Why it ends before its time.
    pub(super) verdict: Option<(EndedBy, String)>,
}

impl Lifecycle {
    pub(super) const fn new() -> Self {
        Self {
            client_ended: false,
            app_ended: false,
            client_told: false,
            app_told: false,
            leaving: false,
            since: None,
            first: None,
            verdict: None,
        }
    }

    /// Writes a Close to the client, unless one was.
    pub(super) fn tell_client(&mut self, close: Option<&Close>, output: &mut BytesMut) {
        if !std::mem::replace(&mut self.client_told, true) {
            Control::Close(close).write(None, output);
            self.since.get_or_insert_with(Instant::now);
        }
    }

    /// Writes a Close to the app, unless one was.
    pub(super) fn tell_app(&mut self, close: Option<&Close>, output: &mut BytesMut) {
        if !std::mem::replace(&mut self.app_told, true) {
            Control::Close(close).write(Some(random::mask()), output);
            self.since.get_or_insert_with(Instant::now);
        }
    }

    /// A peer has closed.
    pub(super) fn closed(&mut self, close: Option<&Close>) {
        self.first.get_or_insert_with(|| close.cloned());
    }

    /// What is said for a peer that is gone: the other's own Close back, or that it left.
    pub(super) fn echo(&self, left: Close) -> Option<Close> {
        self.first.clone().unwrap_or(Some(left))
    }

    /// A stream ended before its Close; behind the other's Close that is merely impolite.
    pub(super) fn ends_without_close(&mut self, side: EndedBy, word: &str) {
        if self.first.is_none() {
            self.blame(side, word);
        }
    }

    /// The wait for the other Close is over.
    pub(super) fn overdue(&mut self) {
        let side = if self.client_ended {
            EndedBy::Upstream
        } else {
            EndedBy::Client
        };
        self.blame(side, "it did not close in time");
    }

    /// The first reason counts.
    pub(super) fn blame(&mut self, side: EndedBy, reason: impl Into<String>) {
        if self.verdict.is_none() {
            self.verdict = Some((side, reason.into()));
        }
    }

    /// When waiting for the other Close ends. A client that was asked to leave may end what it is
    /// sending: `moved` is when it last did.
    pub(super) fn deadline(&self, moved: Instant) -> Option<Instant> {
        let since = self.since?;
        let from = if self.leaving {
            since.max(moved)
        } else {
            since
        };
        Some(from + PATIENCE)
    }

    /// Both sides have ended.
    pub(super) const fn is_over(&self) -> bool {
        self.client_ended && self.app_ended
    }
}

/// A Close of our own.
pub(super) fn close(code: CloseCode, reason: &str) -> Close {
    Close::new(code, reason)
}
