//! The kinds of values that keys take: what they read, what a right one looks like, how it is shown.
//!
//! A kind knows one value and nothing about the keys around it.

mod http;
mod network;

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value as Json, json};

pub(super) use http::{
    FORWARDED_HEADER, GRPC_CODING, HEADER_NAME, HEADER_PATTERN, HEADER_VALUE, HOST, HTTP_CODING,
    MEDIA, METHOD, PATH, UPGRADE, URL_PATH,
};
pub(super) use network::{
    ADDRESS, CIDR, FILE, FILTER, IP_PORT, REDIS_URL, SERVER, SERVER_NAME, SERVICE_NAME, TOKEN,
};

use super::settings::{QueryKey, available_threads};
use super::tree::{Node, Value};

/// One kind of value.
pub(super) trait Kind {
    /// What it is read into.
    type Value: Clone + PartialEq;

    /// The value, or what is wrong and what would be right.
    fn read(&self, node: &Node) -> Result<Self::Value, String>;

    /// Its JSON schema.
    fn schema(&self) -> Json;

    /// The value as it would be written.
    fn show(&self, value: &Self::Value) -> Json;
}

/// `what stands there` against `what would be right`.
pub(super) fn misfit(node: &Node, expected: impl Display) -> String {
    match &node.value {
        Value::Null => format!("nothing stands here, write {expected}"),
        Value::List(_) => format!("a list does not fit here, write {expected}"),
        Value::Map(_) => format!("a mapping does not fit here, write {expected}"),
        Value::Text { text, .. } => format!("{text:?} does not fit here, write {expected}"),
    }
}

/// The text of a node written without quotes.
fn plain(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text {
            text,
            quoted: false,
        } => Some(text),
        _ => None,
    }
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text { text, .. } => Some(text),
        _ => None,
    }
}

/// `true` or `false`.
pub(super) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(&self, node: &Node) -> Result<bool, String> {
        match plain(node) {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            _ => Err(misfit(node, "true or false")),
        }
    }

    fn schema(&self) -> Json {
        json!({ "type": "boolean" })
    }

    fn show(&self, value: &bool) -> Json {
        json!(value)
    }
}

/// A whole number within bounds.
pub(super) struct Whole<T>(pub(super) RangeInclusive<T>);

