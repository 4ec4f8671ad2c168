use super::*;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn head_of(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_str(value).expect("a field value"));
    }
    headers
}

fn lines(headers: &HeaderMap) -> Vec<String> {
    let fields = headers.iter();
    let lines = fields.map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")));
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

#[test]
fn section_3_1_what_belongs_to_a_connection_or_a_client_is_not_kept() {
    let response = head_of(&[
        ("connection", "a, Close"),
        ("connection", "b"),
        ("a", "1"),
        ("b", "2"),
        ("c", "3"),
        ("c", "4"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "x"),
        ("proxy-authenticate", "x"),
        ("proxy-authentication-info", "x"),
        ("proxy-authorization", "x"),
        ("te", "x"),
        ("trailer", "x"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "x"),
        ("set-cookie", "id=1"),
        ("age", "9"),
        ("date", "today"),
    ]);
    assert_eq!(
        lines(&head(&response, NOW)),
        ["c: 3", "c: 4", "date: today"]
    );
}

#[test]
fn sections_5_2_2_4_and_5_2_2_7_listed_fields_are_not_kept() {
    let response = head_of(&[
        ("cache-control", "no-cache=\"a\", private=\"b, c\""),
        ("a", "1"),
        ("b", "2"),
        ("c", "3"),
        ("d", "4"),
        ("date", "x"),
    ]);
    let kept = head(&response, NOW);
    assert_eq!(kept.len(), 3);
    assert!(kept.contains_key("d") && kept.contains_key("cache-control"));
}

#[test]
fn a_kept_value_holds_no_read_buffer() {
    let mut buffer = vec![b'x'; 64 * 1024];
    buffer[..5].copy_from_slice(b"value");
    let buffer = Bytes::from(buffer);
    let mut response = HeaderMap::new();
    let value = HeaderValue::from_maybe_shared(buffer.slice(..5)).expect("a field value");
    response.insert("a", value);
    let kept = head(&response, NOW);
    drop(response);
    assert!(buffer.is_unique(), "only the reader still has it");
    assert_eq!(kept["a"], "value");
}

#[test]
fn sections_3_2_and_4_3_4_a_304_updates_all_but_what_describes_the_bytes() {
    let kept = head_of(&[
        ("etag", "\"a\""),
        ("content-encoding", "br"),
        ("content-length", "5"),
        ("content-range", "x"),
        ("content-md5", "m"),
        ("repr-digest", "r"),
        ("content-type", "text/plain"),
        ("cache-control", "max-age=1"),
        ("cache-control", "public"),
        ("stays", "1"),
    ]);
    let response = head_of(&[
        ("etag", "\"a\""),
        ("content-encoding", "gzip"),
        ("content-length", "10"),
        ("content-range", "y"),
        ("content-md5", "n"),
        ("content-digest", "new"),
        ("repr-digest", "s"),
        ("content-type", "text/html"),
        ("cache-control", "max-age=9"),
        ("set-cookie", "id=1"),
        ("connection", "hop"),
        ("hop", "1"),
        ("age", "3"),
        ("new", "1"),
        ("new", "2"),
    ]);
    let merged = not_modified(&kept, &response, NOW).expect("the same");
    assert_eq!(
        lines(&merged),
        [
            "cache-control: max-age=9",
            "content-encoding: br",
            "content-length: 5",
            "content-md5: m",
            "content-range: x",
            "content-type: text/html",
            "date: Thu, 01 Jan 1970 00:00:00 GMT",
            "etag: \"a\"",
            "new: 1",
            "new: 2",
            "repr-digest: r",
            "stays: 1",
        ]
    );
}

#[test]
fn a_coding_is_never_given_to_bytes_that_have_none() {
    let kept = head_of(&[("etag", "\"a\"")]);
    let response = head_of(&[("etag", "\"a\""), ("content-encoding", "gzip")]);
    let merged = not_modified(&kept, &response, NOW).expect("the same");
    assert!(!merged.contains_key(CONTENT_ENCODING));
}

#[test]
fn section_4_3_4_only_what_was_validated_is_updated() {
    type Fields<'a> = &'a [(&'static str, &'a str)];
    let modified = ("last-modified", "Wed, 01 Jan 2020 00:00:00 GMT");
    let later = ("last-modified", "Thu, 02 Jan 2020 00:00:00 GMT");
    let (a, weak) = (("etag", "\"a\""), ("etag", "W/\"a\""));
    let table: &[(&str, Fields<'_>, Fields<'_>, bool)] = &[
        ("the same strong tag", &[a], &[a], true),
        ("another strong tag", &[a], &[("etag", "\"b\"")], false),
        ("the same weak tag", &[weak], &[weak], true),
        ("another weak tag", &[weak], &[("etag", "W/\"b\"")], false),
        ("a strong tag for a weak one", &[weak], &[a], false),
        ("a weak tag for a strong one", &[a], &[weak], true),
        ("a tag for none", &[], &[a], false),
        ("no tag", &[a], &[], true),
        ("the tag before the date", &[a, modified], &[a, later], true),
        ("the same date", &[modified], &[modified], true),
        ("another date", &[modified], &[later], false),
        (
            "a tag that is none, the same",
            &[("etag", "a")],
            &[("etag", "a")],
            true,
        ),
        (
            "a tag that is none, another",
            &[("etag", "a")],
            &[("etag", "b")],
            false,
        ),
        ("nothing at all", &[], &[], true),
        (
            "Vary as before",
            &[("vary", "a, B")],
            &[("vary", "b"), ("vary", "A")],
            true,
        ),
        ("Vary left out", &[("vary", "a")], &[], true),
        ("another Vary", &[("vary", "a")], &[("vary", "b")], false),
        ("Vary that now forbids", &[], &[("vary", "*")], false),
    ];
    for (rule, kept, response, updates) in table {
        let found = not_modified(&head_of(kept), &head_of(response), NOW);
        assert_eq!(found.is_ok(), *updates, "{rule}");
    }
}

#[test]
fn section_4_3_5_a_head_freshens_what_it_agrees_with() {
    let kept = head_of(&[("etag", "\"a\""), ("content-length", "5"), ("x", "1")]);
    let fresh = freshened(&kept, &head_of(&[("content-length", "5"), ("x", "2")]), NOW);
    assert_eq!(fresh.expect("the same")["x"], "2");
    assert!(freshened(&kept, &head_of(&[("etag", "\"a\"")]), NOW).is_ok());
    for other in [
        ("content-length", "6"),
        ("etag", "\"b\""),
        ("last-modified", "Wed, 01 Jan 2020 00:00:00 GMT"),
        ("content-encoding", "gzip"),
    ] {
        assert_eq!(
            freshened(&kept, &head_of(&[other]), NOW),
            Err(Mismatch),
            "{other:?}"
        );
    }
}

#[test]
fn a_304_that_lists_a_kept_field_takes_it_away() {
    let kept = head_of(&[("etag", "\"a\""), ("x-user", "1"), ("y", "2")]);
    let response = head_of(&[("cache-control", "private=\"x-user\", max-age=9")]);
    let merged = not_modified(&kept, &response, NOW).expect("the same");
    assert!(!merged.contains_key("x-user") && merged.contains_key("y"));
}

#[test]
fn rfc_9110_section_6_6_1_what_is_kept_has_a_date() {
    let date = |fields| head(&head_of(fields), NOW)[DATE].clone();
    assert_eq!(date(&[]), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(date(&[("date", "what the app said")]), "what the app said");
}
