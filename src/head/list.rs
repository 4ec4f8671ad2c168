//! Comma-separated field values (RFC 9110 section 5.6.1).
//!
//! Two splits: lists of tokens, where a quote means nothing (an unclosed one must not hide the
//! members after it), and lists whose members may hold quoted strings.

use http::HeaderMap;
use http::header::AsHeaderName;

/// The members of a list of tokens, over all lines of the field, trimmed, empty ones left out.
pub fn tokens<K: AsHeaderName>(headers: &HeaderMap, name: K) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(name)
        .into_iter()
        .flat_map(|line| split(line.as_bytes()))
}

/// The members of one line of a list of tokens.
pub fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

/// The members of one line in which commas inside quoted strings do not separate; a quoted string
/// that never ends reaches to the end of the line.
pub fn quoted(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let end = member_end(line);
        rest = line.get(end + 1..);
        Some(line[..end].trim_ascii())
    })
    .filter(|member| !member.is_empty())
}

/// Where the first member ends: at a comma outside quotes, or at the end.
fn member_end(line: &[u8]) -> usize {
    let mut in_quotes = false;
    let mut escaped = false;
    for (at, &byte) in line.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_quotes => escaped = true,
            b'"' => in_quotes = !in_quotes,
            b',' if !in_quotes => return at,
            _ => {}
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::CONNECTION;

    #[test]
    fn tokens_come_from_all_lines_without_blanks_and_gaps() {
        let mut headers = HeaderMap::new();
        headers.append(
            CONNECTION,
            HeaderValue::from_static("close ,\t, keep-alive,"),
        );
        headers.append(CONNECTION, HeaderValue::from_static(""));
        headers.append(CONNECTION, HeaderValue::from_static("\"x, te"));
        let found: Vec<_> = tokens(&headers, CONNECTION).collect();
        assert_eq!(found, [&b"close"[..], b"keep-alive", b"\"x", b"te"]);
    }

    #[test]
    fn commas_inside_quotes_do_not_separate() {
        let found: Vec<_> = quoted(br#"private="a, b\", c" , ,max-age=5, "open, end"#).collect();
        assert_eq!(
            found,
            [&br#"private="a, b\", c""#[..], b"max-age=5", b"\"open, end"]
        );
        assert_eq!(quoted(b"").count(), 0);
    }
}
