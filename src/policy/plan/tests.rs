//! Every gate, every reason, their order, and Vary.

use http::header::{ACCEPT_ENCODING, HeaderValue};
use proptest::prelude::*;

use super::case::{Case, case, headers, policy};
use super::*;
use crate::codec::Coding;
use crate::config::settings::CrossSite;
use crate::head::accept::Accepts;

fn encoded(coding: Coding, level: u8) -> Verdict {
    Verdict {
        plan: Plan::Encode(Recipe::new(coding, level)),
        vary: true,
    }
}

fn passed(reason: Reason, vary: bool) -> Verdict {
    Verdict {
        plan: Plan::Pass(reason),
        vary,
    }
}

#[test]
fn what_may_be_coded_is() {
    let gzip = encoded(Coding::Gzip, 4);
    for (story, case, expected) in [
        ("big JSON", case(), gzip),
        ("no length", case().length(None), gzip),
        ("just big enough", case().length(512), gzip),
        ("HEAD with a length", case().method(Method::HEAD), gzip),
        (
            "HEAD without one",
            case().method(Method::HEAD).length(None),
            gzip,
        ),
        ("POST", case().method(Method::POST), gzip),
        ("h2", case().version(Version::HTTP_2), gzip),
        (
            "HTTP/1.0, short enough to be coded whole",
            case().version(Version::HTTP_10),
            gzip,
        ),
        (
            "HTTP/1.0, length to be seen",
            case().version(Version::HTTP_10).length(None),
            gzip,
        ),
        ("an error page", case().status(500).kind("text/html"), gzip),
        (
            "any letter case",
            case().kind("Image/SVG+XML; charset=utf-8"),
            gzip,
        ),
        (
            "an event stream",
            case().kind("text/event-stream").length(None),
            gzip,
        ),
        (
            "gRPC-Web",
            case().kind("application/grpc-web+proto").length(None),
            gzip,
        ),
        (
            "an empty Content-Encoding",
            case().says("content-encoding", ""),
            gzip,
        ),
        (
            "Thinwire-Compress: on",
            case().says("thinwire-compress", "on"),
            gzip,
        ),
        (
            "the client's order",
            case().accept("br;q=0.6, gzip;q=0.4"),
            encoded(Coding::Brotli, 5),
        ),
        (
            "the server's order",
            case().accept("gzip, br, zstd"),
            encoded(Coding::Zstd, 1),
        ),
        ("any coding", case().accept("*"), encoded(Coding::Zstd, 1)),
        ("x-gzip", case().accept("x-gzip"), gzip),
        (
            "small, but plain is refused",
            case().length(100).accept("gzip, identity;q=0"),
            gzip,
        ),
        (
            "small, plain refused by *",
            case().length(1).accept("*;q=0, gzip"),
            gzip,
        ),
        (
            "no-transform on a route that does not mind",
            case()
                .route(|compress| compress.honor_no_transform = false)
                .says("cache-control", "no-transform")
                .request("cache-control", "no-transform"),
            gzip,
        ),
        (
            "another site on a route that does not mind",
            case()
                .route(|compress| compress.breach_cross_site = CrossSite::Compress)
                .request("referer", "https://evil.test/"),
            gzip,
        ),
        (
            "the same site",
            case().request("referer", "https://example.com/page"),
            gzip,
        ),
        (
            "quoted no-transform",
            case().says("cache-control", "private=\"no-transform\""),
            gzip,
        ),
    ] {
        assert_eq!(case.verdict(), expected, "{story}");
    }
}

