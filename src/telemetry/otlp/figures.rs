//! The metrics as OTLP has them, read from their own text: names and labels are a scraper's.

use std::collections::HashMap;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

use super::text;
use crate::telemetry::sample::Sample;

/// A family, as its `# HELP` and `# TYPE` lines begin it.
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    kind: &'a str,
    samples: Vec<Sample>,
}

/// All metrics of `exposition`, counted since `began`; both times in nanoseconds since 1970.
pub(super) fn of(exposition: &str, began: u64, now: u64) -> Vec<Metric> {
    let families = families(exposition);
    families
        .into_iter()
        .filter(|family| !family.samples.is_empty())
        .map(|family| Metric {
            name: family.name.to_owned(),
            description: family.help.to_owned(),
            data: Some(family.data(began, now)),
            ..Metric::default()
        })
        .collect()
}

fn families(exposition: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    let mut help = "";
    for line in exposition.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "gauge"));
            families.push(Family {
                name,
                help,
                kind,
                samples: Vec::new(),
            });
        } else if let (Some(family), Some(sample)) = (families.last_mut(), Sample::read(line)) {
            family.samples.push(sample);
        }
    }
    families
}

impl Family<'_> {
    fn data(&self, began: u64, now: u64) -> Data {
        let temporality = AggregationTemporality::Cumulative.into();
        match self.kind {
            "counter" => Data::Sum(Sum {
                data_points: self.numbers(began, now),
                aggregation_temporality: temporality,
                is_monotonic: true,
            }),
            "histogram" => Data::Histogram(Histogram {
                data_points: self.histograms(began, now),
                aggregation_temporality: temporality,
            }),
            _ => Data::Gauge(Gauge {
                data_points: self.numbers(0, now),
            }),
        }
    }

    fn numbers(&self, began: u64, now: u64) -> Vec<NumberDataPoint> {
        let point = |sample: &Sample| NumberDataPoint {
            attributes: attributes(&sample.labels),
            start_time_unix_nano: began,
            time_unix_nano: now,
            value: Some(Value::AsDouble(sample.value)),
            ..NumberDataPoint::default()
        };
        self.samples.iter().map(point).collect()
    }

    /// Buckets there count what lies in them alone; the text's count all below, too.
    fn histograms(&self, began: u64, now: u64) -> Vec<HistogramDataPoint> {
        let mut places: HashMap<Vec<(String, String)>, usize> = HashMap::new();
        let mut points: Vec<HistogramDataPoint> = Vec::new();
        for sample in &self.samples {
            let mut labels = sample.labels.clone();
            let bound = labels.iter().position(|(label, _)| label == "le");
            let bound = bound.map(|at| labels.remove(at).1);
            let place = *places.entry(labels.clone()).or_insert_with(|| {
                points.push(HistogramDataPoint {
                    attributes: attributes(&labels),
                    start_time_unix_nano: began,
                    time_unix_nano: now,
                    ..HistogramDataPoint::default()
                });
                points.len() - 1
            });
            let point = &mut points[place];
            if let Some(bound) = bound {
                let below: u64 = point.bucket_counts.iter().sum();
                point
                    .bucket_counts
                    .push((sample.value as u64).saturating_sub(below));
                point
                    .explicit_bounds
                    .extend(bound.parse().ok().filter(|bound: &f64| bound.is_finite()));
            } else if sample.name.ends_with("_sum") {
                point.sum = Some(sample.value);
            } else if sample.name.ends_with("_count") {
                point.count = sample.value as u64;
            }
        }
        points
    }
}

fn attributes(labels: &[(String, String)]) -> Vec<KeyValue> {
    labels.iter().map(|(key, value)| text(key, value)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const TEXT: &str = "# HELP a_total Things.\n# TYPE a_total counter\na_total{x=\"1\"} 3\n\
        # HELP g Now.\n# TYPE g gauge\ng 2\n# HELP none None.\n# TYPE none gauge\n\
        # HELP h Times.\n# TYPE h histogram\nh_sum{x=\"1\"} 0.5\nh_count{x=\"1\"} 4\n\
        h_bucket{le=\"0.1\",x=\"1\"} 1\nh_bucket{le=\"1\",x=\"1\"} 3\nh_bucket{le=\"+Inf\",x=\"1\"} 4\n";

    #[test]
    fn each_kind_becomes_its_own() {
        let metrics = of(TEXT, 1, 2);
        let names: Vec<_> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["a_total", "g", "h"], "what is empty is left out");
        let Some(Data::Sum(sum)) = &metrics[0].data else {
            panic!("{metrics:?}")
        };
        assert!(sum.is_monotonic);
        assert_eq!(sum.data_points[0].value, Some(Value::AsDouble(3.0)));
        assert_eq!(sum.data_points[0].start_time_unix_nano, 1);
        assert!(matches!(metrics[1].data, Some(Data::Gauge(_))));
        let Some(Data::Histogram(histogram)) = &metrics[2].data else {
            panic!("{metrics:?}")
        };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.sum), (4, Some(0.5)));
        assert_eq!(point.bucket_counts, [1, 2, 1]);
        assert_eq!(point.explicit_bounds, [0.1, 1.0]);
        assert_eq!(point.attributes, [text("x", "1")]);
    }
}
