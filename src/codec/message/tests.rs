//! Both directions against engines that live as long as their connection, and against an inflater
//! written from RFC 1951 alone, which also says how far back a stream reaches.

mod puff;
mod received;
mod sent;

use bytes::BytesMut;

use super::*;
use crate::codec::DecodeError;

/// Something like what applications say: ticks, chatter, hex, noise, runs, nothing.
fn plain(random: &mut fastrand::Rng) -> Vec<u8> {
    let length = match random.u8(..10) {
        0 => 0,
        1..=3 => random.usize(1..80),
        4..=8 => random.usize(80..3_000),
        _ => random.usize(3_000..90_000),
    };
    let mut bytes = Vec::with_capacity(length + 64);
    let kind = random.u8(..5);
    while bytes.len() < length {
        match kind {
            0 | 1 => bytes.extend_from_slice(row(random).as_bytes()),
            2 => bytes.extend_from_slice(format!("{:016x}", random.u64(..)).as_bytes()),
            3 => bytes.push(random.u8(..)),
            _ => bytes.extend(std::iter::repeat_n(random.u8(..4), random.usize(1..600))),
        }
    }
    bytes.truncate(length);
    bytes
}

fn row(random: &mut fastrand::Rng) -> String {
    let symbol = ["AAPL", "MSFT", "NVDA", "AMZN", "GOOG"][random.usize(..5)];
    let (bid, volume) = (random.u32(9_000..20_000), random.u32(100..99_999));
    format!(r#"{{"symbol": "{symbol}", "bid": {bid}, "volume": {volume}, "exchange": "XNAS"}}, "#)
}

/// A message as it came, in these pieces and with so much room a call.
fn inflated(
    inflater: &mut Inflater,
    pieces: &[&[u8]],
    room: usize,
) -> Result<Vec<u8>, DecodeError> {
    let mut all = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let last = at + 1 == pieces.len();
        let mut rest = *piece;
        loop {
            let mut output = BytesMut::new();
            let step = inflater.inflate(rest, last, room, &mut output)?;
            assert!(output.len() <= room, "{} bytes of {room}", output.len());
            rest = &rest[step.consumed..];
            all.extend_from_slice(&output);
            if step.done {
                assert!(rest.is_empty());
                break;
            }
            assert!(step.consumed > 0 || !output.is_empty(), "no progress");
        }
    }
    Ok(all)
}

/// The bytes cut at so many random places; some pieces are empty.
fn cut<'a>(random: &mut fastrand::Rng, bytes: &'a [u8], cuts: usize) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = (0..cuts).map(|_| random.usize(..=bytes.len())).collect();
    places.sort_unstable();
    places.push(bytes.len());
    let mut start = 0;
    let mut pieces = Vec::new();
    for place in places {
        pieces.push(&bytes[start..place]);
        start = place;
    }
    pieces
}

#[test]
fn what_one_sends_the_other_receives_in_every_agreed_form() {
    let mut random = fastrand::Rng::with_seed(4);
    for bits in 8..=15 {
        for takeover in [true, false] {
            let mut sender = Deflater::new(6, bits, takeover);
            let mut receiver = Inflater::new(bits, takeover, 1 << 20);
            for _ in 0..60 {
                let message = plain(&mut random);
                let mut wire = BytesMut::new();
                if !sender
                    .whole(&message, &mut wire)
                    .expect("any bytes deflate")
                {
                    assert!(wire.is_empty());
                    continue;
                }
                assert!(wire.len() < message.len());
                let cuts = random.usize(..4);
                let pieces = cut(&mut random, &wire, cuts);
                let room = random.usize(1..5_000);
                assert_eq!(inflated(&mut receiver, &pieces, room), Ok(message));
            }
        }
    }
}
