use super::*;

fn head(name: &HeaderName, values: &[&'static str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(name.clone(), HeaderValue::from_static(value));
    }
    headers
}

#[test]
fn dialects_are_known_by_their_content_type() {
    for (content_type, dialect) in [
        ("application/grpc", Some(Dialect::Grpc)),
        ("Application/gRPC+proto; charset=x", Some(Dialect::Grpc)),
        ("application/grpc-web", Some(Dialect::Web { text: false })),
        (
            "application/grpc-web+proto",
            Some(Dialect::Web { text: false }),
        ),
        (
            "application/grpc-web-text",
            Some(Dialect::Web { text: true }),
        ),
        (
            "application/grpc-web-text+proto",
            Some(Dialect::Web { text: true }),
        ),
        ("application/connect+json", Some(Dialect::Connect)),
        ("application/grpcx", None),
        ("application/grpc-webx", None),
        ("application/proto", None),
        ("application/json", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(content_type));
        assert_eq!(Dialect::of(&headers), dialect, "{content_type}");
    }
}

#[test]
fn a_client_takes_what_it_lists_and_nothing_else() {
    let takes = Codings::of(
        &head(&ACCEPT_ENCODING, &["identity, deflate,br", "gzip,snappy"]),
        ACCEPT_ENCODING,
    );
    assert!(takes.has(Coding::Gzip) && takes.has(Coding::Deflate));
    assert!(!takes.has(Coding::Zstd) && !takes.has(Coding::Brotli));
    assert_eq!(
        Codings::of(&HeaderMap::new(), ACCEPT_ENCODING),
        Codings::default()
    );
}

#[test]
fn an_announced_coding_is_known_or_not() {
    for (value, announced) in [
        ("gzip", Announced::Known(Coding::Gzip)),
        ("zstd", Announced::Known(Coding::Zstd)),
        ("identity", Announced::Identity),
        ("", Announced::Identity),
        ("br", Announced::Unknown),
        ("snappy", Announced::Unknown),
    ] {
        assert_eq!(
            Announced::of(&head(&ENCODING, &[value]), ENCODING),
            announced,
            "{value}"
        );
    }
    assert_eq!(
        Announced::of(&HeaderMap::new(), ENCODING),
        Announced::Identity
    );
}

#[test]
fn timeouts_are_digits_and_a_unit() {
    for (value, expected) in [
        ("1H", Some(Duration::from_secs(3600))),
        ("2M", Some(Duration::from_secs(120))),
        ("15S", Some(Duration::from_secs(15))),
        ("100m", Some(Duration::from_millis(100))),
        ("7u", Some(Duration::from_micros(7))),
        ("7n", Some(Duration::from_nanos(7))),
        ("999999999m", Some(Duration::from_millis(999_999_999))),
        ("S", None),
        ("", None),
        ("-1S", None),
        ("1.5S", None),
        ("1s", None),
        ("99999999999999999999S", None),
        ("18446744073709551615H", None),
    ] {
        assert_eq!(timeout(&head(&TIMEOUT, &[value])), expected, "{value}");
    }
}

#[test]
fn a_message_is_percent_encoded() {
    let mut fields = HeaderMap::new();
    Status::Internal.write("100 % schön\n", &mut fields);
    assert_eq!(fields[STATUS], "13");
    assert_eq!(fields[MESSAGE], "100 %25 sch%C3%B6n%0A");
}
