//! OTLP export to a collector of our own: what arrives is what the log and `/metrics` say.
//!
//! Built with the feature alone: `cargo test --features otel --test otel`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use support::{Fields, Nowhere, Origin, Proxy, Setup, big, eventually};

/// What came, decoded.
#[derive(Default)]
struct Came {
    spans: Vec<Span>,
    /// Of the last request.
    metrics: Vec<Metric>,
    resource: Option<Resource>,
    headers: Vec<Option<String>>,
}

struct Collector {
    http: Origin,
    came: Arc<Mutex<Came>>,
}

impl Collector {
    fn start() -> Self {
        let came = Arc::new(Mutex::new(Came::default()));
        let keeps = Arc::clone(&came);
        let http = Origin::start(move |call| {
            let body = call.body()?;
            assert_eq!(
                call.head.field("content-type"),
                Some("application/x-protobuf")
            );
            let mut came = keeps.lock().unwrap();
            came.headers
                .push(call.head.field("x-tenant").map(str::to_owned));
            match call.path() {
                "/v1/traces" => {
                    let request = ExportTraceServiceRequest::decode(&body[..]).expect("protobuf");
                    for of in request.resource_spans {
                        came.resource = of.resource;
                        came.spans
                            .extend(of.scope_spans.into_iter().flat_map(|of| of.spans));
                    }
                }
                "/v1/metrics" => {
                    let request = ExportMetricsServiceRequest::decode(&body[..]).expect("protobuf");
                    let of = request.resource_metrics.into_iter();
                    let of = of.flat_map(|of| of.scope_metrics);
                    came.metrics = of.flat_map(|of| of.metrics).collect();
                }
                other => panic!("{other}"),
            }
            drop(came);
            call.answer(200, &[("Content-Type", "application/x-protobuf")], b"")
        });
        Self { http, came }
    }

    /// A proxy that exports here, often.
    fn before(&self, app: &Origin) -> Proxy {
        exporting(app, &self.http.server())
    }

    fn span(&self, path: &str) -> Span {
        eventually(&format!("the span of {path}"), || {
            let came = self.came.lock().unwrap();
            let is_it =
                |span: &&Span| string(&span.attributes, "url.path").as_deref() == Some(path);
            came.spans.iter().find(is_it).cloned()
        })
    }
}

fn exporting(app: &Origin, collector: &str) -> Proxy {
    let variables: Fields<'_> = &[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=shop%20one"),
        ("OTEL_SERVICE_NAME", "edge"),
        ("OTEL_BSP_SCHEDULE_DELAY", "20"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "50"),
    ];
    Proxy::start_in(&Setup::before(app).yaml(), variables)
}

fn value<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.as_ref()?.value.as_ref()
}

