//! Faults of encoders, which no client and no app can provoke.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use http::{Method, Uri};
use parking_lot::Mutex;

use super::super::{Body, Guarded, Source};
use super::*;
use crate::codec::Coding;
use crate::config::settings::{Log, LogFormat};
use crate::telemetry::{Metrics, Sink};

/// Standard output, as the test sees it.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl io::Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Scene {
    sink: Sink,
    screen: Screen,
    metrics: Metrics,
    pool: Pool,
}

impl Scene {
    fn new() -> Self {
        let (screen, metrics) = (Screen::default(), Metrics::new());
        let log = Log {
            level: "info".into(),
            format: LogFormat::Json,
            access: true,
        };
        let sink = Sink::to(&log, screen.clone(), &metrics).unwrap();
        let pool = Pool::start(1, 0, Duration::from_secs(1), metrics.pool()).unwrap();
        Self {
            sink,
            screen,
            metrics,
            pool,
        }
    }

    /// An answer of `held`, encoded by `encoder`, in place up to `inline` bytes.
    fn body(&self, held: Vec<Bytes>, inline: usize, encoder: Encoder) -> Body {
        let mut encode = self.encode(held, inline);
        encode.state = State::Here(encoder);
        self.guarded(encode)
    }

    /// An answer that got so far.
    fn body_at(&self, state: State) -> Body {
        let mut encode = self.encode(Vec::new(), 0);
        encode.state = state;
        self.guarded(encode)
    }

    fn encode(&self, held: Vec<Bytes>, inline: usize) -> EncodeBody {
        let settings = EncodeSettings {
            recipe: Recipe::new(Coding::Gzip, 4).streaming(None),
            flush: Flush::Auto,
            inline,
            pad: 0,
            pool: self.pool.clone(),
        };
        EncodeBody::new(settings, held, None, None).unwrap()
    }

    fn guarded(&self, encode: EncodeBody) -> Body {
        let (sink, metrics) = (self.sink.clone(), self.metrics.route("r"));
        let ledger = Ledger::open(sink, metrics, Method::GET, Uri::from_static("/x"));
        let source = Source::Encoded(Box::new(encode));
        Body::Guarded(Box::new(Guarded::new(source, ledger, None, None)))
    }

    fn access_line(&self) -> serde_json::Value {
        self.sink.flush();
        serde_json::from_slice(&self.screen.0.lock()).unwrap()
    }
}

/// An encoder that takes no more input.
fn spent() -> Encoder {
    let recipe = Recipe::new(Coding::Gzip, 4).streaming(None);
    let mut encoder = Encoder::new(recipe).unwrap();
    let mut output = BytesMut::new();
    encoder.encode(b"x", Step::Finish, &mut output).unwrap();
    encoder
}

async fn next(body: &mut Body) -> Option<Result<Frame<Bytes>, BoxError>> {
    poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut *body), cx)).await
}

#[tokio::test]
async fn a_fault_of_the_encoder_aborts_the_body_in_place_and_on_a_worker() {
    for (inline, size) in [(1 << 20, 2_000), (0, 2_000), (0, 2_000_000)] {
        let scene = Scene::new();
        let held = vec![Bytes::from(vec![b'a'; size])];
        let mut body = scene.body(held, inline, spent());
        let error = next(&mut body).await.unwrap().unwrap_err();
        assert!(error.is::<CodecError>(), "{error}");
        assert!(next(&mut body).await.is_none(), "and nothing follows");
        drop(body);
        let line = scene.access_line();
        assert_eq!(line["ended_by"], "proxy", "{line}");
        // Not one byte of it went out plain.
        assert_eq!(line["bytes_after"], 0, "{line}");
    }
}

#[tokio::test]
async fn a_worker_that_panics_aborts_the_body() {
    let scene = Scene::new();
    let errand = scene
        .pool
        .run_more(Lane::Short, Duration::ZERO, || -> Slice {
            panic!("on purpose: the worker's, not the test's")
        });
    let mut body = scene.body_at(State::Away {
        errand,
        last: false,
    });
    let error = next(&mut body).await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "a job of the compression pool panicked");
    assert!(next(&mut body).await.is_none(), "and nothing follows");
    drop(body);
    assert_eq!(scene.access_line()["ended_by"], "proxy");
}
