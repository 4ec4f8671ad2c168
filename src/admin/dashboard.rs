//! The dashboard: one page that needs nothing but itself and `/dashboard.json`.
//!
//! It holds no data: those come with the operator's token, which the page asks for where the
//! address wants one. Nothing in it comes from another host, and its policy lets nothing.

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::HeaderValue;
use http::header::{self, HeaderMap};

const STYLE: &str = include_str!("dashboard/style.css");

const SCRIPT: &str = concat!(
    include_str!("dashboard/data.js"),
    include_str!("dashboard/plot.js"),
    include_str!("dashboard/page.js"),
);

/// The page for those who may see it.
static PAGE: LazyLock<Bytes> = LazyLock::new(|| {
    let page = include_str!("dashboard/page.html")
        .replace("/*STYLE*/", STYLE)
        .replace("/*SCRIPT*/", SCRIPT);
    Bytes::from(page)
});

/// The page for those who have to show their token first.
static LOCKED: LazyLock<Bytes> = LazyLock::new(|| {
    let page = String::from_utf8_lossy(&PAGE);
    page.replacen("<html ", "<html data-locked ", 1).into()
});

/// What the page may do: run its own style and script, and ask where it comes from.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = |text: &str| BASE64_STANDARD.encode(digest(&SHA256, text.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; \
         img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    HeaderValue::try_from(policy).expect("words and base64 are a field value")
});

/// The page; where it is `locked` it asks for the token.
pub(super) fn page(locked: bool) -> Bytes {
    if locked { LOCKED.clone() } else { PAGE.clone() }
}

/// What goes with it.
pub(super) fn fields(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_whole_and_names_no_other_host() {
        let page = String::from_utf8_lossy(&page(false)).into_owned();
        assert!(page.contains(STYLE) && page.contains(SCRIPT));
        // The namespace of SVG is a name and no address.
        let page = page.replace("http://www.w3.org/2000/svg", "");
        for word in ["http://", "https://", "//cdn", "@import", "src=", "url("] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
