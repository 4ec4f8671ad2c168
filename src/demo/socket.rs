//! `/ws/ticks` and `/ws/echo`: what WebSocket applications do. No extension is agreed to.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use bytes::BytesMut;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::MissedTickBehavior;

use super::answer::{Body, refuse};
use super::data::Dice;
use super::events::Pace;
use crate::frame::websocket::{
    Close, CloseCode, Control, Event, Kind, Message, Parser, Piece, Sender, Writer,
};
use crate::protocol::websocket::accept_for;

/// What a client may send in one message; it is echoed piece by piece and never held.
const MOST: u64 = 64 << 20;

/// Quotes in a tick, which make it some 1.1 KB long.
const QUOTES: usize = 14;

const TEXT: Message = Message {
    kind: Kind::Text,
    deflated: false,
};

/// What is done over the connection.
pub(super) enum Talk {
    /// What comes goes back.
    Echo,
    /// JSON at a steady pace, then a close.
    Ticks(Pace),
}

/// Agrees to the upgrade, and talks.
pub(super) fn answer(request: Request<Incoming>, talk: Talk) -> Response<Body> {
    let key = request.headers().get(SEC_WEBSOCKET_KEY);
    let accept = key.and_then(|key| HeaderValue::try_from(accept_for(key.to_str().ok()?)).ok());
    let Some(accept) = accept else {
        let sentence = "This page speaks WebSocket: new WebSocket('ws://...') in a browser.\n";
        let mut response = refuse(StatusCode::UPGRADE_REQUIRED, sentence);
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        return response;
    };
    tokio::spawn(async move {
        let talked = match hyper::upgrade::on(request).await {
            Ok(upgraded) => Socket::new(TokioIo::new(upgraded)).talk(talk).await,
            Err(error) => Err(io::Error::other(error)),
        };
        if let Err(error) = talked {
            tracing::debug!(%error, "a WebSocket of the demo application broke off");
        }
    });
    let mut response = refuse(StatusCode::SWITCHING_PROTOCOLS, "");
    let headers = response.headers_mut();
    headers.clear();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    response
}

struct Socket<S> {
    stream: S,
    parser: Parser,
    input: BytesMut,
    writer: Writer,
    output: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            parser: Parser::new(Sender::Client, false, MOST),
            input: BytesMut::new(),
            writer: Writer::default(),
            output: BytesMut::new(),
        }
    }

    async fn talk(mut self, talk: Talk) -> io::Result<()> {
        match talk {
            Talk::Echo => {
                while let Some(piece) = self.piece().await? {
                    let last = piece.ends();
                    self.writer
                        .frame(piece.message, last, &piece.payload, None, &mut self.output);
                    self.flush().await?;
                }
                Ok(())
            }
            Talk::Ticks(pace) => self.tick(&pace).await,
        }
    }

    async fn tick(mut self, pace: &Pace) -> io::Result<()> {
        let mut interval = tokio::time::interval(Duration::from_millis(pace.millis as u64));
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut dice = Dice::new(11);
        let mut sent = 0;
        while sent < pace.count {
            tokio::select! {
                _ = interval.tick() => {
                    sent += 1;
                    let tick = tick(sent, &mut dice);
                    self.writer.frame(TEXT, true, tick.as_bytes(), None, &mut self.output);
                    self.flush().await?;
                }
                piece = self.piece() => {
                    if piece?.is_none() {
                        return Ok(());
                    }
                }
            }
        }
        self.close(&Close::new(CloseCode::NORMAL, "that was all"))
            .await?;
        // What the client says until it agrees is of no interest.
        while self.piece().await?.is_some() {}
        Ok(())
    }

    /// The next piece of a message; `None`: the client closed. Pings are answered on the way.
    async fn piece(&mut self) -> io::Result<Option<Piece>> {
        loop {
            match self.parser.next(&mut self.input) {
                Ok(Some(Event::Data(piece))) => return Ok(Some(piece)),
                Ok(Some(Event::Ping(payload))) => {
                    Control::Pong(&payload).write(None, &mut self.output);
                    self.flush().await?;
                }
                Ok(Some(Event::Pong(_))) => {}
                Ok(Some(Event::Close(close))) => {
                    Control::Close(close.as_ref()).write(None, &mut self.output);
                    self.flush().await?;
                    self.stream.shutdown().await?;
                    return Ok(None);
                }
                Ok(None) => {
                    if self.stream.read_buf(&mut self.input).await? == 0 {
                        return Ok(None);
                    }
                }
                Err(fault) => {
                    self.close(&Close::new(fault.code(), "")).await?;
                    return Ok(None);
                }
            }
        }
    }

    async fn close(&mut self, close: &Close) -> io::Result<()> {
        Control::Close(Some(close)).write(None, &mut self.output);
        self.flush().await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all_buf(&mut self.output).await?;
        self.stream.flush().await
    }
}

/// Some 1.1 KB of JSON, much like the one before.
fn tick(number: usize, dice: &mut Dice) -> String {
    let mut text = format!("{{\"type\":\"tick\",\"number\":{number},\"quotes\":[");
    for quote in 0..QUOTES {
        let comma = if quote == 0 { "" } else { "," };
        let (bid, size) = (10_000 + dice.next() % 1_000, dice.next() % 500);
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "{comma}{{\"symbol\":\"SYM{quote:02}\",\"bid\":{bid},\"ask\":{},\"size\":{size},\"venue\":\"XNAS\"}}",
            bid + 3
        );
    }
    text.push_str("]}");
    text
}
