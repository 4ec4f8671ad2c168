//! 103 Early Hints of the app's, relayed at once where it can be done cleanly.
//!
//! hyper sends no 1xx of ours; the gate does, over HTTP/1.1, when nothing else is on its way out.
//! Otherwise, and over HTTP/2, they are dropped and counted (DESIGN.md, Decided).

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode};

use crate::body::{Body, Wire};
use crate::head::hop;
use crate::telemetry::Metrics;

/// Relays what the app says before its answer.
pub(super) fn relay(request: &mut Request<Body>, wire: Option<&dyn Wire>, metrics: &Metrics) {
    let dropped = metrics.informational_dropped();
    let hints = wire.map(Wire::hints);
    hyper::ext::on_informational(request, move |response| {
        // 100 answers our own Expect, which we do not send; 102 says nothing that lasts.
        if response.status() != StatusCode::EARLY_HINTS {
            return;
        }
        if !hints
            .as_ref()
            .is_some_and(|hints| hints.send(&head(response.headers())))
        {
            dropped.inc();
        }
    });
}

fn head(fields: &HeaderMap) -> Bytes {
    let mut fields = fields.clone();
    hop::strip_response(&mut fields);
    let mut bytes = BytesMut::with_capacity(256);
    bytes.put_slice(b"HTTP/1.1 103 Early Hints\r\n");
    for (name, value) in &fields {
        bytes.put_slice(name.as_str().as_bytes());
        bytes.put_slice(b": ");
        bytes.put_slice(value.as_bytes());
        bytes.put_slice(b"\r\n");
    }
    bytes.put_slice(b"\r\n");
    bytes.freeze()
}
