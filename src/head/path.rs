//! Request paths as routes compare them. The app gets the target as it was sent.
//!
//! Two paths that an application could take for one must compare as one, and a path that two
//! readers would resolve differently is none (400):
//!
//! - Escapes of unreserved characters are decoded, all others written in upper case; `//` is one
//!   `/`; `.` and `..` are resolved, also written `%2e`. An escape is decoded once: `%252e` stays.
//! - `%2F` stays an escape, for some applications tell it from `/`; ASGI servers do not, they
//!   decode it. So [`within`] and [`is`] take it for a `/` wherever the pattern has one: a
//!   route that guards `/admin` also sees `/admin%2Fx` and `/api%2Fadmin`.
//! - Refused: bad escapes, NUL and other control characters, `\` (some servers take it for `/`),
//!   `..` above the root, `..` in a path with `//` (does it take the empty segment away or the one
//!   before?), and dot segments beside `%2F` or `%5C`.

use std::borrow::Cow;

/// The path in the form that compares; `None` for what is refused and what does not start with `/`.
///
/// The usual path comes back as it is, without an allocation. No query: only the path.
#[must_use]
pub fn normalize(path: &str) -> Option<Cow<'_, str>> {
    if !path.starts_with('/') {
        return None;
    }
    if is_normal(path.as_bytes()) {
        return Some(Cow::Borrowed(path));
    }
    resolve(&decode(path)?).map(Cow::Owned)
}

/// Whether a normalised path is `prefix` or below it, on segment borders; `/` holds everything.
#[must_use]
pub fn within(path: &str, prefix: &str) -> bool {
    let Some(rest) = after(path.as_bytes(), prefix.as_bytes()) else {
        return false;
    };
    prefix.ends_with('/') || rest.is_empty() || rest[0] == b'/' || rest.starts_with(b"%2F")
}

/// Whether a normalised path is exactly this one.
#[must_use]
pub fn is(path: &str, exact: &str) -> bool {
    after(path.as_bytes(), exact.as_bytes()).is_some_and(<[u8]>::is_empty)
}

/// What follows `pattern` in `path`, if it starts with it; `%2F` passes for a `/` of the pattern.
fn after<'a>(mut path: &'a [u8], pattern: &[u8]) -> Option<&'a [u8]> {
    for &wanted in pattern {
        path = match path {
            [byte, rest @ ..] if *byte == wanted => rest,
            [b'%', b'2', b'F', rest @ ..] if wanted == b'/' => rest,
            _ => return None,
        };
    }
    Some(path)
}

/// Nothing to decode, to collapse, to resolve or to refuse.
fn is_normal(path: &[u8]) -> bool {
    let mut before = 0;
    path.iter().all(|&byte| {
        let after_slash = std::mem::replace(&mut before, byte) == b'/';
        match byte {
            b'/' | b'.' => !after_slash,
            b'%' | b'\\' => false,
            _ => !byte.is_ascii_control(),
        }
    })
}

fn decode(path: &str) -> Option<String> {
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)? as u8;
                let low = char::from(bytes.next()?).to_digit(16)? as u8;
                match high << 4 | low {
                    0 => return None,
                    plain if is_unreserved(plain) => out.push(plain),
                    _ => out.extend([b'%', hex(high), hex(low)]),
                }
            }
            b'\\' => return None,
            _ if byte.is_ascii_control() => return None,
            _ => out.push(byte),
        }
    }
    // Only ASCII was put in the place of ASCII.
    String::from_utf8(out).ok()
}

/// Collapses and resolves the segments of a decoded path.
fn resolve(path: &str) -> Option<String> {
    let mut out = String::with_capacity(path.len());
    let mut gap = false;
    let mut segments = path[1..].split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "" => gap |= !last,
            "." => {}
            ".." if gap => return None,
            ".." => {
                let parent = out.rfind('/')?;
                out.truncate(parent);
            }
            _ if hides_dots(segment) => return None,
            _ => {
                out.push('/');
                out.push_str(segment);
                continue;
            }
        }
        if last {
            out.push('/');
        }
    }
    Some(out)
}

