//! `/catalogue`: what may be kept, and revalidated (RFC 9110 section 13, RFC 9111).

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use flate2::Crc;
use http::header::{CACHE_CONTROL, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::{Either, Full};

use super::answer::{Body, whole};
use super::data::Dice;

/// 14 November 2023, 22:13:20 GMT.
const MODIFIED: Duration = Duration::from_secs(1_700_000_000);

const ARTICLES: usize = 600;

struct Catalogue {
    body: Bytes,
    tag: HeaderValue,
    modified: HeaderValue,
}

/// 200 with the whole of it, or 304 to those who have it.
pub(super) fn answer(request: &HeaderMap) -> Response<Body> {
    let catalogue = catalogue();
    let mut response = if held(request, catalogue) {
        let mut response = Response::new(Either::Left(Full::default()));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        whole("application/json", catalogue.body.clone())
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, catalogue.tag.clone());
    headers.insert(LAST_MODIFIED, catalogue.modified.clone());
    let kept = HeaderValue::from_static("public, max-age=60");
    headers.insert(CACHE_CONTROL, kept);
    response
}

/// Whether the client has it: by tag, compared weakly; by date where it names no tag.
fn held(request: &HeaderMap, catalogue: &Catalogue) -> bool {
    if request.contains_key(IF_NONE_MATCH) {
        return request.get_all(IF_NONE_MATCH).iter().any(|line| {
            let tags = line.as_bytes().split(|&byte| byte == b',');
            tags.map(<[u8]>::trim_ascii).any(|tag| {
                tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == catalogue.tag.as_bytes()
            })
        });
    }
    let since = request.get(IF_MODIFIED_SINCE);
    since
        .and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok())
        .is_some_and(|since| since >= SystemTime::UNIX_EPOCH + MODIFIED)
}

fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        let body = articles();
        let mut crc = Crc::new();
        crc.update(&body);
        let tag = format!("\"{:08x}\"", crc.sum());
        let modified = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + MODIFIED);
        Catalogue {
            body: body.into(),
            tag: HeaderValue::try_from(tag).expect("quoted hex digits"),
            modified: HeaderValue::try_from(modified).expect("an HTTP date"),
        }
    })
}

fn articles() -> Vec<u8> {
    const KINDS: [&str; 6] = ["lamp", "chair", "kettle", "notebook", "clock", "blanket"];
    const LOOKS: [&str; 6] = ["oak", "brass", "linen", "slate", "amber", "walnut"];
    let mut dice = Dice::new(3);
    let mut text = String::from("{\"currency\":\"EUR\",\"articles\":[");
    for number in 1..=ARTICLES {
        let (look, kind) = (dice.pick(&LOOKS), dice.pick(&KINDS));
        let cents = 500 + dice.next() % 20_000;
        let stock = dice.next() % 90;
        let comma = if number == 1 { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            r#"{comma}{{"sku":"TW-{number:04}","name":"{look} {kind}","cents":{cents},"stock":{stock}}}"#
        );
    }
    text.push_str("]}");
    text.into_bytes()
}
