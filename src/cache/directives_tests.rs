use super::*;
use http::HeaderValue;

fn head(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let value = HeaderValue::from_str(value).expect("a field value");
        headers.append(*name, value);
    }
    headers
}

fn response(lines: &[&str]) -> ResponseDirectives {
    let fields: Vec<_> = lines.iter().map(|line| ("cache-control", *line)).collect();
    ResponseDirectives::read(&head(&fields))
}

fn cdn(value: &str) -> ResponseDirectives {
    ResponseDirectives::read(&head(&[
        ("cdn-cache-control", value),
        ("cache-control", "max-age=1"),
    ]))
}

#[test]
fn numbers_as_rfc_9111_section_1_2_2_has_them() {
    use Delta::{Absent, Seconds, Unreadable};
    for (lines, expected) in [
        (&["max-age=3600"][..], Seconds(3600)),
        (&["MaX-aGe=3600"], Seconds(3600)),
        (&["max-age=003600"], Seconds(3600)),
        (&["max-age=\"3600\""], Seconds(3600)),
        (&["max-age=2147483648"], Seconds(1 << 31)),
        (&["max-age=99999999999"], Seconds(1 << 31)),
        (&["max-age=99999999999999999999999999"], Seconds(1 << 31)),
        (&["public, max-age=5 ,foo"], Seconds(5)),
        (&["max-age"], Unreadable),
        (&["max-age="], Unreadable),
        (&["max-age=-3600"], Unreadable),
        (&["max-age=3600.0"], Unreadable),
        (&["max-age=a3600"], Unreadable),
        (&["max-age=3600a"], Unreadable),
        (&["max-age='3600'"], Unreadable),
        (&["max-age =3600"], Unreadable),
        (&["max-age= 3600"], Unreadable),
        (&["max-age=\"3600"], Unreadable),
        // Section 4.2.1: two that agree are one, two that do not are none.
        (&["max-age=5, max-age=5"], Seconds(5)),
        (&["max-age=5, max-age=6"], Unreadable),
        (&["max-age=5", "max-age=6"], Unreadable),
        (&["max-age=5, max-age=6, max-age=5"], Unreadable),
        // What stands in quotes belongs to another directive.
        (&["ext=\"max-age=3600\", max-age=1"], Seconds(1)),
        (&["max-age=1, ext=\"max-age=3600\""], Seconds(1)),
        (&["ext=\"a, max-age=3600\""], Absent),
        (&["x-max-age=1"], Absent),
        (&[""], Absent),
    ] {
        assert_eq!(response(lines).max_age, expected, "{lines:?}");
    }
}

#[test]
fn what_restricts_counts_in_any_dress() {
    for line in [
        "no-store",
        "No-StOrE",
        "a, no-store=1",
        "no-store =x",
        "max-age=9,,no-store",
    ] {
        assert!(response(&[line]).no_store, "{line}");
    }
    assert!(response(&["max-age=9", "no-store"]).no_store, "second line");
    assert!(!response(&["ext=\"no-store\""]).no_store);
    assert!(response(&["public"]).public);
    assert!(!response(&["public=\"x\""]).public, "permissions are exact");
}

#[test]
fn qualified_forms_speak_of_fields_all_others_of_everything() {
    let fields = |names: &[&'static str]| {
        Extent::Fields(
            names
                .iter()
                .map(|name| HeaderName::from_static(name))
                .collect(),
        )
    };
    for (lines, expected) in [
        (&["no-cache"][..], Extent::Response),
        (&["no-cache=\"a\""], fields(&["a"])),
        (
            &["no-cache=\"A, set-cookie\", max-age=1"],
            fields(&["a", "set-cookie"]),
        ),
        (&["no-cache=\"a\"", "no-cache=\"b\""], fields(&["a", "b"])),
        (&["no-cache=\"a\"", "no-cache"], Extent::Response),
        (&["no-cache=a"], Extent::Response),
        (&["no-cache=\"\""], Extent::Response),
        (&["no-cache=\"a b\""], Extent::Response),
        (&["no-cache=\"a"], Extent::Response),
        (&["max-age=1"], Extent::Nothing),
    ] {
        assert_eq!(response(lines).no_cache, expected, "{lines:?}");
    }
    assert_eq!(
        response(&["private=\"x-user\""]).private,
        fields(&["x-user"])
    );
    assert_eq!(response(&["private"]).private, Extent::Response);
}

