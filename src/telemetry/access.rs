//! The record of one exchange, and how it looks as a line.
//!
//! Both shapes are written by hand into a buffer that is already there: one line an exchange is
//! the log's hot path.

use std::net::IpAddr;
use std::time::Duration;

use super::print;
use super::trace::TraceContext;
use crate::codec::Coding;

/// What is known of an exchange when it ends.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The route's name; `-` where none was found.
    pub route: &'a str,
    /// Absent on unix sockets.
    pub client: Option<IpAddr>,
    /// As asked.
    pub method: &'a str,
    /// As asked; may be empty.
    pub host: &'a str,
    /// As asked, with the query; may be empty.
    pub path: &'a str,
    /// As answered.
    pub status: u16,
    /// `HTTP/1.1` and so on, towards the client.
    pub protocol: &'a str,
    /// Of the answer; absent: identity.
    pub coding: Option<Coding>,
    /// Why `coding` is what it is.
    pub reason: &'static str,
    /// Bytes of the body that came from the app or the cache.
    pub bytes_before: u64,
    /// Bytes of the body that went to the client.
    pub bytes_after: u64,
    /// The cache's part in it.
    pub cache: Option<&'a str>,
    /// The server that answered, as configured.
    pub upstream: Option<&'a str>,
    /// From asking the server to its head.
    pub upstream_took: Option<Duration>,
    /// In the compression pool's queue, all slices together.
    pub pool_waited: Duration,
    /// From the request's head to the end of the answer.
    pub duration: Duration,
    /// `client`, `upstream` or `proxy`, where it ended before its time.
    pub ended_by: Option<&'a str>,
    /// W3C trace id, 32 hexadecimal digits.
    pub trace_id: Option<&'a str>,
    /// Its place in that trace.
    pub trace: Option<TraceContext>,
    /// What went wrong, if something did.
    pub error: Option<&'a str>,
    /// Of a WebSocket.
    pub websocket: Option<&'a WebSocketRecord>,
}

/// What passed on a WebSocket, both ways. The way to the client is in `bytes_before` and
/// `bytes_after`, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebSocketRecord {
    /// The extension as it was agreed; absent: none was.
    pub extension: Option<Box<str>>,
    /// From the app to the client.
    pub to_client: Flow,
    /// From the client to the app.
    pub to_app: Flow,
}

/// One direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// Whole ones.
    pub messages: u64,
    /// Bytes of payload that came.
    pub before: u64,
    /// Bytes of payload that went on.
    pub after: u64,
}

impl WebSocketRecord {
    fn extension(&self) -> &str {
        self.extension.as_deref().unwrap_or("none")
    }

