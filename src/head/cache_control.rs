//! Cache-Control directives (RFC 9111 section 5.2) that forbid a transformation.

use http::header::{CACHE_CONTROL, HeaderMap};

use super::list;

/// Whether any line says `no-transform`, in any letter case; what stands in a quoted string is an
/// argument of another directive and does not count.
#[must_use]
pub fn no_transform(headers: &HeaderMap) -> bool {
    headers
        .get_all(CACHE_CONTROL)
        .into_iter()
        .flat_map(|line| list::quoted(line.as_bytes()))
        .any(|directive| name_of(directive).eq_ignore_ascii_case(b"no-transform"))
}

/// What stands before an argument.
fn name_of(directive: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'=', directive).unwrap_or(directive.len());
    directive[..end].trim_ascii_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directive_counts_in_any_case_on_any_line_at_any_place() {
        for (lines, expected) in [
            (&["no-transform"][..], true),
            (&["No-Transform"], true),
            (&["public, max-age=60 ,NO-TRANSFORM"], true),
            (&["public", "max-age=60, no-transform"], true),
            (&["no-transform, public"], true),
            (&["private=\"set-cookie\", no-transform"], true),
            (&["no-transform=1"], true),
            (&["private=\"no-transform\""], false),
            (&["private=\"a, no-transform, b\", max-age=1"], false),
            (&["ext=\"a\\\", no-transform\""], false),
            (&["no-transformation"], false),
            (&["x-no-transform"], false),
            (&["public"], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(CACHE_CONTROL, line.parse().expect("a field value"));
            }
            assert_eq!(no_transform(&headers), expected, "{lines:?}");
        }
    }
}
