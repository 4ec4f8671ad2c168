use super::*;
use http::HeaderValue;

fn url(text: &str, rule: &QueryKey) -> Option<String> {
    Url::parse(text, rule).map(|url| url.as_str().to_owned())
}

fn names(names: &[&str]) -> QueryKey {
    QueryKey::Names(names.iter().map(|&name| name.to_owned()).collect())
}

fn head(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_str(value).expect("a field value"));
    }
    headers
}

#[test]
fn scheme_and_authority_are_always_part_of_it_in_one_form() {
    for (text, expected) in [
        ("http://example.com", "http://example.com/"),
        ("HTTP://EXAMPLE.com.:80/a?b#c", "http://example.com/a?b"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("http://example.com?q", "http://example.com/?q"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("http://h/p?", "http://h/p?"),
    ] {
        assert_eq!(
            url(text, &QueryKey::All).as_deref(),
            Some(expected),
            "{text}"
        );
    }
    for text in [
        "",
        "/p",
        "h/p",
        "ftp://h/",
        "http://",
        "http:///p",
        "http://a@b/",
        "http://a b/",
    ] {
        assert_eq!(url(text, &QueryKey::All), None, "{text}");
    }
}

#[test]
fn the_path_is_kept_as_the_app_saw_it() {
    for path in ["/a//b", "/a/../b", "/%61", "/a%2Fb", "/A"] {
        let text = format!("http://h{path}");
        assert_eq!(url(&text, &QueryKey::All), Some(text));
    }
}

#[test]
fn no_path_reads_as_another_authority() {
    let origin = Origin {
        https: false,
        authority: Authority::parse("h").expect("a host"),
    };
    let url = Url::new(&origin, ".evil.example/", None, &QueryKey::All);
    assert_eq!(url.as_str(), "http://h/.evil.example/");
}

#[test]
fn the_query_counts_as_the_route_says() {
    let of = |query: &str, rule: &QueryKey| {
        let url = url(&format!("http://h/?{query}"), rule).expect("a URL");
        url["http://h/".len()..].to_owned()
    };
    assert_eq!(of("b=2&a=1&b=3", &QueryKey::All), "?b=2&a=1&b=3");
    assert_eq!(of("b=2&a=1", &QueryKey::None), "");
    let b = names(&["b"]);
    assert_eq!(of("b=2&a=1&b=3&bb=4&b", &b), "?b=2&b=3&b");
    assert_eq!(of("a=1", &b), "");
    assert_eq!(of("a=1", &names(&[])), "");
}

#[test]
fn a_parameter_in_disguise_is_still_in_the_key() {
    let of = |query: &str| url(&format!("http://h/?{query}"), &names(&["user id"]));
    for query in [
        "user%20id=1",
        "user+id=1",
        "%75ser%20id=1",
        "user+id[]=1",
        "user%20id%5B0%5D=1",
    ] {
        assert_eq!(of(query), Some(format!("http://h/?{query}")), "{query}");
    }
    // An app that also splits at `;` sees a parameter there.
    assert_eq!(
        of("x=1;user+id=2").as_deref(),
        Some("http://h/?x=1;user+id=2")
    );
}

fn selector(vary: &[&str], request: &[(&'static str, &str)]) -> Option<Selector> {
    let fields: Vec<_> = vary.iter().map(|line| ("vary", *line)).collect();
    Selector::read(&head(&fields), &head(request))
}

fn selects(vary: &[&str], stored: &[(&'static str, &str)], asked: &[(&'static str, &str)]) -> bool {
    let selector = selector(vary, stored).expect("a selector");
    let selected = selector.is_selected(&mut None, &head(asked));
    // The short cut says the same.
    let mut last = Some(selector.of(&head(asked)));
    assert_eq!(selector.is_selected(&mut last, &head(asked)), selected);
    selected
}

#[test]
fn section_4_1_the_fields_that_vary_names_select() {
    let (one, two, bar) = (("foo", "1"), ("foo", "2"), ("bar", "abc"));
    assert!(selects(&["Foo"], &[one], &[one]));
    assert!(!selects(&["Foo"], &[one], &[two]));
    assert!(!selects(&["Foo"], &[], &[one]), "absent when stored");
    assert!(!selects(&["Foo"], &[one], &[]), "absent when asked");
    assert!(
        !selects(&["Foo"], &[], &[("foo", "")]),
        "empty is not absent"
    );
    assert!(
        selects(&["Foo"], &[one, bar], &[one]),
        "others do not count"
    );
    assert!(selects(&["Foo, Bar"], &[one, bar], &[bar, one]));
    assert!(!selects(&["Foo, Bar"], &[one, bar], &[one]));
    assert!(
        !selects(&["Foo", "Bar"], &[one, bar], &[one]),
        "every line of Vary"
    );
    assert!(selects(&["Foo, Bar"], &[bar], &[bar]), "absent both times");
    assert!(selects(&[], &[one], &[two]));
    assert!(selects(&[" , "], &[one], &[two]));
}

#[test]
fn section_4_1_normalisation_changes_no_meaning() {
    assert!(selects(
        &["foo"],
        &[("foo", "1, 2")],
        &[("foo", "1"), ("foo", "2")]
    ));
    assert!(selects(&["foo"], &[("foo", "1,2")], &[("foo", " 1,  2 ")]));
    assert!(!selects(&["foo"], &[("foo", "1,2")], &[("foo", "2,1")]));
    assert!(!selects(&["foo"], &[("foo", "a")], &[("foo", "A")]));
    assert!(!selects(
        &["foo"],
        &[("foo", "\"a, b\"")],
        &[("foo", "\"a,b\"")]
    ));
    let language = |value| [("accept-language", value)];
    let vary = &["accept-language"];
    assert!(selects(vary, &language("en, de"), &language("eN ,De")));
    assert!(
        !selects(vary, &language("en, de"), &language("de, en")),
        "apps take the first"
    );
}

#[test]
fn values_cannot_reach_into_their_neighbours() {
    let vary = &["a, b"];
    assert!(!selects(
        vary,
        &[("a", "x"), ("b", "")],
        &[("a", ""), ("b", "x")]
    ));
    assert!(!selects(vary, &[("a", "x,y")], &[("a", "x"), ("b", "y")]));
    assert!(!selects(vary, &[("a", "x")], &[("b", "x")]));
}

#[test]
fn accept_encoding_is_never_part_of_it() {
    let (br, gzip) = (("accept-encoding", "br"), ("accept-encoding", "gzip"));
    assert!(selects(&["Accept-Encoding"], &[br], &[gzip]));
    assert!(selects(
        &["ACCEPT-encoding, Foo"],
        &[br, ("foo", "1")],
        &[("foo", "1")]
    ));
    assert!(!selects(
        &["accept-encoding", "foo"],
        &[("foo", "1")],
        &[("foo", "2")]
    ));
}

#[test]
fn what_cannot_select_is_not_stored() {
    for vary in [
        &["*"][..],
        &["*, *"],
        &[", *"],
        &["", "*"],
        &["Foo, *"],
        &["*", "Foo"],
        &["a b"],
    ] {
        assert_eq!(selector(vary, &[]), None, "{vary:?}");
    }
}

#[test]
fn oversized_vary_is_not_stored() {
    let many = |count: usize| (0..count).map(|n| format!("f{n},")).collect::<String>();
    assert!(selector(&[&many(Selector::MOST_FIELDS)], &[]).is_some());
    assert!(selector(&[&many(Selector::MOST_FIELDS + 1)], &[]).is_none());
    assert!(selector(&[&many(5000)], &[]).is_none());
    let long = "x".repeat(Selector::MOST_BYTES);
    assert!(selector(&["foo"], &[("foo", &long)]).is_none());
    assert!(selector(&["foo"], &[("foo", &long[10..])]).is_some());
    assert!(
        selector(&["foo, foo, FOO"], &[("foo", &long[10..])]).is_some(),
        "each once"
    );
}