    fn figures(&self) -> [(&'static str, u64); 4] {
        [
            ("messages_to_client", self.to_client.messages),
            ("messages_to_app", self.to_app.messages),
            ("bytes_from_client", self.to_app.before),
            ("bytes_to_app", self.to_app.after),
        ]
    }
}

impl Record<'_> {
    /// One JSON object, without the line's end. `ts` is the time the exchange ended. All keys are
    /// always there but `error` and those of a WebSocket; what is not known is null.
    pub(super) fn write_json(&self, ts: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"ts\":\"");
        out.extend_from_slice(ts.as_bytes());
        out.extend_from_slice(b"\",\"route\":");
        print::json_string(self.route, out);
        out.extend_from_slice(b",\"client\":");
        match self.client {
            Some(client) => {
                out.push(b'"');
                print::address(client, out);
                out.push(b'"');
            }
            None => out.extend_from_slice(b"null"),
        }
        for (key, value) in [
            (&b",\"method\":"[..], self.method),
            (b",\"host\":", self.host),
            (b",\"path\":", self.path),
        ] {
            out.extend_from_slice(key);
            print::json_string(value, out);
        }
        out.extend_from_slice(b",\"status\":");
        print::number(u64::from(self.status), out);
        for (key, value) in [
            (&b",\"protocol\":"[..], self.protocol),
            (b",\"coding\":", self.coding_word()),
            (b",\"reason\":", self.reason),
        ] {
            out.extend_from_slice(key);
            print::json_string(value, out);
        }
        self.write_json_figures(out);
        if let Some(websocket) = self.websocket {
            json_optional(b",\"extension\":", Some(websocket.extension()), out);
            for (key, value) in websocket.figures() {
                out.extend_from_slice(b",\"");
                out.extend_from_slice(key.as_bytes());
                out.extend_from_slice(b"\":");
                print::number(value, out);
            }
        }
        json_optional(b",\"ended_by\":", self.ended_by, out);
        json_optional(b",\"trace_id\":", self.trace_id, out);
        if self.error.is_some() {
            json_optional(b",\"error\":", self.error, out);
        }
        out.push(b'}');
    }

    fn write_json_figures(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"bytes_before\":");
        print::number(self.bytes_before, out);
        out.extend_from_slice(b",\"bytes_after\":");
        print::number(self.bytes_after, out);
        json_optional(b",\"cache\":", self.cache, out);
        json_optional(b",\"upstream\":", self.upstream, out);
        out.extend_from_slice(b",\"upstream_ms\":");
        match self.upstream_took {
            Some(took) => print::millis(took, out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"pool_wait_ms\":");
        print::millis(self.pool_waited, out);
        out.extend_from_slice(b",\"duration_ms\":");
        print::millis(self.duration, out);
    }

    /// A line for people, without its end: columns, then `key=value` of what there is to say.
    ///
    /// ```text
    /// 2026-11-30T12:00:00.123Z 127.0.0.1 GET example.org /users 200 HTTP/1.1 gzip compressed
    ///   117001->9221 3.114ms upstream=http://127.0.0.1:8000 upstream_time=1.530ms route=default
    /// ```
    pub(super) fn write_text(&self, ts: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(ts.as_bytes());
        out.push(b' ');
        match self.client {
            Some(client) => print::address(client, out),
            None => out.push(b'-'),
        }
        for value in [self.method, self.host, self.path] {
            out.push(b' ');
            print::column(value, out);
        }
        out.push(b' ');
        print::number(u64::from(self.status), out);
        for value in [self.protocol, self.coding_word(), self.reason] {
            out.push(b' ');
            print::column(value, out);
        }
        out.push(b' ');
        print::number(self.bytes_before, out);
        out.extend_from_slice(b"->");
        print::number(self.bytes_after, out);
        out.push(b' ');
        print::millis(self.duration, out);
        out.extend_from_slice(b"ms");
        self.write_text_details(out);
    }

    fn write_text_details(&self, out: &mut Vec<u8>) {
        text_optional(b" upstream=", Some(self.upstream.unwrap_or("")), out);
        if let Some(took) = self.upstream_took {
            out.extend_from_slice(b" upstream_time=");
            print::millis(took, out);
            out.extend_from_slice(b"ms");
        }
        if !self.pool_waited.is_zero() {
            out.extend_from_slice(b" pool_wait=");
            print::millis(self.pool_waited, out);
            out.extend_from_slice(b"ms");
        }
        text_optional(b" cache=", self.cache, out);
        text_optional(b" route=", Some(self.route), out);
        if let Some(websocket) = self.websocket {
            // Columns are parted by spaces.
            let extension = websocket.extension().replace("; ", ";");
            text_optional(b" extension=", Some(&extension), out);
            for (key, value) in websocket.figures() {
                out.push(b' ');
                out.extend_from_slice(key.as_bytes());
                out.push(b'=');
                print::number(value, out);
            }
        }
        text_optional(b" trace_id=", self.trace_id, out);
        text_optional(b" ended_by=", self.ended_by, out);
        if let Some(error) = self.error {
            out.extend_from_slice(b" error: ");
            print::words(error, out);
        }
    }

    fn coding_word(&self) -> &'static str {
        self.coding.map_or("identity", Coding::token)
    }
}

