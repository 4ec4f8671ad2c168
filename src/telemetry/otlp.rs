//! Traces and metrics to an OpenTelemetry collector, by OTLP over HTTP (protobuf).
//!
//! On where the environment names a collector, as the specification of its exporters has it:
//! `OTEL_EXPORTER_OTLP_ENDPOINT` (or the one of a signal), `_HEADERS`, `_TIMEOUT`,
//! `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_BSP_SCHEDULE_DELAY`,
//! `OTEL_METRIC_EXPORT_INTERVAL`.
//!
//! One thread sends. An exchange that ends hands its span in and goes on: what finds the queue full
//! is dropped and counted. A collector that is slow or gone costs spans, never time.

mod figures;
mod post;
mod settings;
mod span;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

use super::{Metrics, Sink};
use post::Target;
use settings::Settings;

/// Spans that may wait.
const QUEUE: usize = 4096;

/// For the last requests of the process.
const FAREWELL: Duration = Duration::from_secs(2);

/// Spans in one request.
const BATCH: usize = 512;

/// A running exporter.
#[derive(Debug)]
pub struct Exporter {
    queue: SyncSender<Order>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

enum Order {
    Export(Box<Span>),
    Finish,
}

/// Why there is no exporter although one is wanted.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A variable of the environment cannot be used.
    #[error("{variable}: {what}")]
    Variable {
        /// Its name.
        variable: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// TLS cannot be set up.
    #[error("TLS towards the collector cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The system refuses a thread.
    #[error("the system refuses a thread")]
    Thread(#[from] io::Error),
}

/// Exports what `sink` and `metrics` see from now on; `None` where no collector is named.
///
/// # Errors
/// The environment names one in a way that cannot be used.
pub fn start(metrics: &Metrics, sink: &Sink) -> Result<Option<Exporter>, ExportError> {
    let Some(settings) = Settings::from_environment()? else {
        return Ok(None);
    };
    let (queue, orders) = sync_channel(QUEUE);
    let dropped = Arc::new(AtomicU64::new(0));
    if settings.traces.is_some() {
        let (queue, dropped) = (queue.clone(), Arc::clone(&dropped));
        sink.watch(move |record| {
            let Some(span) = span::of(record) else { return };
            if queue.try_send(Order::Export(Box::new(span))).is_err() {
                dropped.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let worker = Worker {
        settings,
        metrics: metrics.clone(),
        began: now(),
        dropped,
        failing: false,
    };
    let (running, ended) = sync_channel(1);
    std::thread::Builder::new()
        .name("otlp".to_owned())
        .spawn(move || {
            worker.run(&orders);
            drop(running);
        })?;
    Ok(Some(Exporter { queue, ended }))
}

impl Exporter {
    /// Sends what is left, two seconds at most. For the end of the process: never on a thread that
    /// serves.
    pub fn finish(self) {
        let deadline = Instant::now() + FAREWELL;
        while let Err(TrySendError::Full(_)) = self.queue.try_send(Order::Finish) {
            if Instant::now() >= deadline {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let _ = self.ended.recv_timeout(left);
    }
}

struct Worker {
    settings: Settings,
    metrics: Metrics,
    /// Since when counters count.
    began: u64,
    dropped: Arc<AtomicU64>,
    /// The last request failed: said once.
    failing: bool,
}

impl Worker {
    fn run(mut self, orders: &Receiver<Order>) {
        let mut spans = Vec::new();
        let mut next_spans = Instant::now() + self.settings.span_delay;
        let mut next_metrics = Instant::now() + self.settings.metric_interval;
        loop {
            let wait = next_spans
                .min(next_metrics)
                .saturating_duration_since(Instant::now());
            let over = match orders.recv_timeout(wait) {
                Ok(Order::Export(span)) => {
                    spans.push(*span);
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Ok(Order::Finish) | Err(RecvTimeoutError::Disconnected) => true,
            };
            let at = Instant::now();
            if over || spans.len() >= BATCH || at >= next_spans {
                self.send_spans(std::mem::take(&mut spans));
                next_spans = at + self.settings.span_delay;
            }
            if over || at >= next_metrics {
                self.send_metrics();
                next_metrics = at + self.settings.metric_interval;
            }
            if over {
                return;
            }
        }
    }

    fn send_spans(&mut self, spans: Vec<Span>) {
        let lost = self.dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!("the collector is too slow: {lost} spans were dropped");
        }
        if spans.is_empty() {
            return;
        }
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.settings.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope()),
                    spans,
                    ..ScopeSpans::default()
                }],
                ..ResourceSpans::default()
            }],
        };
        let target = self.settings.traces.clone();
        self.post(target, &request.encode_to_vec());
    }

    fn send_metrics(&mut self) {
        let Some(target) = self.settings.metrics.clone() else {
            return;
        };
        let request = ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.settings.resource.clone()),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(scope()),
                    metrics: figures::of(&self.metrics.encode(), self.began, now()),
                    ..ScopeMetrics::default()
                }],
                ..ResourceMetrics::default()
            }],
        };
        self.post(Some(target), &request.encode_to_vec());
    }

    /// Nothing is sent twice: the next interval has newer figures.
    fn post(&mut self, target: Option<Arc<Target>>, body: &[u8]) {
        let Some(target) = target else { return };
        match target.post(body, self.settings.timeout) {
            Ok(()) => self.failing = false,
            Err(error) if !self.failing => {
                self.failing = true;
                tracing::warn!("the collector at {target} takes nothing: {error}");
            }
            Err(_) => {}
        }
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "thinwire".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    nanos(since.unwrap_or_default())
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
