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

#[test]
fn zz_temp_python() {
    use std::io::Write as _;
    // received: from python
    let data = std::fs::read("/tmp/frames-py/received.bin").unwrap();
    let mut at = 0;
    let take = |at: &mut usize| {
        let n = u32::from_le_bytes(data[*at..*at + 4].try_into().unwrap()) as usize;
        let r = &data[*at + 4..*at + 4 + n];
        *at += 4 + n;
        r
    };
    let mut random = fastrand::Rng::with_seed(1);
    let mut count = 0;
    while at < data.len() {
        let head = take(&mut at);
        let (bits, takeover, n) = (
            head[0],
            head[1] == 1,
            u32::from_le_bytes(head[2..6].try_into().unwrap()),
        );
        let mut r = Inflater::new(bits, takeover, 1 << 22);
        for _ in 0..n {
            let plain = take(&mut at);
            let wire = take(&mut at);
            let cuts = random.usize(..3);
            let pieces = cut(&mut random, wire, cuts);
            assert_eq!(
                inflated(&mut r, &pieces, 30_000).as_deref(),
                Ok(plain),
                "{bits} {takeover}"
            );
            count += 1;
        }
    }
    eprintln!("received from python: {count}");
    let mut out = std::fs::File::create("/tmp/frames-py/sent.bin").unwrap();
    let mut put = |b: &[u8]| {
        out.write_all(&(b.len() as u32).to_le_bytes()).unwrap();
        out.write_all(b).unwrap();
    };
    for bits in 8..=15u8 {
        for takeover in [true, false] {
            for level in [1u8, 3, 6, 9] {
                put(&[bits, u8::from(takeover), 60]);
                let mut s = Deflater::new(level, bits, takeover);
                for _ in 0..60 {
                    let m = plain(&mut random);
                    let mut w = BytesMut::new();
                    let cuts = random.usize(..3);
                    let parts = cut(&mut random, &m, cuts);
                    for (i, p) in parts.iter().enumerate() {
                        s.part(p, i + 1 == parts.len(), &mut w).unwrap();
                    }
                    put(&m);
                    put(&w);
                }
            }
        }
    }
    let rss = || {
        std::fs::read_to_string("/proc/self/statm")
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse::<usize>()
            .unwrap()
            * 4096
    };
    let b = rss();
    let mut keep = vec![];
    for _ in 0..2000 {
        let mut i = Inflater::new(12, true, 1 << 20);
        let mut o = BytesMut::new();
        i.inflate(&[0xf2, 0x48, 0xcd], false, 100, &mut o).unwrap();
        keep.push((i, o));
    }
    eprintln!(
        "bytes an inflater: {}, struct {} {}",
        (rss() - b) / 2000,
        size_of::<Inflater>(),
        size_of::<Deflater>()
    );
}
