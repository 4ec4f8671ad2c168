//! The counters of one route, resolved once, when its configuration is loaded.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::counted::{CacheResult, Direction, Extension, Form, Kind};
use super::families::{
    ByCodec, ByExtension, ByKind, ByMessage, ByResponse, ByResult, ByRoute, Families, Seconds,
};
use crate::codec::Coding;

/// How many rows of `thinwire_responses_total` a route may have. Applications choose statuses, and
/// some let their clients choose: past this the status is `other`.
const MOST_RESPONSE_ROWS: usize = 512;

/// The counters of one route. Rows appear when something is counted in them.
#[derive(Debug)]
pub struct RouteMetrics {
    name: String,
    families: Arc<Families>,
    seconds: Histogram,
    in_flight: Gauge,
    before: Counter,
    after: Counter,
    responses: ArcSwap<Vec<(Answer, Counter)>>,
    codecs: [OnceLock<CodecCounters>; Kind::COUNT * CODINGS],
    cache: [OnceLock<Counter>; CacheResult::COUNT],
    grpc: [OnceLock<Counter>; Direction::COUNT * Form::COUNT],
    told: AtomicBool,
}

const CODINGS: usize = 4;

#[derive(Debug)]
struct CodecCounters {
    runs: Counter,
    seconds: Seconds,
    plain: Counter,
    coded: Counter,
}

/// The labels of an answer; `None` is a status beyond [`MOST_RESPONSE_ROWS`].
#[derive(Debug, Clone, Copy)]
struct Answer {
    status: Option<u16>,
    coding: Option<Coding>,
    reason: &'static str,
}

/// What has begun and not ended, a request or a connection; dropping it ends it.
#[derive(Debug)]
pub struct InFlight(Gauge);

