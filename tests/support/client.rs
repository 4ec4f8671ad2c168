//! An HTTP/1 client that sends exactly what the test says and sees exactly what comes.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;

use super::reply::Cause;
use super::stream::Stream;
use super::wire::{BodyReader, Framing, Head, Reader, malformed};
use super::{Broken, Ca, Decoder, Fields, PATIENCE, Pieces, Reply};

/// A connection that is kept until it is dropped.
pub struct Conn {
    reader: Reader<Stream>,
    host: String,
    /// Whether the answer that is due has no body because it was asked for with HEAD.
    head_only: bool,
    answer: BodyReader,
    decoder: Decoder,
}

impl Conn {
    pub fn open(addr: SocketAddr) -> Self {
        Self::over(Stream::tcp(addr), addr.to_string())
    }

    pub fn unix(path: &Path) -> Self {
        Self::over(Stream::unix(path), "localhost".to_owned())
    }

    /// HTTP/1.1 over TLS, to a server that `ca` vouches for under this name.
    pub fn tls(addr: SocketAddr, name: &str, ca: &Ca) -> Self {
        let config = ca.client(&["http/1.1"]);
        Self::over(Stream::client(addr, name, config), name.to_owned())
    }

    /// Over any stream; `host` is what requests will say unless told.
    pub fn over(stream: Stream, host: String) -> Self {
        stream.read_timeout(Some(PATIENCE)).expect("a read timeout");
        Self {
            reader: Reader::new(stream),
            host,
            head_only: false,
            answer: BodyReader::new(Framing::None),
            decoder: Decoder::Plain,
        }
    }