fn string(attributes: &[KeyValue], key: &str) -> Option<String> {
    match value(attributes, key)? {
        Value::StringValue(text) => Some(text.clone()),
        other => panic!("{key}: {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

#[test]
fn an_exchange_is_a_span_between_the_client_s_and_the_app_s() {
    let app = Origin::json(big());
    let collector = Collector::start();
    let proxy = collector.before(&app);
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let fields = [
        ("Accept-Encoding", "gzip"),
        ("Traceparent", parent.as_str()),
    ];
    let reply = proxy.get("/joined?x=1", &fields).expect(200);
    let span = collector.span("/joined");
    assert_eq!(hex(&span.trace_id), TRACE);
    assert_eq!(hex(&span.parent_span_id), PARENT);
    let seen = app.last();
    let told = seen.head.field("traceparent").expect("a parent");
    assert_eq!(told, format!("00-{TRACE}-{}-01", hex(&span.span_id)));
    assert_eq!(span.name, "GET everything");
    assert_eq!(span.kind, 2, "a server's");
    assert!(span.start_time_unix_nano < span.end_time_unix_nano);
    assert_eq!(span.status, None);
    for (key, text) in [
        ("http.request.method", "GET"),
        ("url.query", "x=1"),
        ("network.protocol.version", "1.1"),
        ("client.address", "127.0.0.1"),
        ("thinwire.coding", "gzip"),
        ("thinwire.reason", "compressed"),
        ("thinwire.upstream", &app.server()),
    ] {
        assert_eq!(
            string(&span.attributes, key).as_deref(),
            Some(text),
            "{key}"
        );
    }
    let number = |key| value(&span.attributes, key).cloned();
    assert_eq!(
        number("http.response.status_code"),
        Some(Value::IntValue(200))
    );
    let after = i64::try_from(reply.body.len()).unwrap();
    assert_eq!(number("thinwire.bytes_after"), Some(Value::IntValue(after)));
    let came = collector.came.lock().unwrap();
    let resource = came.resource.as_ref().expect("a resource");
    assert_eq!(
        string(&resource.attributes, "service.name").as_deref(),
        Some("edge")
    );
    assert_eq!(came.headers[0].as_deref(), Some("shop one"));
}

#[test]
fn what_the_client_does_not_sample_is_not_exported_and_failures_are_errors() {
    let app = Origin::start(|call| match call.path() {
        "/broken" => call.close(),
        _ => call.answer(200, &[], b"fine"),
    });
    let collector = Collector::start();
    let proxy = collector.before(&app);
    let parent = format!("00-{TRACE}-{PARENT}-00");
    proxy
        .get("/unsampled", &[("Traceparent", &parent)])
        .expect(200);
    proxy.get("/broken", &[]).expect(502);
    let span = collector.span("/broken");
    assert!(span.parent_span_id.is_empty(), "a trace of its own");
    let status = span.status.expect("a status");
    assert_eq!(status.code, 2);
    assert!(!status.message.is_empty());
    let came = collector.came.lock().unwrap();
    assert!(came.spans.iter().all(|span| hex(&span.trace_id) != TRACE));
}

/// A counter's value with this label.
fn counted(metrics: &[Metric], name: &str, label: (&str, &str)) -> Option<f64> {
    let metric = metrics.iter().find(|metric| metric.name == name)?;
    let Some(Data::Sum(sum)) = &metric.data else {
        panic!("{metric:?}");
    };
    assert!(sum.is_monotonic);
    let points = sum.data_points.iter();
    let points =
        points.filter(|point| string(&point.attributes, label.0).as_deref() == Some(label.1));
    let values = points.map(|point| match point.value {
        Some(number_data_point::Value::AsDouble(value)) => value,
        _ => panic!("{point:?}"),
    });
    Some(values.sum())
}

#[test]
fn the_metrics_are_those_of_the_scraper() {
    let app = Origin::json(big());
    let collector = Collector::start();
    let proxy = collector.before(&app);
    for _ in 0..3 {
        proxy.get("/", &[("Accept-Encoding", "br")]).expect(200);
    }
    eventually("three answers", || {
        let came = collector.came.lock().unwrap();
        let count = counted(&came.metrics, "thinwire_responses_total", ("coding", "br"));
        (count == Some(3.0)).then_some(())
    });
    let came = collector.came.lock().unwrap();
    let names: Vec<_> = came
        .metrics
        .iter()
        .map(|metric| metric.name.as_str())
        .collect();
    let scraped = proxy.admin("/metrics").expect(200).text();
    for name in &names {
        assert!(scraped.contains(&format!("# TYPE {name} ")), "{name}");
    }
    let seconds = came
        .metrics
        .iter()
        .find(|metric| metric.name == "thinwire_response_seconds");
    let Some(Data::Histogram(histogram)) = seconds.and_then(|metric| metric.data.as_ref()) else {
        panic!("{names:?}");
    };
    let point = &histogram.data_points[0];
    assert_eq!(point.count, 3);
    assert_eq!(point.bucket_counts.iter().sum::<u64>(), 3);
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
}

#[test]
fn the_last_spans_are_sent_before_the_process_ends() {
    let app = Origin::answer(200, &[], "fine");
    let collector = Collector::start();
    let variables: Fields<'_> = &[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.http.server()),
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
    ];
    let proxy = Proxy::start_in(&Setup::before(&app).yaml(), variables);
    proxy.get("/last", &[]).expect(200);
    proxy.access("/last");
    assert!(collector.came.lock().unwrap().spans.is_empty());
    assert!(proxy.stop().success());
    collector.span("/last");
    assert!(!collector.came.lock().unwrap().metrics.is_empty());
}

#[test]
fn a_collector_that_is_gone_is_said_once_and_costs_nothing() {
    let app = Origin::answer(200, &[], "fine");
    let gone = support::App::server(&Nowhere::reserve());
    let proxy = exporting(&app, &gone);
    for _ in 0..20 {
        proxy.get("/", &[]).expect(200);
    }
    let is_it = |line: &str| line.contains("takes nothing");
    proxy.wait_for_log("the warning", is_it);
    proxy.get("/", &[]).expect(200);
    assert_eq!(proxy.log().iter().filter(|line| is_it(line)).count(), 1);
    assert!(proxy.stop().success());
}