fn json_optional(key: &[u8], value: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(key);
    match value {
        Some(value) => print::json_string(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

fn text_optional(key: &[u8], value: Option<&str>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        out.extend_from_slice(key);
        print::column(value, out);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::telemetry::print::tests::nasty;

    const TS: &str = "2026-11-30T12:00:00.123Z";

    fn record() -> Record<'static> {
        Record {
            route: "default",
            client: Some(IpAddr::from([127, 0, 0, 1])),
            method: "GET",
            host: "example.org",
            path: "/users?count=3",
            status: 200,
            protocol: "HTTP/1.1",
            coding: Some(Coding::Gzip),
            reason: "compressed",
            bytes_before: 117_001,
            bytes_after: 9_221,
            cache: None,
            upstream: Some("http://127.0.0.1:8000"),
            upstream_took: Some(Duration::from_micros(1_530)),
            pool_waited: Duration::ZERO,
            duration: Duration::from_micros(3_114),
            ended_by: None,
            trace_id: Some("0af7651916cd43dd8448eb211c80319c"),
            trace: None,
            error: None,
            websocket: None,
        }
    }

    fn json(record: &Record<'_>) -> Value {
        let mut line = Vec::new();
        record.write_json(TS, &mut line);
        serde_json::from_slice(&line).unwrap()
    }

    fn text(record: &Record<'_>) -> String {
        let mut line = Vec::new();
        record.write_text(TS, &mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_json_line_holds_what_interfaces_promises() {
        let expected = json!({
            "ts": TS, "route": "default", "client": "127.0.0.1", "method": "GET",
            "host": "example.org", "path": "/users?count=3", "status": 200,
            "protocol": "HTTP/1.1", "coding": "gzip", "reason": "compressed",
            "bytes_before": 117_001, "bytes_after": 9_221, "cache": null,
            "upstream": "http://127.0.0.1:8000", "upstream_ms": 1.53, "pool_wait_ms": 0.0,
            "duration_ms": 3.114, "ended_by": null,
            "trace_id": "0af7651916cd43dd8448eb211c80319c",
        });
        assert_eq!(json(&record()), expected);
    }

    #[test]
    fn what_is_not_known_is_null_and_plain_is_identity() {
        let refused = Record {
            client: None,
            coding: None,
            upstream: None,
            upstream_took: None,
            ended_by: Some("client"),
            error: Some("no final chunk"),
            ..record()
        };
        let json = json(&refused);
        for key in ["client", "upstream", "upstream_ms"] {
            assert_eq!(json.get(key), Some(&Value::Null), "{key}");
        }
        assert_eq!(json["coding"], "identity");
        assert_eq!(json["ended_by"], "client");
        assert_eq!(json["error"], "no final chunk");
    }

    #[test]
    fn a_text_line_reads_from_left_to_right() {
        let expected = "2026-11-30T12:00:00.123Z 127.0.0.1 GET example.org /users?count=3 200 \
                        HTTP/1.1 gzip compressed 117001->9221 3.114ms \
                        upstream=http://127.0.0.1:8000 upstream_time=1.530ms route=default \
                        trace_id=0af7651916cd43dd8448eb211c80319c";
        assert_eq!(text(&record()), expected);
        let cut = Record {
            host: "",
            upstream: None,
            cache: Some("hit"),
            pool_waited: Duration::from_millis(2),
            ended_by: Some("proxy"),
            error: Some("too late\nreally"),
            ..record()
        };
        let line = text(&cut);
        for part in [
            " GET - /users",
            " upstream=- ",
            " pool_wait=2.000ms cache=hit ",
            r" ended_by=proxy error: too late\nreally",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }

    #[test]
    fn the_line_of_a_websocket_says_what_was_agreed_and_what_passed() {
        let flow = |messages, before, after| Flow {
            messages,
            before,
            after,
        };
        let websocket = WebSocketRecord {
            extension: Some("permessage-deflate; server_max_window_bits=12".into()),
            to_client: flow(7, 700, 100),
            to_app: flow(3, 20, 30),
        };
        let record = Record {
            websocket: Some(&websocket),
            ..record()
        };
        let line = json(&record);
        assert_eq!(
            line["extension"],
            "permessage-deflate; server_max_window_bits=12"
        );
        for (key, value) in [
            ("messages_to_client", 7),
            ("messages_to_app", 3),
            ("bytes_from_client", 20),
            ("bytes_to_app", 30),
        ] {
            assert_eq!(line[key], value, "{key}");
        }
        let expected = " extension=permessage-deflate;server_max_window_bits=12 \
                        messages_to_client=7 messages_to_app=3 bytes_from_client=20 bytes_to_app=30 ";
        assert!(text(&record).contains(expected));
        let none = WebSocketRecord::default();
        let record = Record {
            websocket: Some(&none),
            ..record
        };
        assert_eq!(json(&record)["extension"], "none");
    }

    proptest! {
        #[test]
        fn whatever_a_client_sends_is_one_json_object_on_one_line(
            host in nasty(), path in nasty(), method in nasty(),
            error in proptest::option::of(nasty()), status in any::<u16>(), bytes in any::<u64>(),
        ) {
            let record = Record {
                host: &host, path: &path, method: &method, error: error.as_deref(), status,
                bytes_before: bytes, ..record()
            };
            let mut line = Vec::new();
            record.write_json(TS, &mut line);
            prop_assert!(!line.contains(&b'\n'));
            let json: Value = serde_json::from_slice(&line)?;
            prop_assert_eq!(json["host"].as_str(), Some(&*host));
            prop_assert_eq!(json["path"].as_str(), Some(&*path));
            prop_assert_eq!(json["method"].as_str(), Some(&*method));
            prop_assert_eq!(json["bytes_before"].as_u64(), Some(bytes));
        }

        #[test]
        fn whatever_a_client_sends_moves_no_column(
            host in nasty(), path in nasty(), method in nasty(),
        ) {
            let line = text(&Record { host: &host, path: &path, method: &method, ..record() });
            let columns: Vec<_> = line.split(char::is_whitespace).collect();
            prop_assert_eq!(columns[5..9].join(" "), "200 HTTP/1.1 gzip compressed");
        }
    }
}
