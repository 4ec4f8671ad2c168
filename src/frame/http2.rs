//! HTTP/2's frames as they pass (RFC 9113 section 4.1), and how many of them are for nothing.
//!
//! The h2 crate bounds what a frame may make it hold: heads, streams that are reset before they are
//! accepted, acknowledgements that are owed. It does not bound how often a client may make it work:
//! PING, SETTINGS, PRIORITY and empty DATA cost a client nothing and are answered for ever (the
//! floods of CVE-2019-9512 to 9518). So they are counted here, as are resets (CVE-2023-44487).

use std::time::Duration;

/// What a client sends before its first frame (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame's header.
const HEADER: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;

/// What a reset costs: the stream before it made an application begin to work.
const RESET: u32 = 5;

/// Frames for nothing that may come at once. A client that measures its bandwidth pings some hundred
/// times a second; floods come by the hundred thousand.
const SAVED: u32 = 10_000;

/// And so many each second.
const EARNED: u32 = 1_000;

/// Finds the frames in a stream of bytes.
#[derive(Debug)]
pub struct Frames {
    header: [u8; HEADER],
    have: usize,
    skip: usize,
}

/// How long the frames for nothing are borne with.
#[derive(Debug)]
pub struct Forbearance {
    left: u32,
    /// When what was earned was last added: since the connection began.
    at: Duration,
}

impl Frames {
    /// From the preface on.
    #[must_use]
    pub fn new() -> Self {
        Self {
            header: [0; HEADER],
            have: 0,
            skip: PREFACE.len(),
        }
    }

    /// What the frames cost that begin in these bytes, the next of the stream.
    pub fn cost(&mut self, mut bytes: &[u8]) -> u32 {
        let mut cost = 0;
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let taken = (HEADER - self.have).min(bytes.len());
            self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &bytes[taken..];
            if self.have < HEADER {
                return cost;
            }
            self.have = 0;
            let [a, b, c, kind, flags, ..] = self.header;
            self.skip = u32::from_be_bytes([0, a, b, c]) as usize;
            cost += price(kind, flags, self.skip);
        }
    }
}

impl Default for Frames {
    fn default() -> Self {
        Self::new()
    }
}

/// What carries something is free, as is WINDOW_UPDATE: clients send one for each piece they read.
fn price(kind: u8, flags: u8, length: usize) -> u32 {
    match kind {
        DATA if length > 0 || flags & END_STREAM != 0 => 0,
        HEADERS | WINDOW_UPDATE => 0,
        RST_STREAM => RESET,
        _ => 1,
    }
}

impl Forbearance {
    /// All of it.
    #[must_use]
    pub fn new() -> Self {
        Self {
            left: SAVED,
            at: Duration::ZERO,
        }
    }

    /// Spends `cost`, `age` after the connection began; false: it is at an end.
    pub fn bears(&mut self, cost: u32, age: Duration) -> bool {
        if cost == 0 {
            return true;
        }
        let since = age.saturating_sub(self.at).as_millis();
        let earned = since * u128::from(EARNED) / 1_000;
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            self.left = self.left.saturating_add(earned).min(SAVED);
            self.at = age;
        }
        let left = self.left.checked_sub(cost);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

impl Default for Forbearance {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    #[test]
    fn frames_are_found_however_the_bytes_are_cut() {
        let bytes = [
            &PREFACE[..],
            &frame(4, 0, &[0; 18]),
            &frame(HEADERS, 4, b"a head"),
            &frame(DATA, 0, &[7; 300]),
            &frame(DATA, 0, b""),
            &frame(DATA, END_STREAM, b""),
            &frame(WINDOW_UPDATE, 0, &[0, 0, 1, 0]),
            &frame(6, 0, &[0; 8]),
            &frame(RST_STREAM, 0, &[0, 0, 0, 8]),
            &frame(0xfe, 0, b"?"),
        ]
        .concat();
        let expected = 1 + 1 + 1 + RESET + 1;
        for size in [1, 2, 3, 8, 9, 10, 100, bytes.len()] {
            let mut frames = Frames::new();
            let cost: u32 = bytes.chunks(size).map(|piece| frames.cost(piece)).sum();
            assert_eq!(cost, expected, "by {size}");
        }
    }

    #[test]
    fn a_steady_trickle_is_borne_for_ever_and_a_flood_is_not() {
        let mut trickle = Forbearance::new();
        assert!((0..600).all(|second| trickle.bears(EARNED, Duration::from_secs(second))));
        let mut flood = Forbearance::new();
        let borne = (0..1_000_000)
            .take_while(|number| flood.bears(1, Duration::from_micros(5 * number)))
            .count();
        assert!((10_000..10_100).contains(&borne), "{borne}");
    }
}
