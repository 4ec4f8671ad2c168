//! The Prometheus text, so that a test can ask for a number.

use super::Fields;

/// All samples of one reading.
#[derive(Debug, Clone)]
pub struct Metrics(Vec<Sample>);

#[derive(Debug, Clone)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Metrics {
    /// A line that is no sample fails the test.
    pub fn parse(text: &str) -> Self {
        let lines = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let sample = |line| sample(line).unwrap_or_else(|| panic!("not a sample: {line}"));
        Self(lines.map(sample).collect())
    }

    /// The sum of all samples of this name that have these labels, among others; 0 if there is none.
    pub fn sum(&self, name: &str, labels: Fields<'_>) -> f64 {
        let samples = self.0.iter().filter(|sample| sample.name == name);
        let samples = samples.filter(|sample| sample.has(labels));
        samples.map(|sample| sample.value).sum()
    }

    /// Whether there is any sample of this name.
    pub fn knows(&self, name: &str) -> bool {
        self.0.iter().any(|sample| sample.name == name)
    }
}

impl Sample {
    fn has(&self, labels: Fields<'_>) -> bool {
        labels.iter().all(|&(name, value)| {
            self.labels
                .iter()
                .any(|(label, is)| label == name && is == value)
        })
    }
}

fn sample(line: &str) -> Option<Sample> {
    let name_ends = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(name_ends);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, quoted) = rest.trim_start_matches(',').split_once("=\"")?;
            let (value, after) = unquote(quoted)?;
            labels.push((label.to_owned(), value));
            rest = after;
        }
        rest = &rest[1..];
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

/// A label's value up to its closing quote, and what follows that.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}