#[test]
fn each_gate_has_its_reason() {
    let off = |compress: &mut Compress| compress.enabled = false;
    for (story, case, reason, vary) in [
        ("route off", case().route(off), Reason::Disabled, false),
        (
            "the app's word",
            case().says("thinwire-compress", "Off"),
            Reason::Disabled,
            false,
        ),
        (
            "identity opts out",
            case().says("content-encoding", "identity"),
            Reason::Disabled,
            false,
        ),
        (
            "none opts out",
            case().says("content-encoding", "none"),
            Reason::Disabled,
            false,
        ),
        ("101", case().status(101), Reason::Upgrade, false),
        (
            "extended CONNECT",
            case().method(Method::CONNECT),
            Reason::Upgrade,
            false,
        ),
        (
            "refused CONNECT",
            case().method(Method::CONNECT).status(405),
            Reason::Method,
            false,
        ),
        ("103", case().status(103), Reason::Status, false),
        ("204", case().status(204), Reason::Status, false),
        ("205", case().status(205), Reason::Status, false),
        ("206", case().status(206), Reason::Range, false),
        (
            "416",
            case().status(416).says("content-range", "bytes */5"),
            Reason::Range,
            false,
        ),
        (
            "br from the app",
            case().says("content-encoding", "br"),
            Reason::AlreadyCoded,
            false,
        ),
        (
            "GZIP from the app",
            case().says("content-encoding", "GZIP"),
            Reason::AlreadyCoded,
            false,
        ),
        (
            "twice coded",
            case().says("content-encoding", "gzip, gzip"),
            Reason::AlreadyCoded,
            false,
        ),
        ("image", case().kind("image/png"), Reason::Type, false),
        (
            "excepted",
            case().kind("text/x-secret; a=b"),
            Reason::Type,
            false,
        ),
        (
            "gRPC, although a pattern has it",
            case().kind("application/grpc"),
            Reason::Type,
            false,
        ),
        (
            "gRPC of a kind",
            case().kind("application/grpc+proto"),
            Reason::Type,
            false,
        ),
        ("empty type", case().kind(""), Reason::Type, false),
        (
            "no-transform",
            case().says("cache-control", "NO-Transform"),
            Reason::NoTransform,
            false,
        ),
        (
            "no-transform asked",
            case().request("cache-control", "no-transform"),
            Reason::NoTransform,
            false,
        ),
        (
            "cross site",
            case().request("sec-fetch-site", "cross-site"),
            Reason::CrossSite,
            false,
        ),
        (
            "cross-site referer",
            case().request("referer", "https://evil.test/"),
            Reason::CrossSite,
            false,
        ),
        (
            "long, HTTP/1.0",
            case().version(Version::HTTP_10).length(3 << 20),
            Reason::Version,
            false,
        ),
        ("empty", case().length(0), Reason::MinSize, false),
        (
            "empty, plain refused",
            case().length(0).accept("gzip, *;q=0"),
            Reason::MinSize,
            false,
        ),
        (
            "empty HEAD",
            case().method(Method::HEAD).length(0),
            Reason::MinSize,
            false,
        ),
        ("small", case().length(511), Reason::MinSize, true),
        (
            "small, to nobody's liking",
            case().length(511).accept("deflate"),
            Reason::MinSize,
            true,
        ),
        (
            "small, plain refused, no coding taken",
            case().length(9).accept("identity;q=0"),
            Reason::NotAccepted,
            true,
        ),
        (
            "empty Accept-Encoding",
            case().accept(""),
            Reason::NotAccepted,
            true,
        ),
        (
            "gzip refused",
            case().accept("gzip;q=0"),
            Reason::NotAccepted,
            true,
        ),
        (
            "plain liked better",
            case().accept("identity;q=1, gzip;q=0.5"),
            Reason::NotAccepted,
            true,
        ),
        (
            "only plain",
            case().accept("identity;q=1, *;q=0"),
            Reason::NotAccepted,
            true,
        ),
        (
            "nothing is right",
            case().accept("*;q=0"),
            Reason::NotAccepted,
            true,
        ),
        (
            "POST, nothing is right",
            case().method(Method::POST).accept("identity;q=0"),
            Reason::NotAccepted,
            true,
        ),
    ] {
        assert_eq!(case.verdict(), passed(reason, vary), "{story}");
    }
    let mut silent = case();
    silent.request.clear();
    assert_eq!(silent.verdict(), passed(Reason::NotAccepted, true));
    let mut untyped = case();
    untyped.head.clear();
    assert_eq!(untyped.verdict(), passed(Reason::Type, false));
}

