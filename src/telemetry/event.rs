//! What the proxy says of itself: one line an event.
//!
//! Spans are not printed: what belongs to a line is among its fields.

use std::fmt::{Arguments, Debug};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::log::Sink;
use super::print;

/// A layer that makes lines of events.
pub(super) struct Events {
    sink: Sink,
    colored: bool,
}

impl Events {
    pub(super) const fn new(sink: Sink, colored: bool) -> Self {
        Self { sink, colored }
    }
}

impl<S: Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.sink.line(|json, ts, line| {
            if json {
                write_json(event, ts, line);
            } else {
                write_text(event, ts, self.colored, line);
            }
        });
    }
}

/// `{"ts":…,"level":"info","target":…,"message":…,` and the event's fields.
fn write_json(event: &Event<'_>, ts: &str, line: &mut Vec<u8>) {
    let metadata = event.metadata();
    line.extend_from_slice(b"{\"ts\":\"");
    line.extend_from_slice(ts.as_bytes());
    line.extend_from_slice(b"\",\"level\":\"");
    line.extend_from_slice(word(metadata.level()).as_bytes());
    line.extend_from_slice(b"\",\"target\":");
    print::json_string(metadata.target(), line);
    event.record(&mut JsonFields { line });
    line.push(b'}');
}

/// `2026-11-30T12:00:00.123Z INFO thinwire::app: message key=value`.
fn write_text(event: &Event<'_>, ts: &str, colored: bool, line: &mut Vec<u8>) {
    let metadata = event.metadata();
    let (name, color) = match *metadata.level() {
        Level::ERROR => ("ERROR", "\x1b[31m"),
        Level::WARN => ("WARN", "\x1b[33m"),
        Level::INFO => ("INFO", "\x1b[32m"),
        Level::DEBUG => ("DEBUG", "\x1b[34m"),
        Level::TRACE => ("TRACE", "\x1b[35m"),
    };
    line.extend_from_slice(ts.as_bytes());
    line.push(b' ');
    let (before, after) = if colored {
        (color, "\x1b[0m")
    } else {
        ("", "")
    };
    for part in [before, name, after, " ", metadata.target(), ":"] {
        line.extend_from_slice(part.as_bytes());
    }
    event.record(&mut TextFields {
        line: &mut *line,
        message: true,
    });
    event.record(&mut TextFields {
        line,
        message: false,
    });
}

const fn word(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

struct JsonFields<'a> {
    line: &'a mut Vec<u8>,
}

impl JsonFields<'_> {
    fn key(&mut self, field: &Field) {
        // A line's own keys come once.
        let name = match field.name() {
            "ts" => "field.ts",
            "level" => "field.level",
            "target" => "field.target",
            name => name,
        };
        self.line.push(b',');
        print::json_string(name, self.line);
        self.line.push(b':');
    }
}

impl Visit for JsonFields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.key(field);
        print::display_json(format_args!("{value:?}"), self.line);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.key(field);
        print::json_string(value, self.line);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if !value.is_finite() {
            return self.record_debug(field, &value);
        }
        self.key(field);
        print::display(value, self.line);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.key(field);
        print::display(value, self.line);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.key(field);
        print::number(value, self.line);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.key(field);
        print::display(value, self.line);
    }
}

/// The message comes first, wherever it stands among the fields: two visits.
struct TextFields<'a> {
    line: &'a mut Vec<u8>,
    message: bool,
}

impl TextFields<'_> {
    fn write(&mut self, field: &Field, value: Arguments<'_>) {
        let is_message = field.name() == "message";
        if is_message != self.message {
            return;
        }
        self.line.push(b' ');
        if !is_message {
            self.line.extend_from_slice(field.name().as_bytes());
            self.line.push(b'=');
        }
        print::display_words(value, self.line);
    }
}

impl Visit for TextFields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.write(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.write(field, format_args!("{value}"));
    }
}