impl<T> Kind for Whole<T>
where
    T: Copy + PartialOrd + Display + std::str::FromStr + serde::Serialize,
{
    type Value = T;

    fn read(&self, node: &Node) -> Result<T, String> {
        plain(node)
            .filter(|text| !text.starts_with('+'))
            .and_then(|text| text.parse().ok())
            .filter(|number| self.0.contains(number))
            .ok_or_else(|| {
                let (least, most) = (self.0.start(), self.0.end());
                misfit(node, format_args!("a whole number from {least} to {most}"))
            })
    }

    fn schema(&self) -> Json {
        json!({ "type": "integer", "minimum": self.0.start(), "maximum": self.0.end() })
    }

    fn show(&self, value: &T) -> Json {
        json!(value)
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The units of sizes in bytes, the largest first.
const SIZE_UNITS: [(&str, u64); 4] = [("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("B", 1)];
/// The units of times in milliseconds, the largest first.
const TIME_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Bytes, with a unit.
pub(super) struct Size {
    least: u64,
    most: u64,
}

/// A size that may be zero.
pub(super) const SIZE: Size = Size {
    least: 0,
    most: 1024 * GIB,
};

impl Size {
    /// ... but not smaller than `least` bytes.
    pub(super) const fn at_least(self, least: u64) -> Self {
        Self { least, ..self }
    }

    /// ... nor larger than `most` bytes.
    pub(super) const fn at_most(self, most: u64) -> Self {
        Self { most, ..self }
    }

    fn bounds(&self) -> String {
        format!(
            "from {} to {}",
            shown(self.least, &SIZE_UNITS),
            shown(self.most, &SIZE_UNITS)
        )
    }
}

impl Kind for Size {
    type Value = u64;

    fn read(&self, node: &Node) -> Result<u64, String> {
        let bytes = with_unit(node, &SIZE_UNITS, "B", "a size such as 512B, 64KiB or 8MiB")?;
        if (self.least..=self.most).contains(&bytes) {
            return Ok(bytes);
        }
        Err(misfit(node, format_args!("a size {}", self.bounds())))
    }

    fn schema(&self) -> Json {
        unit_schema("^(0|[0-9]+(B|KiB|MiB|GiB))$", &["512B", "64KiB", "8MiB"])
    }

    fn show(&self, bytes: &u64) -> Json {
        json!(shown(*bytes, &SIZE_UNITS))
    }
}

/// A duration, with a unit.
pub(super) struct Time {
    least: Duration,
    most: Duration,
}

/// A time that may be zero.
pub(super) const TIME: Time = Time {
    least: Duration::ZERO,
    most: Duration::from_secs(366 * 24 * 3600),
};

/// A time that may not be zero: at zero nothing could ever be in time.
pub(super) const PATIENCE: Time = Time {
    least: Duration::from_millis(1),
    ..TIME
};

impl Time {
    /// ... but not longer than `most`.
    pub(super) const fn at_most(self, most: Duration) -> Self {
        Self { most, ..self }
    }
}

impl Kind for Time {
    type Value = Duration;

    fn read(&self, node: &Node) -> Result<Duration, String> {
        let millis = with_unit(node, &TIME_UNITS, "s", "a time such as 250ms, 30s or 5m")?;
        let time = Duration::from_millis(millis);
        if (self.least..=self.most).contains(&time) {
            return Ok(time);
        }
        let (least, most) = (self.show(&self.least), self.show(&self.most));
        let expected = format!("a time from {least} to {most}").replace('"', "");
        Err(misfit(node, expected))
    }

    fn schema(&self) -> Json {
        unit_schema("^(0|[0-9]+(ms|s|m|h))$", &["250ms", "30s", "5m"])
    }

    fn show(&self, time: &Duration) -> Json {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        json!(if millis == 0 {
            "0s".to_owned()
        } else {
            shown(millis, &TIME_UNITS)
        })
    }
}

/// The number in the smallest unit; `0` needs none.
fn with_unit(
    node: &Node,
    units: &[(&str, u64)],
    common: &str,
    expected: &str,
) -> Result<u64, String> {
    let written = text(node).ok_or_else(|| misfit(node, expected))?;
    if written == "0" {
        return Ok(0);
    }
    let digits = written.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = written.split_at(digits);
    if unit.is_empty() && digits > 0 {
        return Err(format!(
            "{written} has no unit, write {written}{common} (or {expected})"
        ));
    }
    let factor = units
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor);
    let product = number
        .parse()
        .ok()
        .zip(factor)
        .and_then(|(n, f): (u64, u64)| n.checked_mul(f));
    product.ok_or_else(|| misfit(node, expected))
}

/// Text with a unit, or the one number that needs none.
fn unit_schema(pattern: &str, examples: &[&str]) -> Json {
    let text = json!({ "type": "string", "pattern": pattern });
    json!({ "anyOf": [text, { "const": 0 }], "examples": examples })
}

/// In the largest unit that divides it.
fn shown(number: u64, units: &[(&str, u64); 4]) -> String {
    let smallest = units[3];
    let divides = |(_, factor): &&(&str, u64)| number != 0 && number.is_multiple_of(*factor);
    let (unit, factor) = units.iter().find(divides).unwrap_or(&smallest);
    format!("{}{unit}", number / factor)
}

/// One of a few words.
pub(super) struct Word<T: 'static>(pub(super) &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> Kind for Word<T> {
    type Value = T;

    fn read(&self, node: &Node) -> Result<T, String> {
        let known = text(node).and_then(|text| self.0.iter().find(|(word, _)| *word == text));
        known.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = self.0.iter().map(|(word, _)| *word).collect();
            misfit(node, words.join(" or "))
        })
    }

    fn schema(&self) -> Json {
        json!({ "enum": self.0.iter().map(|(word, _)| *word).collect::<Vec<_>>() })
    }

    fn show(&self, value: &T) -> Json {
        json!(
            self.0
                .iter()
                .find(|(_, known)| known == value)
                .map(|(word, _)| *word)
        )
    }
}

