#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use parking_lot::Mutex;
use serde_json::Value;

use super::*;
use crate::codec::Coding;

/// Standard output, as the test sees it.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Screen {
    fn take(&self, sink: &Sink) -> String {
        sink.flush();
        String::from_utf8(std::mem::take(&mut *self.0.lock())).unwrap()
    }
}

fn log(format: LogFormat) -> Log {
    Log {
        level: "info".into(),
        format,
        access: true,
    }
}

fn sink(format: LogFormat) -> (Sink, Screen) {
    let screen = Screen::default();
    let sink = Sink::to(&log(format), screen.clone(), &Metrics::new()).unwrap();
    (sink, screen)
}

/// The process's log as `install` makes it, for this thread and this screen only.
fn logged(format: LogFormat, level: &str, run: impl FnOnce(&Sink)) -> String {
    let screen = Screen::default();
    let (layer, handle) = reload::Layer::new(EnvFilter::try_new(level).unwrap());
    let sink = Sink::with(&log(format), screen.clone(), &Metrics::new(), Some(handle)).unwrap();
    let subscriber = Registry::default()
        .with(layer)
        .with(Events::new(sink.clone(), false));
    tracing::subscriber::with_default(subscriber, || run(&sink));
    screen.take(&sink)
}

fn record() -> Record<'static> {
    Record {
        route: "default",
        client: None,
        method: "GET",
        host: "example.org",
        path: "/users",
        status: 200,
        protocol: "HTTP/2.0",
        coding: Some(Coding::Zstd),
        reason: "compressed",
        bytes_before: 10,
        bytes_after: 5,
        cache: None,
        upstream: None,
        upstream_took: None,
        pool_waited: Duration::ZERO,
        duration: Duration::from_millis(1),
        ended_by: None,
        trace_id: None,
        trace: None,
        error: None,
        websocket: None,
    }
}

#[test]
fn access_lines_follow_the_format_also_after_a_reload() {
    let (sink, screen) = sink(LogFormat::Json);
    sink.access(&record());
    let line = screen.take(&sink);
    let json: Value = serde_json::from_str(line.strip_suffix('\n').unwrap()).unwrap();
    assert_eq!(json["coding"], "zstd");
    assert_eq!(json["ts"].as_str().map(str::len), Some(24));

    sink.configure(&log(LogFormat::Text));
    sink.access(&record());
    let line = screen.take(&sink);
    assert!(
        line.contains(" GET example.org /users 200 HTTP/2.0 zstd compressed 10->5 "),
        "{line}"
    );

    sink.configure(&Log {
        access: false,
        ..log(LogFormat::Text)
    });
    sink.access(&record());
    assert_eq!(screen.take(&sink), "");
}

#[test]
fn a_line_may_be_written_while_another_is_made() {
    let (sink, screen) = sink(LogFormat::Text);
    sink.line(|_, _, line| {
        sink.line(|_, _, line| line.extend_from_slice(b"inner"));
        line.extend_from_slice(b"outer");
    });
    assert_eq!(screen.take(&sink), "inner\nouter\n");
}

#[test]
fn events_are_json_objects_with_their_fields_at_the_top() {
    let text = logged(LogFormat::Json, "info", |_| {
        let cause = Some("broken\npipe");
        tracing::warn!(
            count = 3,
            ratio = 0.5,
            open = true,
            level = "x",
            cause,
            "not \"good\""
        );
    });
    let json: Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!({
        "ts": json["ts"], "level": "warn", "target": module_path!(), "message": "not \"good\"",
        "count": 3, "ratio": 0.5, "open": true, "field.level": "x", "cause": "broken\npipe",
    });
    assert_eq!(json, expected);
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn events_for_people_are_one_line_with_the_message_first() {
    let text = logged(LogFormat::Text, "info", |_| {
        let path = "/a\x1b[2J\nforged";
        tracing::info!(threads = 2, path, patience = ?Duration::from_secs(30), "ready now");
    });
    let expected = format!(
        " INFO {}: ready now threads=2 path=/a\\x1b[2J\\nforged patience=30s\n",
        module_path!()
    );
    assert_eq!(&text[24..], expected);
}

#[test]
fn the_level_holds_and_a_reload_changes_it() {
    let text = logged(LogFormat::Text, "warn", |sink| {
        tracing::info!("too quiet");
        tracing::warn!("loud");
        sink.configure(&Log {
            level: "off,thinwire=debug".into(),
            ..log(LogFormat::Text)
        });
        tracing::debug!("now heard");
        tracing::debug!(target: "hyper", "not asked for");
        sink.configure(&Log {
            level: "thinwire=nonsense".into(),
            ..log(LogFormat::Text)
        });
        tracing::debug!("still heard");
    });
    let said: Vec<_> = text
        .lines()
        .filter_map(|line| Some(line.split_once(": ")?.1))
        .collect();
    assert_eq!(said.len(), 4, "{text}");
    assert_eq!(
        [said[0], said[1], said[3]],
        ["loud", "now heard", "still heard"]
    );
    assert!(said[2].starts_with("log.level stays as it was"), "{text}");
}