/// Whether a segment would hold a dot segment if its escaped separators were separators.
fn hides_dots(segment: &str) -> bool {
    let mut pieces = segment.split("%2F").flat_map(|piece| piece.split("%5C"));
    pieces.any(|piece| matches!(piece, "." | ".."))
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

const fn hex(digit: u8) -> u8 {
    b"0123456789ABCDEF"[digit as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_one_path_compare_as_one() {
        for (path, normal) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a/", "/a/"),
            ("//", "/"),
            ("//a///b//", "/a/b/"),
            ("/%61dm%69n", "/admin"),
            ("/%7euser/%2D", "/~user/-"),
            ("/a%c3%a4", "/a%C3%A4"),
            ("/a%2fb", "/a%2Fb"),
            ("/a/./b", "/a/b"),
            ("/a/.", "/a/"),
            ("/.", "/"),
            ("/a/../b", "/b"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/b/../../c", "/c"),
            ("/a/%2e%2E/b", "/b"),
            ("/a/.%2e/b", "/b"),
            ("/a/%2e/b", "/a/b"),
            ("/.well-known/x", "/.well-known/x"),
            ("/..a/b..", "/..a/b.."),
            ("/...", "/..."),
            ("/%252e%252e/a", "/%252e%252e/a"),
            ("/a%2Fb.c%2F.d", "/a%2Fb.c%2F.d"),
            ("/%5C", "/%5C"),
            ("/a;b=c/d:e@f", "/a;b=c/d:e@f"),
            ("/ä", "/ä"),
            ("/a//./b", "/a/b"),
        ] {
            assert_eq!(normalize(path).as_deref(), Some(normal), "{path}");
        }
        assert!(matches!(
            normalize("/usual/path.txt"),
            Some(Cow::Borrowed(_))
        ));
    }

    #[test]
    fn what_two_readers_resolve_differently_is_refused() {
        for path in [
            "",
            "a",
            "*",
            "/%",
            "/%4",
            "/%zz",
            "/%+1",
            "/%00",
            "/a\0",
            "/a\n",
            "/a\u{7f}",
            "/a\\b",
            "/..",
            "/../a",
            "/a/../..",
            "/%2e%2e/a",
            "/a/%2e%2e/../b",
            "/a//../b",
            "//a/../b",
            "/a/..%2fb",
            "/a/%2f..",
            "/a/..%5cb",
            "/a%2f%2e%2e%2fb",
            "/a%2F./b",
            "/a%5C..%2Fb",
        ] {
            assert_eq!(normalize(path), None, "{path:?}");
        }
    }

    #[test]
    fn prefixes_end_on_segment_borders() {
        for (path, prefix, held) in [
            ("/", "/", true),
            ("/a", "/", true),
            ("/api", "/api", true),
            ("/api/", "/api", true),
            ("/api/users", "/api", true),
            ("/apis", "/api", false),
            ("/api.json", "/api", false),
            ("/ap", "/api", false),
            ("/ws/x", "/ws/", true),
            ("/ws/", "/ws/", true),
            ("/ws", "/ws/", false),
            ("/api%2Fusers", "/api", true),
            ("/api%2Fadmin", "/api/admin", true),
            ("/api%2Fadminx", "/api/admin", false),
            ("/ws%2Fx", "/ws/", true),
            ("/a%2Fb/c", "/a%2Fb", true),
            ("/a/b/c", "/a%2Fb", false),
            ("/api%2E", "/api", false),
        ] {
            assert_eq!(within(path, prefix), held, "{path} {prefix}");
        }
    }

    #[test]
    fn exact_is_exact() {
        assert!(is("/a/b", "/a/b"));
        assert!(is("/a%2Fb", "/a/b"));
        assert!(!is("/a/b/", "/a/b"));
        assert!(!is("/a", "/a/b"));
        assert!(!is("/A/b", "/a/b"));
    }

    proptest! {
        #[test]
        fn a_normal_path_is_its_own_normal_form(path in "/([a.%/\\\\2eEfF5cC]|%2[eEfF]|\\.\\.?/){0,14}|/\\PC{0,12}") {
            if let Some(normal) = normalize(&path) {
                prop_assert!(normal.starts_with('/'));
                prop_assert!(!normal.contains("//") && !normal.contains('\\'));
                prop_assert!(!normal.split('/').any(|segment| matches!(segment, "." | "..")));
                let again = normalize(&normal);
                prop_assert_eq!(again.as_deref(), Some(&*normal));
                prop_assert!(within(&normal, "/") && is(&normal, &normal) && within(&normal, &normal));
            }
        }
    }
}
