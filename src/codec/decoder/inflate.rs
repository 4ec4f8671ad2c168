//! gzip (RFC 1952, any number of members) and deflate (RFC 1950, or RFC 1951 where the header is
//! none, as browsers take it).

use flate2::{Decompress, FlushDecompress, Status};

use super::{DecodeError, Run};

/// Members that one call starts at most: tiny ones cost more to set up than to inflate.
const MEMBERS: usize = 8;

/// gzip's first bytes.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

pub(super) struct Inflater {
    state: State,
}

enum State {
    /// A gzip member begins, if two bytes say so; `first`: the first of them was seen.
    Member { first: bool, members: bool },
    /// A deflate body begins; its first byte, if it was seen.
    Sniff(Option<u8>),
    /// Within a member or body.
    Inside {
        inflater: Box<Decompress>,
        gzip: bool,
    },
    /// After a deflate body.
    Over,
}

impl Inflater {
    pub(super) fn gzip() -> Self {
        Self {
            state: State::Member {
                first: false,
                members: false,
            },
        }
    }

    pub(super) fn deflate() -> Self {
        Self {
            state: State::Sniff(None),
        }
    }

    pub(super) fn complete(&self) -> bool {
        matches!(
            self.state,
            State::Over
                | State::Member {
                    first: false,
                    members: true
                }
        )
    }

    pub(super) fn run(&mut self, input: &[u8], output: &mut [u8]) -> Result<Run, DecodeError> {
        let mut run = Run {
            taken: 0,
            made: 0,
            more: false,
        };
        let mut begun = 0;
        loop {
            let rest = &input[run.taken..];
            if let State::Inside { inflater, gzip } = &mut self.state {
                let gzip = *gzip;
                let (status, taken, made) = inflate(inflater, rest, &mut output[run.made..])?;
                run.taken += taken;
                run.made += made;
                if status != Status::StreamEnd {
                    run.more = run.made == output.len();
                    return Ok(run);
                }
                self.state = if gzip {
                    State::Member {
                        first: false,
                        members: true,
                    }
                } else {
                    State::Over
                };
                continue;
            }
            let Some(&byte) = rest.first() else {
                return Ok(run);
            };
            if begun == MEMBERS {
                return Ok(run);
            }
            run.taken += 1;
            if self.begin(byte)? {
                begun += 1;
            }
        }
    }

    /// One byte between bodies; true: a body begins with it.
    fn begin(&mut self, byte: u8) -> Result<bool, DecodeError> {
        match self.state {
            State::Member { first, members } => {
                if byte != MAGIC[usize::from(first)] {
                    return Err(if members {
                        DecodeError::Trailing
                    } else {
                        DecodeError::Corrupt
                    });
                }
                if first {
                    self.enter(member(), true, &MAGIC)?;
                } else {
                    self.state = State::Member {
                        first: true,
                        members,
                    };
                }
                Ok(first)
            }
            State::Sniff(None) => {
                self.state = State::Sniff(Some(byte));
                Ok(false)
            }
            State::Sniff(Some(first)) => {
                let head = [first, byte];
                self.enter(body(is_zlib(head)), false, &head)?;
                Ok(true)
            }
            State::Inside { .. } | State::Over => Err(DecodeError::Trailing),
        }
    }

    /// Starts a body whose first two bytes were looked at already; no output comes of so few, except
    /// where they are a whole raw body.
    fn enter(
        &mut self,
        mut inflater: Decompress,
        gzip: bool,
        head: &[u8],
    ) -> Result<(), DecodeError> {
        let (status, taken, _) = inflate(&mut inflater, head, &mut [])?;
        self.state = match status {
            Status::StreamEnd if taken == head.len() => State::Over,
            Status::StreamEnd => return Err(DecodeError::Trailing),
            _ => State::Inside {
                inflater: Box::new(inflater),
                gzip,
            },
        };
        Ok(())
    }
}

#[allow(clippy::disallowed_methods, reason = "this is codec::decoder")]
fn member() -> Decompress {
    Decompress::new_gzip(15)
}

#[allow(clippy::disallowed_methods, reason = "this is codec::decoder")]
fn body(zlib: bool) -> Decompress {
    Decompress::new(zlib)
}

/// RFC 1950 section 2.2: method 8, a window of at most 32 KiB, and a checksum over both bytes.
fn is_zlib([cmf, flg]: [u8; 2]) -> bool {
    cmf & 0x0f == 8 && cmf >> 4 <= 7 && u16::from_be_bytes([cmf, flg]) % 31 == 0
}

fn inflate(
    inflater: &mut Decompress,
    input: &[u8],
    output: &mut [u8],
) -> Result<(Status, usize, usize), DecodeError> {
    let (seen, made) = (inflater.total_in(), inflater.total_out());
    let status = inflater
        .decompress(input, output, FlushDecompress::None)
        .map_err(|_| DecodeError::Corrupt)?;
    let taken = usize::try_from(inflater.total_in() - seen).unwrap_or(usize::MAX);
    let made = usize::try_from(inflater.total_out() - made).unwrap_or(usize::MAX);
    Ok((status, taken, made))
}
