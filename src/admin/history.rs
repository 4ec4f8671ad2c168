//! The last ten minutes of the metrics, for the dashboard's plots.
//!
//! What it holds is bounded: [`KEPT`] samples of at most [`MOST_SERIES`] numbers. The metrics' own
//! text is what is read, so the plots show what a scraper sees, whoever counts it. Histograms keep
//! their sum and count.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::json;

use crate::telemetry::sample::Sample as Metric;

/// Between two samples.
pub(super) const STEP: Duration = Duration::from_secs(2);

/// Ten minutes of them, and the one that the first difference is made to.
const KEPT: usize = 301;

/// More series are not plotted; 5 MB of numbers in all.
const MOST_SERIES: usize = 2048;

/// The samples, the oldest first.
pub(super) struct History {
    began: Instant,
    /// Tells this process from the one before it, which may have had its number.
    boot: u32,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Series as JSON: `["thinwire_responses_total",{"route":"-"}]`.
    series: Vec<String>,
    places: HashMap<String, usize>,
    samples: VecDeque<Sample>,
    next: u64,
}

struct Sample {
    number: u64,
    /// Since the beginning.
    at: Duration,
    /// In the order of the series; later ones were 0.
    values: Vec<f64>,
}

impl History {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            boot: fastrand::u32(..),
            inner: Mutex::default(),
        }
    }

    /// Takes a sample of the metrics' text.
    pub(super) fn take(&self, text: &str) {
        let at = self.began.elapsed();
        let mut inner = self.inner.lock();
        let mut values = vec![0.0; inner.series.len()];
        for (series, value) in text.lines().filter_map(read) {
            let Some(place) = inner.place(series) else {
                continue;
            };
            if values.len() <= place {
                values.resize(place + 1, 0.0);
            }
            // Statuses of one class are one series.
            values[place] += value;
        }
        if inner.samples.len() == KEPT {
            inner.samples.pop_front();
        }
        let number = inner.next;
        inner.next += 1;
        inner.samples.push_back(Sample { number, at, values });
    }

    /// `"boot"`, `"step"`, `"now"`, `"series"` and `"samples"` as members of a JSON object, without its
    /// braces. Samples up to number `after` are left out.
    pub(super) fn members(&self, after: Option<u64>) -> String {
        let inner = self.inner.lock();
        let mut json = format!(
            "\"boot\":{},\"step\":{},\"now\":{:.3},\"series\":[{}],\"samples\":[",
            self.boot,
            STEP.as_secs(),
            self.began.elapsed().as_secs_f64(),
            inner.series.join(",")
        );
        let wanted = |sample: &&Sample| after.is_none_or(|after| sample.number > after);
        for (index, sample) in inner.samples.iter().filter(wanted).enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let (number, at) = (sample.number, sample.at.as_secs_f64());
            let _ = write!(
                json,
                "{comma}{{\"number\":{number},\"at\":{at:.3},\"values\":["
            );
            for (index, value) in sample.values.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                let value = if value.is_finite() { *value } else { 0.0 };
                let _ = write!(json, "{comma}{value}");
            }
            json.push_str("]}");
        }
        json.push(']');
        json
    }
}

impl Inner {
    fn place(&mut self, series: String) -> Option<usize> {
        if let Some(place) = self.places.get(&series) {
            return Some(*place);
        }
        let place = self.series.len();
        if place == MOST_SERIES {
            return None;
        }
        self.series.push(series.clone());
        self.places.insert(series, place);
        Some(place)
    }
}

/// The series of a line, as JSON, and its value; `None` for what is not plotted.
fn read(line: &str) -> Option<(String, f64)> {
    let Metric {
        name,
        labels,
        value,
    } = Metric::read(line)?;
    if !name.starts_with("thinwire_") || name.ends_with("_bucket") {
        return None;
    }
    let labels = labels.into_iter().map(|(label, mut value)| {
        if label == "status" {
            // Three digits, or `other`.
            value.truncate(1);
            value.push_str("xx");
        }
        (label, value.into())
    });
    let labels: serde_json::Map<_, _> = labels.collect();
    Some((json!([name, labels]).to_string(), value))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::Value;

    use super::*;

    fn json(history: &History, after: Option<u64>) -> Value {
        serde_json::from_str(&format!("{{{}}}", history.members(after))).unwrap()
    }

    #[test]
    fn samples_hold_what_a_scraper_sees_without_buckets() {
        let history = History::new();
        history.take(
            "# HELP thinwire_a_total x\nthinwire_a_total{route=\"a \\\"b\\\"\",status=\"200\"} 1\n\
             thinwire_a_total{route=\"a \\\"b\\\"\",status=\"204\"} 2\nprocess_x 5\n\
             thinwire_s_bucket{le=\"1\"} 4\nthinwire_s_sum 0.25\nthinwire_connections 7\n",
        );
        history.take("thinwire_connections 8\nthinwire_new_total 3\n");
        let json = json(&history, None);
        let series = json["series"].as_array().unwrap();
        assert_eq!(
            series[0],
            json!(["thinwire_a_total", { "route": "a \"b\"", "status": "2xx" }])
        );
        assert_eq!(json["samples"][0]["values"], json!([3, 0.25, 7]));
        assert_eq!(json["samples"][1]["values"], json!([0, 0, 8, 3]));
    }

    #[test]
    fn only_what_is_new_is_told_again() {
        let history = History::new();
        for _ in 0..5 {
            history.take("thinwire_connections 1\n");
        }
        let numbers = |after| {
            let json = json(&history, after);
            let samples = json["samples"].as_array().unwrap();
            samples
                .iter()
                .map(|sample| sample["number"].as_u64().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(numbers(None), [0, 1, 2, 3, 4]);
        assert_eq!(numbers(Some(3)), [4]);
        assert!(numbers(Some(4)).is_empty());
    }

    #[test]
    fn neither_time_nor_labels_make_it_grow_beyond_its_bound() {
        let history = History::new();
        let many: String = (0..MOST_SERIES + 10)
            .map(|id| format!("thinwire_x{{id=\"{id}\"}} 1\n"))
            .collect();
        history.take(&many);
        for _ in 0..KEPT + 5 {
            history.take("thinwire_x{id=\"1\"} 1\n");
        }
        let json = json(&history, None);
        assert_eq!(json["series"].as_array().unwrap().len(), MOST_SERIES);
        assert_eq!(json["samples"].as_array().unwrap().len(), KEPT);
        assert_eq!(json["samples"][0]["number"], 6);
    }
}
