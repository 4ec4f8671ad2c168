//! What is counted of a connection: metrics as it goes, and what its line in the log will say.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use crate::codec::Coding;
use crate::telemetry::{Direction, Extension, Flow, Form, Kind, RouteMetrics};

/// One direction.
pub(super) struct Tally {
    route: Arc<RouteMetrics>,
    deflated: Counter,
    plain: Counter,
    /// So far.
    pub(super) flow: Flow,
}

impl Tally {
    pub(super) fn new(route: &Arc<RouteMetrics>, direction: Direction) -> Self {
        Self {
            deflated: route.websocket_messages(direction, Form::Deflated),
            plain: route.websocket_messages(direction, Form::Plain),
            route: Arc::clone(route),
            flow: Flow::default(),
        }
    }

    /// Bytes of payload came, and so many are sent on.
    pub(super) fn bytes(&mut self, before: usize, after: usize) {
        self.flow.before += before as u64;
        self.flow.after += after as u64;
    }

    /// A message has ended, compressed towards the client or not.
    pub(super) fn message(&mut self, deflated: bool) {
        self.flow.messages += 1;
        if deflated {
            self.deflated.inc();
        } else {
            self.plain.inc();
        }
    }

    /// An encoder begins with a message.
    pub(super) fn encodes(&self) {
        self.route.encode_run(Kind::WebSocket, Coding::Deflate);
    }

    pub(super) fn encoded(&self, plain: usize, coded: usize, cpu: Duration) {
        let (plain, coded) = (plain as u64, coded as u64);
        self.route
            .encoded(Kind::WebSocket, Coding::Deflate, plain, coded, cpu);
    }

    pub(super) fn decoded(&self, cpu: Duration) {
        self.route.decoded(Kind::WebSocket, Coding::Deflate, cpu);
    }
}

/// An open connection.
pub(super) struct Open(Gauge);

impl Open {
    pub(super) fn new(route: &RouteMetrics, extension: Extension) -> Self {
        let gauge = route.websocket_connections(extension);
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}
