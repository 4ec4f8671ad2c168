//! WebSocket messages, one after the other: `cargo bench --bench message`.
//!
//! The ticks have the shape of `ticks()` in the bench beside the stacks in use today: JSON of about
//! 1.1 KB. Each is sent by the next of so many connections, since what a connection keeps has to come
//! through the processor's caches. Ratios are printed once a candidate, time is criterion's and a
//! message's. A live stream a connection is there to compare with.

use std::fmt::Write as _;
use std::hint::black_box;

use bytes::BytesMut;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use flate2::{Compress, Compression, FlushCompress};
use thinwire::codec::message::{Deflater, Inflater};
use thinwire::frame::websocket::{Event, Kind, Mask, Message, Parser, Sender, Writer};

const SYMBOLS: [&str; 10] = [
    "AAPL", "MSFT", "NVDA", "AMZN", "GOOG", "META", "TSLA", "AVGO", "BRKB", "JPM",
];

/// Connections that take turns.
const CONNECTIONS: [usize; 2] = [1, 2_000];

/// Deflaters by level, window and takeover; the history is 4 KiB or the window.
const FORMS: [(u8, u8, bool); 8] = [
    (6, 15, true),
    (6, 12, true),
    (6, 11, true),
    (6, 9, true),
    (4, 12, true),
    (2, 12, true),
    (1, 12, true),
    (6, 12, false),
];

fn ticks() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut prices = [0; 10];
    let tick = |seq: usize| {
        let head = format!(r#"{{"type": "tick", "channel": "market.l1", "seq": {seq}, "data": ["#);
        let mut text = head;
        for row in 0.. {
            let at = (seq + row) % 10;
            if prices[at] == 0 {
                prices[at] = 10_000 + 1_700 * (row as i32 + 1);
            }
            prices[at] += random.i32(-40..=40);
            let money = |cents: i32| f64::from(cents) / 100.0;
            let (bid, last, ask) = (prices[at] - 1, prices[at], prices[at] + 1);
            let comma = if row == 0 { "" } else { ", " };
            let _ = write!(
                text,
                r#"{comma}{{"symbol": "{}", "bid": {}, "ask": {}, "last": {}, "volume": {}, "#,
                SYMBOLS[at],
                money(bid),
                money(ask),
                money(last),
                random.u32(100..99_999),
            );
            let time = 1_760_000_000_000 + seq as u64 * 50;
            let _ = write!(text, r#""exchange": "XNAS", "ts": {time}}}"#);
            if text.len() >= 1_058 {
                break;
            }
        }
        text.push_str("]}");
        text.into_bytes()
    };
    (0..1_000).map(tick).collect()
}

/// Which connection is next, and what it says; each says all ticks in their order.
struct Turns {
    connections: usize,
    turn: usize,
}

impl Turns {
    fn new(connections: usize) -> Self {
        Self {
            connections,
            turn: 0,
        }
    }

    fn next<'a>(&mut self, ticks: &'a [Vec<u8>]) -> (usize, &'a [u8]) {
        let (connection, round) = (self.turn % self.connections, self.turn / self.connections);
        self.turn += 1;
        (connection, &ticks[(connection + round) % ticks.len()])
    }
}

fn sent(criterion: &mut Criterion) {
    let ticks = ticks();
    let mut group = criterion.benchmark_group("sent");
    for connections in CONNECTIONS {
        for (level, bits, takeover) in FORMS {
            let mut senders: Vec<Deflater> = (0..connections)
                .map(|_| Deflater::new(level, bits, takeover))
                .collect();
            let (mut plain, mut coded) = (0, 0);
            let mut turns = Turns::new(connections);
            let mut output = BytesMut::new();
            let name = format!("level {level} window {bits} takeover {takeover}");
            group.bench_function(BenchmarkId::new(&name, connections), |b| {
                b.iter(|| {
                    let (connection, tick) = turns.next(&ticks);
                    output.clear();
                    let shrank = senders[connection].whole(tick, &mut output);
                    assert!(shrank.expect("any bytes deflate"));
                    plain += tick.len();
                    coded += output.len();
                });
            });
            let (ratio, held) = (coded as f64 / plain as f64, senders[0].held());
            println!(
                "{name}, {connections}: {:.1} %, {held} bytes held",
                ratio * 100.0
            );
        }
        let mut streams: Vec<Compress> = (0..connections)
            .map(|_| Compress::new_with_window_bits(Compression::new(6), false, 12))
            .collect();
        let mut turns = Turns::new(connections);
        let mut output = Vec::with_capacity(4_096);
        group.bench_function(BenchmarkId::new("live stream", connections), |b| {
            b.iter(|| {
                let (connection, tick) = turns.next(&ticks);
                output.clear();
                let stream = &mut streams[connection];
                black_box(stream.compress_vec(tick, &mut output, FlushCompress::Sync)).is_ok()
            });
        });
    }
    group.finish();
}

fn received(criterion: &mut Criterion) {
    let ticks = ticks();
    let mut client = Deflater::new(6, 12, true);
    // From an empty history on: every connection begins with the first.
    let wires: Vec<BytesMut> = ticks
        .iter()
        .map(|tick| {
            let mut wire = BytesMut::new();
            let shrank = client.whole(tick, &mut wire);
            assert!(shrank.expect("any bytes deflate"));
            wire
        })
        .collect();
    let mut group = criterion.benchmark_group("received");
    for connections in CONNECTIONS {
        let new = || Inflater::new(12, true, 1 << 20);
        let mut receivers: Vec<Inflater> = (0..connections).map(|_| new()).collect();
        let (mut turn, mut output) = (0, BytesMut::new());
        group.bench_function(BenchmarkId::new("window 12", connections), |b| {
            b.iter(|| {
                let (connection, round) = (turn % connections, turn / connections);
                turn += 1;
                let at = round % wires.len();
                if at == 0 {
                    receivers[connection] = new();
                }
                let (mut rest, mut done) = (&wires[at][..], false);
                output.clear();
                while !done {
                    let step = receivers[connection].inflate(rest, true, 64 << 10, &mut output);
                    let step = step.expect("it was deflated above");
                    rest = &rest[step.consumed..];
                    done = step.done;
                }
                assert_eq!(output.len(), ticks[at].len());
            });
        });
    }
    group.finish();
}

fn framed(criterion: &mut Criterion) {
    let ticks = ticks();
    let message = Message {
        kind: Kind::Text,
        deflated: false,
    };
    let mut wire = BytesMut::new();
    let mut writer = Writer::default();
    let mut write = |tick: &[u8], wire: &mut BytesMut| {
        let mask = Mask::new([0x37, 0xfa, 0x21, 0x3d]);
        writer.frame(message, true, tick, Some(mask), wire);
    };
    criterion.bench_function("written, masked", |b| {
        b.iter(|| {
            wire.clear();
            write(black_box(&ticks[7]), &mut wire);
        });
    });
    let mut parser = Parser::new(Sender::Client, true, 1 << 20);
    criterion.bench_function("written, masked, parsed", |b| {
        b.iter(|| {
            write(&ticks[7], &mut wire);
            let event = parser.next(&mut wire).expect("a valid frame");
            assert!(matches!(event, Some(Event::Data(piece)) if piece.ends()));
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .warm_up_time(std::time::Duration::from_millis(500))
        .measurement_time(std::time::Duration::from_secs(1))
        .sample_size(20);
    targets = sent, received, framed
}
criterion_main!(benches);
