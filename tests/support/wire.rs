//! HTTP/1 as bytes: heads and bodies, read by a grammar of its own that forgives nothing.
//!
//! Shared by the client and the scripted app; nothing here comes from the proxy's parsers.

use std::io::{self, Read};

/// A head as it came.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// Every byte, the empty line included. Empty for HTTP/2.
    pub raw: Vec<u8>,
    /// The request or status line.
    pub line: String,
    /// In order, in their letter case.
    pub fields: Vec<(String, String)>,
}

impl Head {
    fn parse(raw: Vec<u8>) -> io::Result<Self> {
        let text = String::from_utf8_lossy(&raw);
        let mut lines = text.trim_end_matches("\r\n").split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let fields = lines.map(field).collect::<io::Result<_>>()?;
        Ok(Self { raw, line, fields })
    }

    /// All lines of a field.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let lines = self
            .fields
            .iter()
            .filter(|(field, _)| field.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_str()).collect()
    }

    /// A field that has one line at most.
    pub fn field(&self, name: &str) -> Option<&str> {
        let lines = self.all(name);
        assert!(lines.len() < 2, "several lines of {name}: {lines:?}");
        lines.first().copied()
    }

    /// How the body behind this head is framed, if one may follow.
    pub fn framing(&self) -> io::Result<Framing> {
        let codings = self.all("transfer-encoding");
        let lengths = self.all("content-length");
        match (codings.as_slice(), lengths.as_slice()) {
            ([], []) => Ok(Framing::None),
            ([], [length]) => {
                let length = length
                    .parse()
                    .map_err(|_| malformed("Content-Length", length))?;
                Ok(Framing::Length(length))
            }
            ([coding], []) if coding.eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
            _ => Err(malformed("framing", &format!("{codings:?} {lengths:?}"))),
        }
    }
}

fn field(line: &str) -> io::Result<(String, String)> {
    let parts = line
        .split_once(':')
        .filter(|(name, _)| !name.is_empty() && !name.contains(' '));
    let (name, value) = parts.ok_or_else(|| malformed("field line", line))?;
    Ok((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
}

/// An error that says what is wrong with which text.
pub fn malformed(what: &str, text: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("malformed {what}: {text:?}"),
    )
}

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// There is none.
    #[default]
    None,
    /// After so many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    Close,
    /// With its HTTP/2 stream.
    Stream,
}

/// Bytes that came and were not looked at yet.
pub struct Reader<R> {
    pub source: R,
    buffer: Vec<u8>,
    /// What was looked at since the tape was emptied.
    pub tape: Vec<u8>,
}

impl<R: Read> Reader<R> {
    pub fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            tape: Vec::new(),
        }
    }

    /// Bytes in hand.
    pub fn pending(&self) -> &[u8] {
        &self.buffer
    }

    /// More bytes in hand; false at the end of the connection.
    pub fn fill(&mut self) -> io::Result<bool> {
        let mut piece = [0; 16 * 1024];
        let read = self.source.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..read]);
        Ok(read > 0)
    }

    fn fill_or_fail(&mut self) -> io::Result<()> {
        let ended = || io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended early");
        self.fill()?.then_some(()).ok_or_else(ended)
    }

    /// Takes this many of the bytes in hand.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(count);
        let taken = std::mem::replace(&mut self.buffer, rest);
        self.tape.extend_from_slice(&taken);
        taken
    }

    /// Up to and including a pattern.
    pub fn until(&mut self, pattern: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            let found = memchr::memmem::find(&self.buffer, pattern);
            if let Some(at) = found {
                return Ok(self.take(at + pattern.len()));
            }
            self.fill_or_fail()?;
        }
    }

    /// A head; none where the connection ended before its first byte.
    pub fn head(&mut self) -> io::Result<Option<Head>> {
        if self.buffer.is_empty() && !self.fill()? {
            return Ok(None);
        }
        Head::parse(self.until(b"\r\n\r\n")?).map(Some)
    }

    fn line(&mut self) -> io::Result<String> {
        let line = self.until(b"\r\n")?;
        Ok(String::from_utf8_lossy(&line[..line.len() - 2]).into_owned())
    }
}

/// A body on its way in.
#[derive(Debug)]
pub struct BodyReader {
    framing: Framing,
    /// Bytes left of the body or the chunk.
    left: u64,
    done: bool,
    /// The sizes of the chunks, the last one not counted.
    pub chunks: Vec<u64>,
    pub trailers: Vec<(String, String)>,
}

impl BodyReader {
    pub fn new(framing: Framing) -> Self {
        let left = if let Framing::Length(length) = framing {
            length
        } else {
            0
        };
        let done = matches!(framing, Framing::None | Framing::Length(0));
        Self {
            framing,
            left,
            done,
            chunks: Vec::new(),
            trailers: Vec::new(),
        }
    }

    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The next bytes as they come; none at the proper end of the body.
    pub fn piece(&mut self, reader: &mut Reader<impl Read>) -> io::Result<Option<Vec<u8>>> {
        if self.framing == Framing::Chunked && self.left == 0 && !self.done {
            self.chunk_size(reader)?;
        }
        if self.done {
            return Ok(None);
        }
        if reader.pending().is_empty() && !reader.fill()? {
            if self.framing == Framing::Close {
                self.done = true;
                return Ok(None);
            }
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the body ended early",
            ));
        }
        if self.framing == Framing::Close {
            return Ok(Some(reader.take(reader.pending().len())));
        }
        let count = (reader.pending().len() as u64).min(self.left);
        self.left -= count;
        let piece = reader.take(count as usize);
        if self.left == 0 {
            self.part_ends(reader)?;
        }
        Ok(Some(piece))
    }

    fn chunk_size(&mut self, reader: &mut Reader<impl Read>) -> io::Result<()> {
        let line = reader.line()?;
        let digits = line.split(';').next().unwrap_or_default();
        self.left = u64::from_str_radix(digits, 16).map_err(|_| malformed("chunk size", &line))?;
        if self.left > 0 {
            self.chunks.push(self.left);
            return Ok(());
        }
        loop {
            let line = reader.line()?;
            if line.is_empty() {
                break;
            }
            self.trailers.push(field(&line)?);
        }
        self.done = true;
        Ok(())
    }

    fn part_ends(&mut self, reader: &mut Reader<impl Read>) -> io::Result<()> {
        if self.framing == Framing::Chunked {
            let end = reader.line()?;
            return if end.is_empty() {
                Ok(())
            } else {
                Err(malformed("end of a chunk", &end))
            };
        }
        self.done = true;
        Ok(())
    }
}