/// Closes gate after gate from the last to the first: each newly closed one takes the reason over.
#[test]
fn the_first_closed_gate_gives_the_reason() {
    type Close = fn(&mut Case);
    let steps: [(Reason, Close); 10] = [
        (Reason::NotAccepted, |case| {
            case.request = vec![("accept-encoding", "deflate")];
        }),
        (Reason::MinSize, |case| case.compress.min_size = 4 << 20),
        (Reason::Version, |case| {
            (case.version, case.length) = (Version::HTTP_10, Some(3 << 20));
        }),
        (Reason::CrossSite, |case| {
            case.request.push(("sec-fetch-site", "cross-site"));
        }),
        (Reason::NoTransform, |case| {
            case.head.push(("cache-control", "no-transform"));
        }),
        (Reason::Type, |case| case.head[0].1 = "image/png"),
        (Reason::AlreadyCoded, |case| {
            case.head.push(("content-encoding", "br"));
        }),
        (Reason::Range, |case| case.status = 206),
        (Reason::Status, |case| case.status = 204),
        (Reason::Disabled, |case| case.compress.enabled = false),
    ];
    let mut case = case();
    for (reason, close) in steps {
        close(&mut case);
        assert_eq!(case.verdict().plan, Plan::Pass(reason));
    }
}

#[test]
fn a_304_varies_like_its_200() {
    let unchanged = || case().status(304).length(None);
    assert_eq!(unchanged().verdict(), passed(Reason::Status, true));
    assert_eq!(
        unchanged().kind("image/png").verdict(),
        passed(Reason::Status, false)
    );
    assert_eq!(
        unchanged().says("cache-control", "no-transform").verdict(),
        passed(Reason::Status, false)
    );
    assert_eq!(
        unchanged()
            .route(|compress| compress.enabled = false)
            .verdict(),
        passed(Reason::Disabled, false)
    );
    let mut terse = unchanged();
    terse.head.clear();
    assert_eq!(terse.verdict(), passed(Reason::Status, false));
}

#[test]
fn a_client_may_hold_coded_bytes_if_it_takes_a_coding_of_the_route() {
    let takes = |value: &'static str, compress: &Compress| {
        let request = headers(&[("accept-encoding", value)]);
        let asked = Asked::of(&Method::GET, Version::HTTP_11, "a", &request, compress);
        asked.takes_coded(compress)
    };
    let mut compress = policy();
    assert!(takes("gzip;q=0.1, identity", &compress));
    assert!(!takes("deflate", &compress));
    assert!(!takes("", &compress));
    compress.encodings = vec![Coding::Brotli];
    assert!(!takes("gzip", &compress));
    compress.enabled = false;
    assert!(!takes("br", &compress));
}

proptest! {
    /// The definition of Vary, tried on heads of all sorts: it is there exactly where some
    /// Accept-Encoding gets the answer coded.
    #[test]
    fn vary_tells_exactly_where_accept_encoding_could_matter(
        accept in prop::sample::select(vec!["", "gzip", "*", "identity", "*;q=0, br", "zstd;q=0.1, identity"]),
        content_type in prop::sample::select(vec!["application/json", "image/png", "application/grpc", "text/css"]),
        coded in prop::sample::select(vec!["", "br", "identity"]),
        status in prop::sample::select(vec![200_u16, 204, 206, 404, 101]),
        length in prop::sample::select(vec![None, Some(0), Some(1), Some(600), Some(3 << 20)]),
        control in prop::sample::select(vec!["public", "no-transform"]),
        site in prop::sample::select(vec!["none", "cross-site"]),
        old: bool,
        enabled: bool,
    ) {
        let case = case()
            .accept(accept)
            .kind(content_type)
            .says("content-encoding", coded)
            .says("cache-control", control)
            .request("sec-fetch-site", site)
            .status(status)
            .length(length)
            .version(if old { Version::HTTP_10 } else { Version::HTTP_2 })
            .route(|compress| compress.enabled = enabled);
        let could = [Coding::Zstd, Coding::Brotli, Coding::Gzip].iter().any(|&coding| {
            let verdict = case.verdict_for(Some(Accepts::only(coding)));
            matches!(verdict.plan, Plan::Encode(_))
        });
        let verdict = case.verdict();
        prop_assert_eq!(verdict.vary, could);
        if let Plan::Encode(recipe) = verdict.plan {
            let mut request = HeaderMap::new();
            request.insert(ACCEPT_ENCODING, HeaderValue::from_static(accept));
            let taken = case.compress.encodings.iter().find(|&&coding| {
                Recipe::new(coding, case.compress.levels.of(coding)) == recipe
            });
            prop_assert!(taken.is_some_and(|&coding| Accepts::parse(&request).takes(coding)));
        }
    }
}