impl InFlight {
    pub(super) fn begin(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl RouteMetrics {
    pub(super) fn new(name: &str, families: Arc<Families>) -> Self {
        let labels = ByRoute {
            route: name.to_owned(),
        };
        Self {
            name: name.to_owned(),
            seconds: families.response_seconds.get_or_create_owned(&labels),
            in_flight: families.in_flight.get_or_create_owned(&labels),
            before: families.bytes_before.get_or_create_owned(&labels),
            after: families.bytes_after.get_or_create_owned(&labels),
            responses: ArcSwap::default(),
            codecs: Default::default(),
            cache: Default::default(),
            grpc: Default::default(),
            told: AtomicBool::new(false),
            families,
        }
    }

    /// The route's name; `-` before a route is known.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A request begins.
    #[must_use]
    pub fn begin(&self) -> InFlight {
        InFlight::begin(&self.in_flight)
    }

    /// An answer ended. `coding` is absent when it was plain; `duration` counts from the request's
    /// head to the last byte.
    pub fn response(
        &self,
        status: u16,
        coding: Option<Coding>,
        reason: &'static str,
        duration: Duration,
    ) {
        self.seconds.observe(duration.as_secs_f64());
        let answer = Answer {
            status: Some(status),
            coding,
            reason,
        };
        let rows = self.responses.load();
        match rows.binary_search_by(|(row, _)| row.order(&answer)) {
            Ok(at) => rows[at].1.inc(),
            Err(_) => self.new_row(answer).inc(),
        };
    }

    /// What an answer's body weighed when it came, and when it went.
    pub fn body(&self, before: u64, after: u64) {
        self.before.inc_by(before);
        self.after.inc_by(after);
    }

    /// An encoder begins to work: once for an answer that is coded whole or in slices, once for a
    /// message, once for a copy that is densified.
    pub fn encode_run(&self, kind: Kind, coding: Coding) {
        self.codec(kind, coding).runs.inc();
    }

    /// An encoder took `plain` bytes, gave `coded` bytes and used so much CPU time.
    pub fn encoded(&self, kind: Kind, coding: Coding, plain: u64, coded: u64, cpu: Duration) {
        let counters = self.codec(kind, coding);
        counters.plain.inc_by(plain);
        counters.coded.inc_by(coded);
        counters.seconds.inc_by(cpu.as_secs_f64());
    }

    /// A decoder used so much CPU time; its bytes are not those of an encoder.
    pub fn decoded(&self, kind: Kind, coding: Coding, cpu: Duration) {
        self.codec(kind, coding).seconds.inc_by(cpu.as_secs_f64());
    }

    /// The app compressed an answer or a message although it need not.
    pub fn app_compressed(&self, kind: Kind) {
        let labels = ByKind {
            route: self.name.clone(),
            kind: kind.word(),
        };
        self.families.app_compressed.get_or_create(&labels).inc();
    }

    /// The same; true the first time: an operator should be told once.
    pub fn app_compresses(&self, kind: Kind) -> bool {
        self.app_compressed(kind);
        !self.told.swap(true, Relaxed)
    }

    /// The cache was asked.
    pub fn cache(&self, result: CacheResult) {
        let counter = self.cache[result as usize].get_or_init(|| {
            let labels = ByResult {
                route: self.name.clone(),
                result: result.word(),
            };
            self.families.cache_requests.get_or_create_owned(&labels)
        });
        counter.inc();
    }

    /// The open WebSocket connections with or without the extension; a connection looks it up once.
    #[must_use]
    pub fn websocket_connections(&self, extension: Extension) -> Gauge {
        let labels = ByExtension {
            route: self.name.clone(),
            extension: extension.word(),
        };
        self.families
            .websocket_connections
            .get_or_create_owned(&labels)
    }

    /// WebSocket messages; a connection looks it up once.
    #[must_use]
    pub fn websocket_messages(&self, direction: Direction, form: Form) -> Counter {
        self.families
            .websocket_messages
            .get_or_create_owned(&self.message(direction, form))
    }

    /// A gRPC message went by.
    pub fn grpc_message(&self, direction: Direction, form: Form) {
        let index = direction as usize * Form::COUNT + form as usize;
        let counter = self.grpc[index].get_or_init(|| {
            self.families
                .grpc_messages
                .get_or_create_owned(&self.message(direction, form))
        });
        counter.inc();
    }

    fn message(&self, direction: Direction, form: Form) -> ByMessage {
        ByMessage {
            route: self.name.clone(),
            direction: direction.word(),
            form: form.word(),
        }
    }

    fn codec(&self, kind: Kind, coding: Coding) -> &CodecCounters {
        self.codecs[kind as usize * CODINGS + coding as usize].get_or_init(|| {
            let labels = ByCodec {
                route: self.name.clone(),
                kind: kind.word(),
                coding: coding.token(),
            };
            CodecCounters {
                runs: self.families.encodes.get_or_create_owned(&labels),
                seconds: self.families.codec_seconds.get_or_create_owned(&labels),
                plain: self.families.plain_bytes.get_or_create_owned(&labels),
                coded: self.families.coded_bytes.get_or_create_owned(&labels),
            }
        })
    }

    /// The counter of labels that were not seen before, from now on found by a search.
    #[cold]
    fn new_row(&self, mut answer: Answer) -> Counter {
        if self.responses.load().len() >= MOST_RESPONSE_ROWS {
            answer.status = None;
        }
        let labels = answer.labels(&self.name);
        let counter = self.families.responses.get_or_create_owned(&labels);
        self.responses.rcu(|rows| {
            let mut rows = Vec::clone(rows);
            if let Err(at) = rows.binary_search_by(|(row, _)| row.order(&answer)) {
                rows.insert(at, (answer, counter.clone()));
            }
            rows
        });
        counter
    }
}

impl Answer {
    fn order(&self, other: &Self) -> Ordering {
        self.status
            .cmp(&other.status)
            .then_with(|| self.coding.cmp(&other.coding))
            .then_with(|| self.reason.cmp(other.reason))
    }

    fn labels(&self, route: &str) -> ByResponse {
        ByResponse {
            route: route.to_owned(),
            status: self
                .status
                .map_or_else(|| "other".to_owned(), |status| status.to_string()),
            coding: self.coding.map_or("identity", Coding::token),
            reason: self.reason,
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    fn route() -> (RouteMetrics, Arc<Families>) {
        let families = Arc::new(Families::register(&mut Registry::default()));
        (RouteMetrics::new("files", Arc::clone(&families)), families)
    }

    fn count(families: &Families, status: &str) -> u64 {
        let labels = ByResponse {
            route: "files".into(),
            status: status.into(),
            coding: "identity",
            reason: "status",
        };
        families
            .responses
            .get(&labels)
            .map_or(0, |counter| counter.get())
    }

    #[test]
    fn answers_with_the_same_labels_share_a_row() {
        let (route, families) = route();
        for status in [204, 304, 204, 404, 204] {
            route.response(status, None, "status", Duration::ZERO);
        }
        let counts = ["204", "304", "404"].map(|status| count(&families, status));
        assert_eq!(counts, [3, 1, 1]);
    }

    #[test]
    fn an_app_that_invents_statuses_cannot_fill_the_memory() {
        let (route, families) = route();
        for status in 0..2000 {
            route.response(status, None, "status", Duration::ZERO);
            route.response(status, None, "status", Duration::ZERO);
        }
        assert!(route.responses.load().len() <= MOST_RESPONSE_ROWS + 1);
        let kept = MOST_RESPONSE_ROWS as u64;
        assert_eq!(
            count(&families, "other"),
            2 * (2000 - kept),
            "nothing goes uncounted"
        );
        assert_eq!(count(&families, "200"), 2);
    }

    #[test]
    fn rows_made_at_once_by_many_threads_lose_nothing() {
        let (route, families) = route();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for status in 200..300 {
                        route.response(status, None, "status", Duration::ZERO);
                    }
                });
            }
        });
        let all: u64 = (200..300)
            .map(|status: u16| count(&families, &status.to_string()))
            .sum();
        assert_eq!(all, 400);
    }

    #[test]
    fn a_request_is_in_flight_until_it_is_dropped() {
        let (route, _) = route();
        let (one, two) = (route.begin(), route.begin());
        assert_eq!(route.in_flight.get(), 2);
        drop(one);
        assert_eq!(route.in_flight.get(), 1);
        drop(two);
        assert_eq!(route.in_flight.get(), 0);
    }
}
