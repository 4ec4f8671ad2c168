//! What the environment says of the collector.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::resource::v1::Resource;
use percent_encoding::percent_decode_str;

use super::post::Target;
use super::{ExportError, text};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const METRICS: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
const SERVICE: &str = "OTEL_SERVICE_NAME";
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
const SPAN_DELAY: &str = "OTEL_BSP_SCHEDULE_DELAY";
const METRIC_INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";

/// Where things go, and how often.
pub(super) struct Settings {
    pub(super) traces: Option<Arc<Target>>,
    pub(super) metrics: Option<Arc<Target>>,
    pub(super) resource: Resource,
    /// For one request.
    pub(super) timeout: Duration,
    pub(super) span_delay: Duration,
    pub(super) metric_interval: Duration,
}

impl Settings {
    /// `None`: no collector is named.
    pub(super) fn from_environment() -> Result<Option<Self>, ExportError> {
        // What is set to nothing is as if unset (the specification's rule).
        Self::of(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn of(read: impl Fn(&'static str) -> Option<String>) -> Result<Option<Self>, ExportError> {
        let headers = pairs(HEADERS, read(HEADERS))?;
        let target = |variable, path| match (read(variable), read(ENDPOINT)) {
            (Some(whole), _) => Target::new(&whole, &headers).map(Some),
            (None, Some(base)) => {
                Target::new(&format!("{}{path}", base.trim_end_matches('/')), &headers).map(Some)
            }
            (None, None) => Ok(None),
        };
        let traces = target(TRACES, "/v1/traces")?;
        let metrics = target(METRICS, "/v1/metrics")?;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            traces: traces.map(Arc::new),
            metrics: metrics.map(Arc::new),
            resource: Resource {
                attributes: resource(read(SERVICE), &pairs(ATTRIBUTES, read(ATTRIBUTES))?),
                ..Resource::default()
            },
            timeout: millis(TIMEOUT, read(TIMEOUT), 10_000)?,
            span_delay: millis(SPAN_DELAY, read(SPAN_DELAY), 5_000)?,
            metric_interval: millis(METRIC_INTERVAL, read(METRIC_INTERVAL), 60_000)?,
        }))
    }
}

/// `OTEL_SERVICE_NAME` goes before `service.name` among the attributes.
fn resource(service: Option<String>, given: &[(String, String)]) -> Vec<KeyValue> {
    let named = given.iter().find(|(key, _)| key == "service.name");
    let service = service
        .or_else(|| named.map(|(_, value)| value.clone()))
        .unwrap_or_else(|| "thinwire".to_owned());
    let mut attributes = vec![
        text("service.name", &service),
        text("service.version", env!("CARGO_PKG_VERSION")),
    ];
    let others = given.iter().filter(|(key, _)| key != "service.name");
    attributes.extend(others.map(|(key, value)| text(key, value)));
    attributes
}

/// `key=value,other=value`, percent-encoded.
fn pairs(
    variable: &'static str,
    written: Option<String>,
) -> Result<Vec<(String, String)>, ExportError> {
    let written = written.unwrap_or_default();
    let parts = written.split(',').map(str::trim);
    let read = |part: &str| {
        let (key, value) = part.split_once('=').ok_or_else(|| ExportError::Variable {
            variable,
            what: format!("{part:?} is no key=value"),
        })?;
        let value = percent_decode_str(value.trim()).decode_utf8_lossy();
        Ok((key.trim().to_owned(), value.into_owned()))
    };
    parts.filter(|part| !part.is_empty()).map(read).collect()
}

fn millis(
    variable: &'static str,
    written: Option<String>,
    default: u64,
) -> Result<Duration, ExportError> {
    let Some(written) = written else {
        return Ok(Duration::from_millis(default));
    };
    match written.trim().parse() {
        Ok(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        _ => Err(ExportError::Variable {
            variable,
            what: format!("{written:?} is no number of milliseconds"),
        }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn settings(set: &[(&str, &str)]) -> Result<Option<Settings>, ExportError> {
        Settings::of(|name| {
            let found = set.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_exported_unless_a_collector_is_named() {
        assert!(settings(&[(SERVICE, "shop")]).unwrap().is_none());
    }

    #[test]
    fn a_base_is_for_both_signals_and_a_whole_one_for_its_own() {
        let both = settings(&[(ENDPOINT, "http://127.0.0.1:4318/")])
            .unwrap()
            .unwrap();
        let shown = |target: &Option<Arc<Target>>| target.as_ref().map(ToString::to_string);
        assert_eq!(
            shown(&both.traces).as_deref(),
            Some("http://127.0.0.1:4318/v1/traces")
        );
        assert_eq!(
            shown(&both.metrics).as_deref(),
            Some("http://127.0.0.1:4318/v1/metrics")
        );
        let one = settings(&[(TRACES, "http://127.0.0.1:1/x")])
            .unwrap()
            .unwrap();
        assert_eq!(shown(&one.traces).as_deref(), Some("http://127.0.0.1:1/x"));
        assert!(one.metrics.is_none());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (variable, value) in [
            (ENDPOINT, "collector:4318"),
            (ENDPOINT, "ftp://collector"),
            (HEADERS, "authorization"),
            (TIMEOUT, "10s"),
        ] {
            let fault = settings(&[(TRACES, "http://127.0.0.1:1/x"), (variable, value)]);
            let said = fault.err().map(|fault| fault.to_string());
            assert!(
                said.is_some_and(|said| said.contains("OTEL_")),
                "{variable}={value}"
            );
        }
    }

    #[test]
    fn the_service_s_name_and_attributes_describe_the_resource() {
        let set = [
            (ENDPOINT, "http://127.0.0.1:1"),
            (ATTRIBUTES, "service.name=other,zone=a%20b"),
            (SERVICE, "edge"),
        ];
        let attributes = settings(&set).unwrap().unwrap().resource.attributes;
        assert!(attributes.contains(&text("service.name", "edge")));
        assert!(attributes.contains(&text("zone", "a b")));
        assert!(!attributes.contains(&text("service.name", "other")));
    }
}
