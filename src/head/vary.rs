//! Vary (RFC 9110 section 12.5.5): says once that Accept-Encoding mattered.

use http::header::{HeaderMap, HeaderValue, VARY};

use super::list;

/// Adds `Accept-Encoding`, unless a line already has it or `*`.
///
/// An existing field keeps its members and stays in as many lines as it had: some caches read only
/// the first, so that is where the new member goes.
pub fn add_accept_encoding(headers: &mut HeaderMap) {
    let named = list::tokens(headers, VARY)
        .any(|member| member == b"*" || member.eq_ignore_ascii_case(b"accept-encoding"));
    if named {
        return;
    }
    let alone = HeaderValue::from_static("Accept-Encoding");
    match headers.get_mut(VARY) {
        None => {
            headers.insert(VARY, alone);
        }
        Some(line) => *line = joined(line.as_bytes()).unwrap_or(alone),
    }
}

/// `None` for a line without members.
fn joined(line: &[u8]) -> Option<HeaderValue> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    HeaderValue::from_bytes(&[line, b", Accept-Encoding"].concat()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added_to(lines: &[&'static str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(VARY, HeaderValue::from_static(line));
        }
        add_accept_encoding(&mut headers);
        let values = headers.get_all(VARY).iter();
        values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    }

    #[test]
    fn it_is_added_where_it_is_missing() {
        assert_eq!(added_to(&[]), ["Accept-Encoding"]);
        assert_eq!(added_to(&[""]), ["Accept-Encoding"]);
        assert_eq!(added_to(&["Origin"]), ["Origin, Accept-Encoding"]);
        assert_eq!(
            added_to(&["Origin", "Cookie"]),
            ["Origin, Accept-Encoding", "Cookie"]
        );
        assert_eq!(
            added_to(&["X-Accept-Encoding"]),
            ["X-Accept-Encoding, Accept-Encoding"]
        );
    }

    #[test]
    fn one_member_is_enough_in_any_case_on_any_line() {
        assert_eq!(added_to(&["accept-encoding"]), ["accept-encoding"]);
        assert_eq!(
            added_to(&["Origin", "Cookie ,ACCEPT-Encoding"]),
            ["Origin", "Cookie ,ACCEPT-Encoding"]
        );
    }

    #[test]
    fn a_star_says_it_all() {
        assert_eq!(added_to(&["*"]), ["*"]);
        assert_eq!(added_to(&["Origin", " * "]), ["Origin", " * "]);
    }
}
