//! Whole connections over streams in memory: random messages, fragments, control frames and cuts of
//! the bytes, both ways at once, against engines that live as long as the connection.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod peer;

use std::time::Duration;

use http::{Method, Uri};
use prometheus_client::metrics::gauge::Gauge;
use proptest::prelude::*;
use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::*;
use crate::config::settings::{Log, LogFormat};
use crate::telemetry::{Metrics, Sink};
use peer::{Peer, Said};

/// A running connection, seen from both sides.
struct Scene {
    client: DuplexStream,
    app: DuplexStream,
    running: JoinHandle<()>,
    house: Arc<House>,
    agreed: Option<Agreed>,
}

/// What clients offer.
const OFFERS: [&str; 6] = [
    "",
    "permessage-deflate",
    "permessage-deflate; client_max_window_bits",
    "permessage-deflate; client_max_window_bits=9; server_max_window_bits=8",
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
    "permessage-deflate; client_max_window_bits=15; server_max_window_bits=15",
];

fn scene(offer: &str, policy: WebSocket, wire: usize) -> Scene {
    let metrics = Metrics::new();
    let log = Log {
        level: "info".into(),
        format: LogFormat::Json,
        access: true,
    };
    let sink = Sink::to(&log, std::io::sink(), &metrics).unwrap();
    let pool = Pool::start(1, 0, Duration::from_secs(10), metrics.pool()).unwrap();
    let budget = Budget::new(1 << 20, Gauge::default());
    let house = House::new(pool, 8 << 10, Duration::from_secs(10), budget);
    let deflate = Deflate::agree([offer.as_bytes()], &policy, &house.budget);
    let agreed = deflate.as_ref().map(|deflate| deflate.agreed);
    let (client, ours) = duplex(wire);
    let (app, theirs) = duplex(wire);
    let route = metrics.route("test");
    let contract = Contract {
        ledger: Ledger::open(sink, route, Method::GET, Uri::from_static("/")),
        policy,
        deflate,
        send: Duration::ZERO,
        house: Arc::clone(&house),
    };
    let running = tokio::spawn(Session::new(contract, ours, theirs, &[]).run());
    Scene {
        client,
        app,
        running,
        house,
        agreed,
    }
}

/// What both say, at once, and that all of it arrives.
async fn converse(scene: Scene, seed: u64, from_client: Vec<Said>, from_app: Vec<Said>) {
    let Scene {
        client,
        app,
        running,
        house,
        agreed,
    } = scene;
    let client = Peer::client(client, agreed, seed);
    let app = Peer::server(app, seed);
    let (heard_by_client, heard_by_app) = tokio::join!(
        client.converse(from_client.clone()),
        app.converse(from_app.clone()),
    );
    let messages = |said: &[Said]| -> Vec<Said> {
        let mut said = said.to_vec();
        said.retain(|said| matches!(said, Said::Message { .. }));
        said
    };
    let controls = |said: &[Said]| -> Vec<Said> {
        let mut said = said.to_vec();
        said.retain(|said| !matches!(said, Said::Message { .. }));
        said
    };
    assert!(messages(&heard_by_client) == messages(&from_app));
    assert!(messages(&heard_by_app) == messages(&from_client));
    assert_eq!(controls(&heard_by_client), controls(&from_app));
    assert_eq!(controls(&heard_by_app), controls(&from_client));
    tokio::time::timeout(Duration::from_secs(20), running)
        .await
        .unwrap()
        .unwrap();
    drop(house);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_arrives_as_it_was_said(seed in any::<u64>()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut dice = fastrand::Rng::with_seed(seed);
        let offer = OFFERS[dice.usize(..OFFERS.len())];
        let policy = WebSocket {
            window_bits: dice.u8(9..=15),
            context_takeover: dice.u8(..4) > 0,
            level: dice.u8(1..=9),
            ..WebSocket::default()
        };
        let wire = [1, 7, 100, 4_096, 65_536][dice.usize(..5)];
        let most = if wire < 100 { 3_000 } else { 200_000 };
        let (from_client, from_app) = (peer::talk(&mut dice, most), peer::talk(&mut dice, most));
        runtime.block_on(async {
            let scene = scene(offer, policy, wire);
            let talk = converse(scene, seed, from_client, from_app);
            tokio::time::timeout(Duration::from_secs(60), talk).await
        })?;
    }
}

#[tokio::test]
async fn a_session_that_is_dropped_gives_its_memory_back() {
    let scene = scene(OFFERS[2], WebSocket::default(), 1_000);
    assert!(scene.house.budget.reserve((1 << 20) - 1_000).is_none());
    scene.running.abort();
    assert!(scene.running.await.is_err());
    assert!(scene.house.budget.reserve(1 << 20).is_some());
}

#[test]
fn an_idle_connection_is_small() {
    // Boxes and buffers are beside it; see TRAPS W1 and W2.
    let size = size_of::<Session<DuplexStream, DuplexStream>>();
    assert!(size < session::SIZE, "{size}");
}

#[test]
fn what_a_connection_reserves_is_bounded_by_what_was_agreed() {
    let offer = |text: &str, bits| {
        let policy = WebSocket {
            window_bits: bits,
            ..WebSocket::default()
        };
        let budget = Budget::new(u64::MAX, Gauge::default());
        let deflate = Deflate::agree([text.as_bytes()], &policy, &budget).unwrap();
        needs(deflate.agreed)
    };
    let base = session::SIZE as u64;
    assert_eq!(offer(OFFERS[1], 12), 4_096 + base, "Firefox, Safari");
    assert_eq!(offer(OFFERS[2], 12), 4_096 + 5_120 + base, "Chrome");
    assert_eq!(offer(OFFERS[4], 12), base, "no takeover");
    assert_eq!(offer(OFFERS[5], 15), 4_096 + 40_960 + base);
}
