//! What a client got.

use std::fmt;
use std::io;
use std::time::Instant;

use super::decode;
use super::wire::{Framing, Head};

/// A complete answer, or what there was of it so far.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    /// `HTTP/1.1`, `HTTP/1.0` or `HTTP/2`.
    pub version: String,
    pub head: Head,
    /// The 1xx that came before.
    pub informational: Vec<Head>,
    /// As it came: not decoded.
    pub body: Vec<u8>,
    /// When how many of its bytes came.
    pub pieces: Vec<(Instant, usize)>,
    pub framing: Framing,
    /// The sizes of the chunks.
    pub chunks: Vec<u64>,
    pub trailers: Vec<(String, String)>,
}

impl Reply {
    pub fn new(status: u16, version: &str, head: Head) -> Self {
        Self {
            status,
            version: version.to_owned(),
            head,
            informational: Vec::new(),
            body: Vec::new(),
            pieces: Vec::new(),
            framing: Framing::None,
            chunks: Vec::new(),
            trailers: Vec::new(),
        }
    }

    pub fn keep(&mut self, piece: &[u8]) {
        self.pieces.push((Instant::now(), piece.len()));
        self.body.extend_from_slice(piece);
    }

    /// A header that has one line at most.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.field(name)
    }

    /// Every line of a header.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.head.all(name)
    }

    /// The members of a list header, over all of its lines, trimmed.
    pub fn list(&self, name: &str) -> Vec<String> {
        let members = self.all(name).into_iter().flat_map(|line| line.split(','));
        members.map(|member| member.trim().to_owned()).collect()
    }

    /// Its Content-Encoding, `identity` where there is none.
    pub fn coding(&self) -> &str {
        self.header("content-encoding").unwrap_or("identity")
    }

    /// How often Accept-Encoding stands in Vary, in any letter case.
    pub fn varies(&self) -> usize {
        let members = self.list("vary");
        let coding = |member: &&String| member.eq_ignore_ascii_case("accept-encoding");
        members.iter().filter(coding).count()
    }

    /// The plain body: all codings undone, complete and intact, or the test fails.
    pub fn decoded(&self) -> Vec<u8> {
        let codings = self.list("content-encoding");
        codings
            .iter()
            .rev()
            .fold(self.body.clone(), |body, coding| {
                decode::whole(coding, &body).unwrap_or_else(|error| panic!("not {coding}: {error}"))
            })
    }

    /// The plain body as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.decoded()).expect("UTF-8")
    }

    /// The plain body as JSON.
    pub fn json(&self) -> serde_json::Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub fn trailer(&self, name: &str) -> Option<&str> {
        let mut lines = self
            .trailers
            .iter()
            .filter(|(field, _)| field.eq_ignore_ascii_case(name));
        let line = lines.next().map(|(_, value)| value.as_str());
        assert!(lines.next().is_none(), "several trailers {name}");
        line
    }

    /// Itself, if it has this status; else the test fails and shows what came instead.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        let body = String::from_utf8_lossy(&self.body[..self.body.len().min(500)]);
        assert_eq!(self.status, status, "{:#?}\n{body}", self.head.fields);
        self
    }
}

/// An answer that did not come to its proper end.
#[derive(Debug)]
pub struct Broken {
    /// What there was of it; none where not even a head came.
    pub so_far: Option<Box<Reply>>,
    pub cause: Cause,
}

#[derive(Debug)]
pub enum Cause {
    /// The connection ended, was reset, hung, or said what is not HTTP/1.
    Http1(io::Error),
    /// The stream or the connection was ended with an error.
    Http2(::h2::Error),
}

impl Broken {
    /// What an HTTP/2 peer gave as its reason.
    pub fn reason(&self) -> Option<::h2::Reason> {
        match &self.cause {
            Cause::Http1(_) => None,
            Cause::Http2(error) => error.reason(),
        }
    }

    /// What kind of end an HTTP/1 connection found.
    pub fn kind(&self) -> Option<io::ErrorKind> {
        match &self.cause {
            Cause::Http1(error) => Some(error.kind()),
            Cause::Http2(_) => None,
        }
    }

    /// Cut off by the peer, as opposed to hanging or talking nonsense.
    pub fn was_cut(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        match &self.cause {
            Cause::Http1(error) => matches!(
                error.kind(),
                BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
            ),
            Cause::Http2(error) => error.is_reset() || error.is_go_away() || error.is_io(),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.so_far.as_ref().map(|reply| reply.body.len());
        match bytes {
            Some(bytes) => write!(f, "broken after {bytes} bytes of body: ")?,
            None => write!(f, "broken before the head: ")?,
        }
        match &self.cause {
            Cause::Http1(error) => error.fmt(f),
            Cause::Http2(error) => error.fmt(f),
        }
    }
}
