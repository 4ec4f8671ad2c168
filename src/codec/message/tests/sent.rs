//! Deflater.

use bytes::BytesMut;
use flate2::{Decompress, FlushDecompress};

use super::puff::puff;
use super::{cut, plain};
use crate::codec::message::{Deflater, HISTORY, TAIL};

/// A client with one inflater for as long as the connection lives.
struct Client {
    inflater: Decompress,
    takeover: bool,
}

impl Client {
    #[allow(clippy::disallowed_methods, reason = "the peer in a test")]
    fn new(takeover: bool) -> Self {
        Self {
            inflater: Decompress::new(false),
            takeover,
        }
    }

    fn receive(&mut self, payload: &[u8], length: usize) -> Vec<u8> {
        let wire = [payload, &TAIL].concat();
        let mut message = Vec::with_capacity(length + 1);
        let before = self.inflater.total_in();
        self.inflater
            .decompress_vec(&wire, &mut message, FlushDecompress::Sync)
            .expect("valid deflate");
        assert_eq!(self.inflater.total_in() - before, wire.len() as u64);
        if !self.takeover {
            self.inflater.reset(false);
        }
        message
    }
}

/// How a test's messages are agreed to be sent.
fn forms() -> impl Iterator<Item = (u8, u8, bool)> {
    let windows = (8..=15).flat_map(|bits| [(bits, true), (bits, false)]);
    windows.flat_map(|(bits, takeover)| [1, 2, 4, 6, 9].map(|level| (level, bits, takeover)))
}

#[test]
fn a_client_with_one_inflater_reads_every_message_and_no_distance_leaves_the_window() {
    let mut random = fastrand::Rng::with_seed(1);
    for (level, bits, takeover) in forms() {
        let mut sender = Deflater::new(level, bits, takeover);
        let mut client = Client::new(takeover);
        let mut window = Vec::new();
        for _ in 0..10 {
            let message = plain(&mut random);
            if random.u8(..5) == 0 {
                // It goes plain: neither side's history hears of it.
                continue;
            }
            let mut wire = BytesMut::new();
            let cuts = random.usize(..4);
            let parts = cut(&mut random, &message, cuts);
            for (at, part) in parts.iter().enumerate() {
                let last = at + 1 == parts.len();
                sender
                    .part(part, last, &mut wire)
                    .expect("any bytes deflate");
            }
            let form = format!("level {level}, window {bits}, takeover {takeover}");
            assert_eq!(client.receive(&wire, message.len()), message, "{form}");
            let start = window.len();
            let farthest = puff(&wire, &mut window);
            assert_eq!(&window[start..], message, "{form}");
            assert!(farthest <= 1 << bits, "{form}: {farthest}");
            assert!(takeover || farthest <= message.len(), "{form}: {farthest}");
            if !takeover {
                window.clear();
            }
            assert!(sender.held() <= HISTORY.min(1 << bits));
        }
    }
}

#[test]
fn each_part_can_be_read_when_it_is_there() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut sender = Deflater::new(6, 12, true);
    let mut client = Client::new(true);
    let message = plain(&mut random);
    let mut read = Vec::with_capacity(1 << 20);
    for (at, part) in message.chunks(97).enumerate() {
        let mut wire = BytesMut::new();
        sender
            .part(part, false, &mut wire)
            .expect("any bytes deflate");
        assert!(wire.ends_with(&TAIL), "the tail of a part is not taken off");
        client
            .inflater
            .decompress_vec(&wire, &mut read, FlushDecompress::Sync)
            .expect("valid deflate");
        assert_eq!(read, message[..message.len().min((at + 1) * 97)]);
    }
    let mut wire = BytesMut::new();
    sender.part(&[], true, &mut wire).expect("nothing deflates");
    assert_eq!(&wire[..], [0], "an empty end is one byte");
    assert_eq!(client.receive(&wire, 0), b"");
}

#[test]
fn what_does_not_shrink_is_left_plain_and_is_no_history() {
    let mut random = fastrand::Rng::with_seed(3);
    let noise: Vec<u8> = (0..900).map(|_| random.u8(..)).collect();
    let mut sender = Deflater::new(6, 12, true);
    let mut wire = BytesMut::from(&b"before"[..]);
    for message in [&noise[..], b"", b"a", b"ab"] {
        assert_eq!(sender.whole(message, &mut wire), Ok(false));
        assert_eq!((&wire[..], sender.held()), (&b"before"[..], 0));
    }
    // Sent twice as a compressed message, the second one is a reference to the first.
    sender
        .part(&noise, true, &mut wire)
        .expect("any bytes deflate");
    wire.clear();
    assert_eq!(sender.whole(&noise, &mut wire), Ok(true));
    assert!(wire.len() < 20, "{}", wire.len());
}

#[test]
fn history_makes_similar_messages_small_and_costs_no_more_than_itself() {
    let message = |seq: u32| {
        let row = format!(r#"{{"type": "tick", "channel": "market.l1", "seq": {seq}, "ask": "#);
        row.repeat(3)
    };
    let mut sizes = Vec::new();
    for takeover in [true, false] {
        let mut sender = Deflater::new(6, 12, takeover);
        assert_eq!(sender.held(), 0, "nothing is held before the first message");
        let mut sent = 0;
        for seq in 0..100 {
            let mut wire = BytesMut::new();
            assert_eq!(sender.whole(message(seq).as_bytes(), &mut wire), Ok(true));
            sent += wire.len();
            assert_eq!(takeover, sender.held() > 0);
        }
        sizes.push(sent);
    }
    assert!(sizes[0] * 3 < sizes[1], "{sizes:?}");
}
