//! Codings undone: whole bodies strictly, streams as far as they came.

use std::io::{self, Read as _, Write as _};

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// The largest window that browsers take, 8 MiB.
const ZSTD_WINDOW_LOG: u32 = 23;

/// A body in one coding, decoded. Cut, corrupt or followed by anything is an error.
pub fn whole(coding: &str, body: &[u8]) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    let rest = match coding.to_ascii_lowercase().as_str() {
        "identity" => return Ok(body.to_vec()),
        "gzip" | "x-gzip" => {
            let mut gzip = flate2::bufread::GzDecoder::new(body);
            gzip.read_to_end(&mut plain)?;
            gzip.into_inner().len()
        }
        "deflate" => {
            let mut zlib = flate2::bufread::ZlibDecoder::new(body);
            zlib.read_to_end(&mut plain)?;
            zlib.into_inner().len()
        }
        "br" => {
            // Byte by byte, so that the decoder takes no more than it needs.
            let mut rest = OneByOne(body);
            brotli::BrotliDecompress(&mut rest, &mut plain)?;
            rest.0.len()
        }
        "zstd" => return zstd_whole(body),
        unknown => return Err(io::Error::other(format!("unknown coding {unknown:?}"))),
    };
    if rest == 0 {
        Ok(plain)
    } else {
        Err(io::Error::other("bytes after the end"))
    }
}

struct OneByOne<'a>(&'a [u8]);

impl io::Read for OneByOne<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let one = into.len().min(1);
        self.0.read(&mut into[..one])
    }
}

fn zstd_whole(body: &[u8]) -> io::Result<Vec<u8>> {
    let mut decoder = Zstd::new();
    let plain = decoder.push(body)?;
    if decoder.ended && skippable(&decoder.rest) {
        Ok(plain)
    } else {
        Err(io::Error::other("cut, or bytes after the end"))
    }
}

/// Nothing, or frames that decoders skip (RFC 8878 section 3.1.2), complete.
fn skippable(mut rest: &[u8]) -> bool {
    while let [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, content @ ..] = rest {
        let size = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        match content.get(size..) {
            Some(next) => rest = next,
            None => return false,
        }
    }
    rest.is_empty()
}

/// Decodes what came of a stream so far.
pub enum Decoder {
    Plain,
    Gzip(Box<flate2::write::GzDecoder<Vec<u8>>>),
    Brotli(Box<brotli::DecompressorWriter<Vec<u8>>>),
    Zstd(Zstd),
}

impl Decoder {
    /// Of a body in these codings: plain if they are not one that is known.
    pub fn of(codings: &[String]) -> Self {
        let lower = codings.first().map(|coding| coding.to_ascii_lowercase());
        match lower.as_deref() {
            Some(known @ ("gzip" | "br" | "zstd")) if codings.len() == 1 => Self::new(known),
            _ => Self::Plain,
        }
    }

    pub fn new(coding: &str) -> Self {
        match coding {
            "identity" => Self::Plain,
            "gzip" => Self::Gzip(Box::new(flate2::write::GzDecoder::new(Vec::new()))),
            "br" => {
                let decoder = brotli::DecompressorWriter::new(Vec::new(), 4096);
                Self::Brotli(Box::new(decoder))
            }
            "zstd" => Self::Zstd(Zstd::new()),
            other => panic!("no decoder for {other:?}"),
        }
    }

    /// Takes coded bytes, gives the plain ones that they complete.
    pub fn push(&mut self, coded: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(coded.to_vec()),
            Self::Gzip(decoder) => {
                decoder.write_all(coded)?;
                decoder.flush()?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            Self::Brotli(decoder) => {
                decoder.write_all(coded)?;
                // It asks for more input while it still holds output: its own buffer was full.
                let mut seen = None;
                while seen != Some(decoder.get_ref().len()) {
                    seen = Some(decoder.get_ref().len());
                    let _ = decoder.write(&[])?;
                }
                Ok(std::mem::take(decoder.get_mut()))
            }
            Self::Zstd(decoder) => decoder.push(coded),
        }
    }
}

pub struct Zstd {
    context: DCtx<'static>,
    ended: bool,
    /// What follows its end.
    rest: Vec<u8>,
}

impl Zstd {
    #[allow(
        clippy::disallowed_methods,
        reason = "tests decode independently of the code they test"
    )]
    fn new() -> Self {
        let mut context = DCtx::create();
        context
            .set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))
            .unwrap();
        Self {
            context,
            ended: false,
            rest: Vec::new(),
        }
    }

    fn push(&mut self, coded: &[u8]) -> io::Result<Vec<u8>> {
        let mut input = InBuffer::around(coded);
        let mut plain = Vec::new();
        let mut piece = vec![0_u8; 128 * 1024];
        loop {
            if self.ended {
                self.rest.extend_from_slice(&coded[input.pos()..]);
                return Ok(plain);
            }
            let mut output = OutBuffer::around(piece.as_mut_slice());
            let hint = self.context.decompress_stream(&mut output, &mut input);
            let hint = hint.map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))?;
            let filled = output.pos();
            plain.extend_from_slice(&piece[..filled]);
            self.ended = hint == 0;
            let starved = input.pos() == coded.len() && filled < piece.len();
            if starved && !self.ended {
                return Ok(plain);
            }
        }
    }
}

/// An answer that is read piece by piece.
pub trait Pieces {
    /// The next bytes of the body as they come; none at its proper end.
    fn piece(&mut self) -> Option<Vec<u8>>;

    /// The decoder that goes with the answer under way.
    fn decoder(&mut self) -> &mut Decoder;

    /// Reads until the decoded bytes hold `pattern`, and gives them all: what was decodable then.
    fn plain_until(&mut self, pattern: &str) -> Vec<u8> {
        let mut plain = Vec::new();
        while memchr::memmem::find(&plain, pattern.as_bytes()).is_none() {
            let shown = || String::from_utf8_lossy(&plain).into_owned();
            let piece = self.piece();
            let piece = piece.unwrap_or_else(|| panic!("ended before {pattern:?}: {:?}", shown()));
            plain.extend(self.decoder().push(&piece).expect("decodable so far"));
        }
        plain
    }
}

/// Coded as an app does it.
pub fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(plain).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