#[test]
fn pragma_counts_only_without_cache_control() {
    let pragma = |fields| ResponseDirectives::read(&head(fields)).no_cache;
    assert_eq!(pragma(&[("pragma", "no-cache")]), Extent::Response);
    assert_eq!(pragma(&[("pragma", "x, No-Cache")]), Extent::Response);
    assert_eq!(pragma(&[("pragma", "x")]), Extent::Nothing);
    let both = [("pragma", "no-cache"), ("cache-control", "max-age=1")];
    assert_eq!(pragma(&both), Extent::Nothing);
    assert!(RequestDirectives::read(&head(&[("pragma", "no-cache")])).no_cache);
    assert!(
        !RequestDirectives::read(&head(&both)).no_cache,
        "section 5.4"
    );
}

#[test]
fn cdn_cache_control_is_a_dictionary_and_counts_alone() {
    let found = cdn("max-age=60, must-revalidate, foo=(a b);x");
    assert!(found.targeted && found.must_revalidate);
    assert_eq!(found.max_age, Delta::Seconds(60));
    assert!(cdn("no-store").no_store);
    assert!(!cdn("no-store=?0").no_store);
    assert_eq!(
        cdn("max-age=60;ext=1").max_age,
        Delta::Seconds(60),
        "parameters"
    );
    assert_eq!(
        cdn("max-age=1, max-age=60").max_age,
        Delta::Seconds(60),
        "the last member"
    );
    // A value of another type makes a directive that is not there.
    for value in ["max-age=\"60\"", "max-age=6.5", "max-age", "max-age=-1"] {
        let found = cdn(value);
        assert!(found.targeted, "{value}");
        assert_eq!(found.max_age, Delta::Absent, "{value}");
    }
}

#[test]
fn what_is_no_dictionary_is_as_if_absent() {
    for value in [
        "",
        " ",
        "max-age=60,",
        "Max-Age=60",
        "max-age = 60",
        "max-age=60 no-store",
        "\"",
    ] {
        let found = cdn(value);
        assert!(!found.targeted, "{value:?}");
        assert_eq!(found.max_age, Delta::Seconds(1), "{value:?}");
    }
    let lines = head(&[
        ("cdn-cache-control", "max-age=5"),
        ("cdn-cache-control", "no-cache"),
    ]);
    let found = ResponseDirectives::read(&lines);
    assert_eq!(
        found.max_age,
        Delta::Seconds(5),
        "all lines are one dictionary"
    );
    assert_eq!(found.no_cache, Extent::Response);
}

#[test]
fn requests_say_what_they_take() {
    let asked = |value: &str| RequestDirectives::read(&head(&[("cache-control", value)]));
    let none = RequestDirectives::default();
    for (value, expected) in [
        (
            "No-Cache",
            RequestDirectives {
                no_cache: true,
                ..none
            },
        ),
        (
            "no-store",
            RequestDirectives {
                no_store: true,
                ..none
            },
        ),
        (
            "only-if-cached",
            RequestDirectives {
                only_if_cached: true,
                ..none
            },
        ),
        (
            "max-age=0",
            RequestDirectives {
                max_age: Some(0),
                ..none
            },
        ),
        (
            "max-age=9, max-age=3",
            RequestDirectives {
                max_age: Some(3),
                ..none
            },
        ),
        (
            "min-fresh=3, min-fresh=9",
            RequestDirectives {
                min_fresh: Some(9),
                ..none
            },
        ),
        (
            "max-stale",
            RequestDirectives {
                max_stale: Some(u32::MAX),
                ..none
            },
        ),
        (
            "max-stale=5",
            RequestDirectives {
                max_stale: Some(5),
                ..none
            },
        ),
        (
            "max-stale=5, max-stale",
            RequestDirectives {
                max_stale: Some(5),
                ..none
            },
        ),
        ("max-stale=x, max-age=x, min-fresh", none),
        ("x=\"no-cache\"", none),
    ] {
        assert_eq!(asked(value), expected, "{value}");
    }
}
