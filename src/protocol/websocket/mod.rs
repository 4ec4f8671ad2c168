//! WebSocket, terminated: permessage-deflate is spoken with the client and never with the app.
//!
//! The app's frames are compressed for the client, the client's are inflated and checked for the
//! app. Messages are relayed as they come, never collected; pings, pongs and closes are the peers'
//! own business and pass. What breaks a rule ends the connection with the code that says so.
//!
//! Nothing here is answered for a peer that could answer itself, and nothing that is not a whole,
//! legal frame ever reaches the app.

mod budget;
mod down;
mod fanout;
mod handshake;
mod lifecycle;
mod random;
mod session;
mod side;
mod tally;
mod up;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

pub use budget::{Budget, Reserved};
pub(crate) use handshake::accept_for;
pub use handshake::{Handshake, Refusal};

use crate::body::{EndedBy, Ledger};
use crate::codec::message::HISTORY;
use crate::config::settings::WebSocket;
use crate::frame::extension::{self, Agreed, Agreement, Terms};
use crate::work::Pool;
use session::Session;

/// What all connections share.
#[derive(Debug)]
pub struct House {
    pool: Pool,
    inline: usize,
    max_wait: Duration,
    fanout: fanout::Fanout,
    draining: watch::Sender<bool>,
    /// `websocket.memory`.
    pub budget: Budget,
}

impl House {
    /// `inline` and `max_wait` are `pool`'s own.
    #[must_use]
    pub fn new(pool: Pool, inline: usize, max_wait: Duration, budget: Budget) -> Arc<Self> {
        Arc::new(Self {
            pool,
            inline,
            max_wait,
            fanout: fanout::Fanout::default(),
            draining: watch::Sender::new(false),
            budget,
        })
    }

    /// Asks every client to leave (1001) as soon as the message that runs towards it has ended.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }
}

/// The extension on a connection, and the memory that it may need.
#[derive(Debug)]
pub struct Deflate {
    agreed: Agreed,
    reserved: Reserved,
    /// The answer's Sec-WebSocket-Extensions.
    pub answer: http::HeaderValue,
}

impl Deflate {
    /// Takes the first of the client's offers that the route and the memory allow.
    pub fn agree<'a>(
        offers: impl IntoIterator<Item = &'a [u8]>,
        policy: &WebSocket,
        budget: &Budget,
    ) -> Option<Self> {
        if !policy.compress {
            return None;
        }
        let terms = Terms {
            bits: policy.window_bits,
            takeover: policy.context_takeover,
        };
        let Agreement { agreed, answer } = extension::agree(offers, terms)?;
        let reserved = budget.reserve(needs(agreed))?;
        Some(Self {
            agreed,
            reserved,
            answer,
        })
    }
}

/// What the histories of a connection grow to, and what is always there.
fn needs(agreed: Agreed) -> u64 {
    let down = if agreed.server_takeover {
        HISTORY.min(1 << agreed.server_bits)
    } else {
        0
    };
    let up = if agreed.client_takeover {
        // A large one has slack.
        (1_usize << agreed.client_bits) * 5 / 4
    } else {
        0
    };
    (down + up + session::SIZE) as u64
}

/// A connection that is agreed on with both sides but does not run yet.
pub struct Opening {
    /// The application's side; ready once its 101 was read.
    pub app: hyper::upgrade::OnUpgrade,
    /// What holds on it.
    pub contract: Contract,
}

/// What holds on a connection.
pub struct Contract {
    /// The record of the exchange.
    pub ledger: Box<Ledger>,
    /// The route's.
    pub policy: WebSocket,
    /// The extension, where it was agreed.
    pub deflate: Option<Deflate>,
    /// `network.send`.
    pub send: Duration,
    /// What it shares with others.
    pub house: Arc<House>,
}

impl Opening {
    /// Runs until both sides have ended.
    ///
    /// `early` is what the client sent behind its request.
    pub async fn run<C>(self, client: C, early: Bytes)
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        let mut contract = self.contract;
        let app = match self.app.await {
            Ok(upgraded) => TokioIo::new(upgraded),
            Err(error) => {
                let ledger = &mut contract.ledger;
                return ledger.broken(EndedBy::Upstream, error.to_string());
            }
        };
        Session::new(contract, client, app, &early).run().await;
    }
}