    pub fn stream(&mut self) -> &mut Stream {
        &mut self.reader.source
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the peer takes what is sent");
    }

    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.source.write_all(bytes.as_ref())?;
        self.reader.source.flush()
    }

    /// Sends a request: Host first unless it is among the fields, Content-Length where it has a body.
    pub fn request(&mut self, method: &str, target: &str, fields: Fields<'_>, body: &[u8]) {
        let mut head = format!("{method} {target} HTTP/1.1\r\n");
        let has = |name: &str| {
            fields
                .iter()
                .any(|(field, _)| field.eq_ignore_ascii_case(name))
        };
        if !has("host") {
            head += &format!("Host: {}\r\n", self.host);
        }
        for (name, value) in fields {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() && !has("content-length") && !has("transfer-encoding") {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        self.head_only = method == "HEAD";
        self.send([head.as_bytes(), b"\r\n", body].concat());
    }

    pub fn get(&mut self, target: &str, fields: Fields<'_>) -> Reply {
        self.ask("GET", target, fields, b"")
    }

    pub fn ask(&mut self, method: &str, target: &str, fields: Fields<'_>, body: &[u8]) -> Reply {
        self.request(method, target, fields, body);
        self.reply()
    }

    /// Asks as a client of HTTP/1.0 does, which keeps no connection.
    pub fn get_1_0(&mut self, target: &str, fields: Fields<'_>) -> Reply {
        let mut head = format!("GET {target} HTTP/1.0\r\nHost: {}\r\n", self.host);
        for (name, value) in fields {
            head += &format!("{name}: {value}\r\n");
        }
        self.send(head + "\r\n");
        self.reply()
    }

    /// A chunk of a request body that was announced as chunked.
    pub fn chunk(&mut self, bytes: &[u8]) {
        self.send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat());
    }

    /// The next answer, complete.
    #[track_caller]
    pub fn reply(&mut self) -> Reply {
        self.try_reply().unwrap_or_else(|broken| panic!("{broken}"))
    }

    pub fn try_reply(&mut self) -> Result<Reply, Broken> {
        let head = self.try_head();
        let reply = head.map_err(|error| Broken {
            so_far: None,
            cause: Cause::Http1(error),
        })?;
        self.try_rest(reply)
    }

    /// The next answer's head; its body is then read with [`Pieces::piece`] or [`Self::rest`].
    #[track_caller]
    pub fn head(&mut self) -> Reply {
        self.try_head()
            .unwrap_or_else(|error| panic!("no head: {error}"))
    }

    pub fn try_head(&mut self) -> io::Result<Reply> {
        let mut informational = Vec::new();
        loop {
            let (version, status, head) = self.status_line()?;
            if matches!(status, 100 | 102..200) {
                informational.push(head);
                continue;
            }
            let framing = self.framing(status, &head)?;
            let mut reply = Reply::new(status, &version, head);
            self.answer = BodyReader::new(framing);
            self.head_only = false;
            if framing != Framing::None {
                self.decoder = Decoder::of(&reply.list("content-encoding"));
            }
            reply.informational = informational;
            reply.framing = framing;
            return Ok(reply);
        }
    }

    /// The next head of any status: how a 1xx is seen before the answer is there.
    pub fn any_head(&mut self) -> io::Result<Head> {
        self.status_line().map(|(_, _, head)| head)
    }

    fn status_line(&mut self) -> io::Result<(String, u16, Head)> {
        let ended = || io::Error::new(io::ErrorKind::UnexpectedEof, "closed without an answer");
        let head = self.reader.head()?.ok_or_else(ended)?;
        let mut parts = head.line.splitn(3, ' ');
        let version = parts.next().unwrap_or_default().to_owned();
        let status = parts.next().unwrap_or_default();
        let status: u16 = status
            .parse()
            .map_err(|_| malformed("status line", &head.line))?;
        if !matches!(version.as_str(), "HTTP/1.1" | "HTTP/1.0") {
            return Err(malformed("version", &head.line));
        }
        Ok((version, status, head))
    }

    /// RFC 9112 section 6.3.
    fn framing(&self, status: u16, head: &Head) -> io::Result<Framing> {
        let framing = head.framing()?;
        if self.head_only || matches!(status, 101 | 204 | 304) {
            return Ok(Framing::None);
        }
        Ok(if framing == Framing::None {
            Framing::Close
        } else {
            framing
        })
    }

    /// The body behind a head that was read already.
    #[track_caller]
    pub fn rest(&mut self, reply: Reply) -> Reply {
        self.try_rest(reply)
            .unwrap_or_else(|broken| panic!("{broken}"))
    }

    pub fn try_rest(&mut self, mut reply: Reply) -> Result<Reply, Broken> {
        loop {
            match self.try_piece() {
                Ok(Some(piece)) => reply.keep(&piece),
                Ok(None) => break,
                Err(error) => {
                    let cause = Cause::Http1(error);
                    return Err(Broken {
                        so_far: Some(Box::new(reply)),
                        cause,
                    });
                }
            }
        }
        reply.chunks = std::mem::take(&mut self.answer.chunks);
        reply.trailers = std::mem::take(&mut self.answer.trailers);
        Ok(reply)
    }

    pub fn try_piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.answer.piece(&mut self.reader)
    }

    /// Raw bytes up to and including a pattern: after an upgrade, or where HTTP does not help.
    #[track_caller]
    pub fn read_until(&mut self, pattern: impl AsRef<[u8]>) -> Vec<u8> {
        self.reader.until(pattern.as_ref()).unwrap_or_else(|error| {
            let pending = String::from_utf8_lossy(self.reader.pending());
            panic!("{error}; what came: {pending:?}")
        })
    }

    /// Raw bytes as they come; none at the end.
    pub fn raw(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.reader.pending().is_empty() && !self.reader.fill()? {
            return Ok(None);
        }
        Ok(Some(self.reader.take(self.reader.pending().len())))
    }

    /// Waits until the peer ends the connection, and gives what it still sent.
    #[track_caller]
    pub fn closed(&mut self) -> Vec<u8> {
        loop {
            match self.reader.fill() {
                Ok(true) => {}
                Err(error) if hung(&error) => panic!("the peer does not close"),
                Ok(false) | Err(_) => return self.reader.take(self.reader.pending().len()),
            }
        }
    }

    /// Ends the connection with RST.
    pub fn reset(self) {
        self.reader.source.reset().expect("a reset");
    }
}

fn hung(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

impl Pieces for Conn {
    fn piece(&mut self) -> Option<Vec<u8>> {
        self.try_piece()
            .unwrap_or_else(|error| panic!("the body breaks off: {error}"))
    }

    fn decoder(&mut self) -> &mut Decoder {
        &mut self.decoder
    }
}
