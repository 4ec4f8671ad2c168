//! WebSocket, terminated: rules of RFC 6455 and RFC 7692 as both sides see them.

mod accounts;
mod demo;
mod handshake;
mod lifecycle;
mod limits;
mod messages;
mod rules;

use crate::support::{Conn, Origin, Proxy, Socket};

/// What browsers offer: Chrome, and Firefox with Safari.
const CHROME: &str = "permessage-deflate; client_max_window_bits";
const FIREFOX: &str = "permessage-deflate";

/// A connection to an app that echoes frames.
fn echo(offer: &str) -> (Origin, Proxy, Socket<Conn>) {
    echo_with(offer, "")
}

/// The same, with keys of the route.
fn echo_with(offer: &str, route: &str) -> (Origin, Proxy, Socket<Conn>) {
    let app = Origin::start(crate::support::websocket::echoing);
    let proxy = Proxy::with(&app, route);
    let socket = Socket::open(&proxy, "/ws", offer);
    (app, proxy, socket)
}

/// A 1.1 KB tick, as a market would send it.
fn tick(number: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(number as u64);
    let mut text = format!(r#"{{"type":"tick","seq":{number},"quotes":["#);
    for symbol in [
        "EURUSD", "GBPUSD", "USDJPY", "AUDUSD", "USDCHF", "NZDUSD", "USDCAD", "EURGBP",
    ] {
        let (bid, size) = (dice.u32(10_000..20_000), dice.u32(1..500));
        text += &format!(
            r#"{{"symbol":"{symbol}","venue":"XLON","bid":1.{bid},"ask":1.{},"bidSize":{size}00,"askSize":{}00,"state":"open","seq":{number}}},"#,
            bid + 3,
            size + 7
        );
    }
    text.pop();
    text += "]}";
    text.into_bytes()
}
