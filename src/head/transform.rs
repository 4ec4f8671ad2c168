//! What the head of an answer says once its body is coded, or could have been.
//!
//! Every answer goes through exactly one of [`coded`], [`plain_variant`] and [`untouched`]. All
//! three take the app's opt-outs away: they are between the app and us.

use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue,
};

use super::{etag, list, vary};
use crate::codec::Coding;

/// How the app speaks to us: `off` keeps its answer plain.
pub const THINWIRE_COMPRESS: HeaderName = HeaderName::from_static("thinwire-compress");

/// Digests of the bytes of a coded representation: Content-MD5 (RFC 1864), Digest (RFC 3230),
/// Content-Digest and Repr-Digest (RFC 9530). Signatures stay: who signed a digest has it checked.
const DIGESTS: [HeaderName; 4] = [
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// The body is sent in this coding: to a GET or POST with its bytes, to a HEAD without.
///
/// `length` is the exact count of coded bytes; `None` for a stream and for HEAD, which then have no
/// Content-Length.
pub fn coded(headers: &mut HeaderMap, coding: Coding, length: Option<u64>) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
    match length {
        Some(length) => headers.insert(CONTENT_LENGTH, HeaderValue::from(length)),
        None => headers.remove(CONTENT_LENGTH),
    };
    // Ranges of these bytes are not to be had, and the app's are of other ones.
    headers.remove(ACCEPT_RANGES);
    for digest in DIGESTS {
        headers.remove(digest);
    }
    etag::code(headers, coding);
    plain_variant(headers);
}

/// The body is plain, but another Accept-Encoding would have got it coded.
pub fn plain_variant(headers: &mut HeaderMap) {
    vary::add_accept_encoding(headers);
    untouched(headers);
}

/// The body is as the app sent it for everyone.
///
/// A Content-Encoding that opts out goes with our word: it is no coding (RFC 9110 section 8.4 wants
/// no `identity` there, and `none` is not registered), and there are clients that give up on it.
pub fn untouched(headers: &mut HeaderMap) {
    headers.remove(THINWIRE_COMPRESS);
    if encoding(headers) == Encoding::Plain {
        headers.remove(CONTENT_ENCODING);
    }
}

/// The trailers that follow a body coded here: digests of the plain bytes go, a tag is coded.
pub fn coded_trailers(trailers: &mut HeaderMap, coding: Coding) {
    for digest in DIGESTS {
        trailers.remove(digest);
    }
    etag::code(trailers, coding);
}

/// Whether the app wants this answer plain: `Thinwire-Compress: off`, or a Content-Encoding of
/// nothing but `identity` and `none`, the opt-out that other proxies know too.
#[must_use]
pub fn app_opted_out(headers: &HeaderMap) -> bool {
    let off =
        list::tokens(headers, THINWIRE_COMPRESS).any(|word| word.eq_ignore_ascii_case(b"off"));
    off || encoding(headers) == Encoding::Plain
}

/// Whether the app coded the body itself, in whatever it was.
#[must_use]
pub fn is_coded(headers: &HeaderMap) -> bool {
    encoding(headers) == Encoding::Coded
}

#[derive(PartialEq, Eq)]
enum Encoding {
    Unsaid,
    Plain,
    Coded,
}

fn encoding(headers: &HeaderMap) -> Encoding {
    let mut encoding = Encoding::Unsaid;
    for member in list::tokens(headers, CONTENT_ENCODING) {
        if !member.eq_ignore_ascii_case(b"identity") && !member.eq_ignore_ascii_case(b"none") {
            return Encoding::Coded;
        }
        encoding = Encoding::Plain;
    }
    encoding
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let fields = fields.iter().map(|&(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        fields.collect()
    }

    const PLAIN: [(&str, &str); 11] = [
        ("content-type", "application/json"),
        ("content-length", "102400"),
        ("etag", "\"a\""),
        ("vary", "Origin"),
        ("accept-ranges", "bytes"),
        ("content-md5", "x"),
        ("digest", "sha-256=x"),
        ("content-digest", "sha-256=:x:"),
        ("repr-digest", "sha-256=:x:"),
        ("last-modified", "Sat, 29 Oct 1994 19:43:31 GMT"),
        ("thinwire-compress", "on"),
    ];

    #[test]
    fn a_coded_head_says_nothing_of_the_plain_bytes() {
        let mut headers = head(&PLAIN);
        coded(&mut headers, Coding::Brotli, Some(4711));
        let mut expected = head(&[
            ("content-type", "application/json"),
            ("content-length", "4711"),
            ("content-encoding", "br"),
            ("etag", "\"a-br\""),
            ("vary", "Origin, Accept-Encoding"),
            ("last-modified", "Sat, 29 Oct 1994 19:43:31 GMT"),
        ]);
        assert_eq!(headers, expected);

        let mut headers = head(&PLAIN);
        coded(&mut headers, Coding::Brotli, None);
        expected.remove(CONTENT_LENGTH);
        assert_eq!(headers, expected);
    }

    #[test]
    fn a_plain_variant_keeps_all_and_says_that_there_are_others() {
        let mut headers = head(&PLAIN);
        plain_variant(&mut headers);
        let mut expected = head(&PLAIN);
        expected.insert("vary", HeaderValue::from_static("Origin, Accept-Encoding"));
        expected.remove(THINWIRE_COMPRESS);
        assert_eq!(headers, expected);
    }

    #[test]
    fn an_untouched_head_loses_our_word_only() {
        let mut headers = head(&PLAIN);
        untouched(&mut headers);
        let mut expected = head(&PLAIN);
        expected.remove(THINWIRE_COMPRESS);
        assert_eq!(headers, expected);
    }

    #[test]
    fn an_opt_out_does_not_reach_the_client_and_a_coding_does() {
        for (value, kept) in [
            ("identity", false),
            ("None", false),
            ("identity, none", false),
            ("gzip, identity", true),
            ("br", true),
        ] {
            let mut headers = head(&[("content-encoding", value)]);
            untouched(&mut headers);
            assert_eq!(headers.contains_key(CONTENT_ENCODING), kept, "{value}");
        }
    }

    #[test]
    fn trailers_of_a_coded_body_say_nothing_of_the_plain_bytes() {
        let mut trailers = head(&[("content-digest", "x"), ("etag", "\"a\""), ("x-sum", "1")]);
        coded_trailers(&mut trailers, Coding::Gzip);
        assert_eq!(trailers, head(&[("etag", "\"a-gzip\""), ("x-sum", "1")]));
    }

    #[test]
    fn the_app_opts_out_or_codes_itself() {
        for (field, value, out, is) in [
            ("content-encoding", "identity", true, false),
            ("content-encoding", "None", true, false),
            ("content-encoding", "GZIP", false, true),
            ("content-encoding", "gzip, gzip", false, true),
            ("content-encoding", "identity, br", false, true),
            ("content-encoding", "new-one", false, true),
            ("content-encoding", "", false, false),
            ("thinwire-compress", "off", true, false),
            ("thinwire-compress", " OFF ", true, false),
            ("thinwire-compress", "on", false, false),
        ] {
            let headers = head(&[(field, value)]);
            assert_eq!(app_opted_out(&headers), out, "{field}: {value}");
            assert_eq!(is_coded(&headers), is, "{field}: {value}");
        }
    }
}
