//! A line of the metrics' own text, read back: what plots them or sends them elsewhere shows what a
//! scraper sees, whoever counts it.

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// With the suffix of its kind: `_total`, `_sum`, `_bucket`.
    pub name: String,
    /// In the order of the text.
    pub labels: Vec<(String, String)>,
    /// Its number.
    pub value: f64,
}

impl Sample {
    /// `None` for what is no sample: comments, empty lines.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let name_ends = line.find(['{', ' '])?;
        let (name, mut rest) = line.split_at(name_ends);
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            while !rest.starts_with('}') {
                let (label, quoted) = rest.trim_start_matches(',').split_once("=\"")?;
                let (value, after) = unquoted(quoted)?;
                labels.push((label.to_owned(), value));
                rest = after;
            }
            rest = &rest[1..];
        }
        Some(Self {
            name: name.to_owned(),
            labels,
            value: rest.split_whitespace().next()?.parse().ok()?,
        })
    }
}

/// A label's value up to its closing quote, and what follows that.
fn unquoted(text: &str) -> Option<(String, &str)> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str, labels: &[(&str, &str)], value: f64) -> Option<Sample> {
        let own = |(label, value): &(&str, &str)| ((*label).to_owned(), (*value).to_owned());
        Some(Sample {
            name: name.to_owned(),
            labels: labels.iter().map(own).collect(),
            value,
        })
    }

    #[test]
    fn samples_are_read_with_whatever_their_labels_hold() {
        for (line, expected) in [
            ("a 1", sample("a", &[], 1.0)),
            ("a{} 1.5 1700000000", sample("a", &[], 1.5)),
            (
                r#"a_total{x="1",y="a \"b\"\\,}\n"} 2"#,
                sample("a_total", &[("x", "1"), ("y", "a \"b\"\\,}\n")], 2.0),
            ),
            ("# TYPE a gauge", None),
            ("", None),
            ("a", None),
            (r#"a{x="1 2"#, None),
            ("a{x} 2", None),
        ] {
            assert_eq!(Sample::read(line), expected, "{line}");
        }
    }
}
