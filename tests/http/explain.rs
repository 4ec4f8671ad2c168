//! `Thinwire-Explain: 1`: why an answer looks as it does, told to those in `admin.explain_to`.

use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::support::{Fields, Nowhere, Origin, Proxy, Reply, Setup, big, noise};

const EVERYBODY: &str = "[127.0.0.0/8]";

/// `app` behind a proxy that explains itself to these CIDRs.
fn explaining(setup: &Setup, to: &str) -> Proxy {
    let admin = "  address: 127.0.0.1:0\nlog";
    let told = format!("  address: 127.0.0.1:0\n  explain_to: {to}\nlog");
    Proxy::start(&setup.yaml().replace(admin, &told))
}

/// The explanation, as names and values.
#[track_caller]
fn explanation(reply: &Reply) -> Dictionary {
    let field = reply.header("thinwire-explain").expect("an explanation");
    Parser::new(field)
        .parse()
        .unwrap_or_else(|error| panic!("{error}: {field}"))
}

/// A member as text; numbers as they are written.
fn member(told: &Dictionary, name: &str) -> Option<String> {
    let ListEntry::Item(item) = told.get(name)? else {
        panic!("{name} is a list");
    };
    Some(match &item.bare_item {
        BareItem::Token(token) => token.as_str().to_owned(),
        BareItem::String(string) => string.as_str().to_owned(),
        BareItem::Integer(number) => number.to_string(),
        BareItem::Decimal(number) => number.to_string(),
        other => panic!("{name}: {other:?}"),
    })
}

#[track_caller]
fn says(told: &Dictionary, members: Fields<'_>) {
    for &(name, value) in members {
        assert_eq!(member(told, name).as_deref(), Some(value), "{name}");
    }
}

const ASKED: (&str, &str) = ("Thinwire-Explain", "1");

#[test]
fn an_answer_says_why_it_is_as_it_is() {
    let app = Origin::start(|call| match call.path() {
        "/small" => call.answer(200, &[("Content-Type", "application/json")], b"{}"),
        "/noise" => call.answer(200, &[("Content-Type", "application/json")], &noise(65536)),
        "/image" => call.answer(200, &[("Content-Type", "image/png")], &big()),
        _ => call.answer(200, &[("Content-Type", "application/json")], &big()),
    });
    let anew = Setup::before(&app).defaults("cache: { reuse: false }");
    let proxy = explaining(&anew, EVERYBODY);
    for (target, coding, reason) in [
        ("/", "gzip", "compressed"),
        ("/small", "identity", "min_size"),
        ("/noise", "identity", "incompressible"),
        ("/image", "identity", "type"),
    ] {
        let fields = [ASKED, ("Accept-Encoding", "gzip")];
        for reply in proxy.both("GET", target, &fields) {
            let told = explanation(&reply);
            says(
                &told,
                &[
                    ("route", "everything"),
                    ("coding", coding),
                    ("reason", reason),
                    ("upstream", &app.server()),
                    ("cache", "none"),
                ],
            );
            assert!(member(&told, "why").is_some_and(|why| why.len() > 10));
            let waited = member(&told, "pool_wait_ms").expect("a wait");
            assert!(waited.parse::<f64>().is_ok_and(|waited| waited >= 0.0));
        }
    }
    for sent in app.requests() {
        assert_eq!(sent.head.field("thinwire-explain"), None);
    }
}

#[test]
fn it_names_the_level_the_cache_and_the_trace() {
    let app = Origin::start(|call| {
        let fields = [
            ("Content-Type", "application/json"),
            ("Cache-Control", "max-age=60"),
        ];
        call.answer(200, &fields, &big())
    });
    let setup = Setup::before(&app).route("cache: { enabled: true }");
    let proxy = explaining(&setup, EVERYBODY);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let fields = [
        ASKED,
        ("Accept-Encoding", "br"),
        ("Traceparent", parent.as_str()),
    ];
    let told = explanation(&proxy.get("/", &fields));
    says(
        &told,
        &[("coding", "br"), ("cache", "miss"), ("trace_id", trace)],
    );
    let told = explanation(&proxy.get("/", &fields));
    says(&told, &[("coding", "br"), ("cache", "hit")]);
    let uncached = Setup::before(&app).route("compress: { levels: { gzip: 6 } }");
    let proxy = explaining(&uncached, EVERYBODY);
    let told = explanation(&proxy.get("/", &[ASKED, ("Accept-Encoding", "gzip")]));
    says(&told, &[("level", "6")]);
}

#[test]
fn failures_are_explained_too() {
    let nobody = Nowhere::reserve();
    let only = "- { name: api, match: { path: /api }, upstream: app }";
    let yaml = Setup::before(&nobody).routes_before(only).yaml();
    let yaml = yaml.replace("match: { path: / }", "match: { path: /=never }");
    let yaml = yaml.replace(
        "127.0.0.1:0\nlog",
        "127.0.0.1:0\n  explain_to: [127.0.0.1/32]\nlog",
    );
    let proxy = Proxy::start(&yaml);
    let told = explanation(&proxy.get("/api", &[ASKED]).expect(502));
    says(&told, &[("route", "api"), ("reason", "status")]);
    assert!(member(&told, "error").is_some_and(|error| error.contains("cannot be reached")));
    let told = explanation(&proxy.get("/other", &[ASKED]).expect(404));
    says(&told, &[("route", "-")]);
}

#[test]
fn nobody_else_gets_an_explanation() {
    let app = Origin::json(big());
    let proxy = explaining(&Setup::before(&app), "[192.0.2.0/24]");
    for reply in proxy.both("GET", "/", &[ASKED, ("Accept-Encoding", "gzip")]) {
        assert_eq!(reply.header("thinwire-explain"), None);
    }
    let proxy = explaining(&Setup::before(&app), EVERYBODY);
    for fields in [&[][..], &[("Thinwire-Explain", "0")]] {
        assert_eq!(proxy.get("/", fields).header("thinwire-explain"), None);
    }
    for sent in app.requests() {
        assert_eq!(
            sent.head.field("thinwire-explain"),
            None,
            "stripped all the same"
        );
    }
}

#[test]
fn a_reload_changes_who_may_ask() {
    let app = Origin::json(big());
    let proxy = Proxy::before(&app);
    assert_eq!(proxy.get("/", &[ASKED]).header("thinwire-explain"), None);
    let yaml = Setup::before(&app).yaml();
    proxy.reload(&yaml.replace(
        "127.0.0.1:0\nlog",
        "127.0.0.1:0\n  explain_to: [127.0.0.1/32]\nlog",
    ));
    proxy.wait_for_log("the reload", |line| line.contains("configuration reloaded"));
    explanation(&proxy.get("/", &[ASKED]));
}