/// Text with a grammar of its own.
pub(super) struct Text<T> {
    /// What a right one looks like.
    expected: &'static str,
    /// A regular expression for editors; no more than a hint.
    pattern: Option<&'static str>,
    parse: fn(&str) -> Option<T>,
    show: fn(&T) -> String,
    /// Faults must not repeat it.
    secret: bool,
}

impl<T: Clone + PartialEq> Kind for Text<T> {
    type Value = T;

    fn read(&self, node: &Node) -> Result<T, String> {
        text(node)
            .and_then(self.parse)
            .ok_or_else(|| match &node.value {
                Value::Text { .. } if self.secret => {
                    format!("this value does not fit, write {}", self.expected)
                }
                _ => misfit(node, self.expected),
            })
    }

    fn schema(&self) -> Json {
        let mut schema = json!({ "type": "string" });
        if let Some(pattern) = self.pattern {
            schema["pattern"] = json!(pattern);
        }
        schema
    }

    fn show(&self, value: &T) -> Json {
        json!((self.show)(value))
    }
}

/// A name that is a label in logs and metrics.
pub(super) const NAME: Text<String> = Text {
    expected: "a short name without control characters",
    pattern: None,
    parse: |text| {
        let fits = !text.is_empty() && text.len() <= 128 && !text.contains(char::is_control);
        fits.then(|| text.to_owned())
    },
    show: Clone::clone,
    secret: false,
};

/// A number of threads; `auto` is what this process may use, cgroup quota included.
pub(super) struct Threads;

impl Kind for Threads {
    type Value = usize;

    fn read(&self, node: &Node) -> Result<usize, String> {
        if plain(node) == Some("auto") {
            return Ok(available_threads());
        }
        let number = Whole(1..=1024).read(node);
        number.map_err(|_| misfit(node, "auto or a whole number from 1 to 1024"))
    }

    fn schema(&self) -> Json {
        json!({ "anyOf": [{ "const": "auto" }, Whole(1..=1024).schema()] })
    }

    /// Only ever shown as a default, and that is `auto` on every machine.
    fn show(&self, _: &usize) -> Json {
        json!("auto")
    }
}

/// Which part of the query is in the cache key.
pub(super) struct Query;

impl Kind for Query {
    type Value = QueryKey;

    fn read(&self, node: &Node) -> Result<QueryKey, String> {
        let expected = "all, none or a list of parameter names";
        match &node.value {
            Value::Text { text, .. } if text == "all" => Ok(QueryKey::All),
            Value::Text { text, .. } if text == "none" => Ok(QueryKey::None),
            Value::List(names) => names
                .iter()
                .map(|name| {
                    text(name)
                        .map(str::to_owned)
                        .ok_or_else(|| misfit(name, expected))
                })
                .collect::<Result<_, _>>()
                .map(QueryKey::Names),
            _ => Err(misfit(node, expected)),
        }
    }

    fn schema(&self) -> Json {
        let names = json!({ "type": "array", "items": { "type": "string" } });
        json!({ "anyOf": [{ "enum": ["all", "none"] }, names] })
    }

    fn show(&self, value: &QueryKey) -> Json {
        match value {
            QueryKey::All => json!("all"),
            QueryKey::None => json!("none"),
            QueryKey::Names(names) => json!(names),
        }
    }
}
