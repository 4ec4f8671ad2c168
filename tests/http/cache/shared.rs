//! What may be shared, and with whom; and attempts to poison it.

use super::*;

#[test]
fn what_is_one_users_is_never_shared() {
    for (asked, answered) in [
        (&[][..], &[("Cache-Control", "private, max-age=60")][..]),
        (&[], &[("Cache-Control", "no-store, max-age=60")]),
        (
            &[],
            &[("Cache-Control", "max-age=60"), ("Set-Cookie", "id=1")],
        ),
        (&[], &[("Cache-Control", "max-age=60"), ("Vary", "*")]),
        (
            &[],
            &[
                ("Cache-Control", "max-age=60"),
                ("CDN-Cache-Control", "no-store"),
            ],
        ),
        (
            &[("authorization", "Basic x")],
            &[("Cache-Control", "max-age=60")],
        ),
        (&[("cookie", "id=1")], &[]),
        (&[], &[]),
    ] {
        let fields = [&[("Content-Type", "text/css")], answered].concat();
        let app = json(&fields);
        let proxy = caching_with(
            &app,
            if asked.is_empty() && answered.is_empty() {
                "densify: true"
            } else {
                "default_ttl: 10m"
            },
        );
        proxy.get("/account.css", asked).expect(200);
        let second = proxy.get("/account.css", &[]);
        assert!(
            !said(&second).contains("hit"),
            "{answered:?}: {}",
            said(&second)
        );
        assert_eq!(app.requests().len(), 2);
    }
}

#[test]
fn authorization_is_shared_where_the_app_says_so() {
    for control in [
        "public, max-age=60",
        "s-maxage=60",
        "max-age=60, must-revalidate",
    ] {
        let app = Origin::answer(200, &[("Cache-Control", control)], "x");
        let proxy = caching(&app);
        let user = [("authorization", "Basic x")];
        proxy.get("/x", &user);
        is_hit(&proxy.get("/x", &[]));
        is_hit(&proxy.get("/x", &user));
    }
    let app = Origin::answer(200, &[("Cache-Control", "max-age=60")], "x");
    let proxy = caching(&app);
    proxy.get("/x", &[]);
    let user = proxy.get("/x", &[("authorization", "Basic x")]);
    assert!(
        !said(&user).contains("hit"),
        "the app may have another for this user"
    );
}

#[test]
fn cdn_cache_control_counts_before_cache_control() {
    let fields = [
        ("Cache-Control", "no-store"),
        ("CDN-Cache-Control", "max-age=600"),
    ];
    let app = Origin::answer(200, &fields, "x");
    let proxy = caching(&app);
    proxy.get("/x", &[]);
    let hit = proxy.get("/x", &[]);
    is_hit(&hit);
    assert_eq!(
        hit.header("cache-control"),
        Some("no-store"),
        "for caches behind us"
    );
}

#[test]
fn both_lines_of_vary_count() {
    let app = Origin::start(|call| {
        call.body()?;
        let of = |name| asked(call, name).unwrap_or("-").to_owned();
        let body = format!("{} {}", of("x-one"), of("x-two"));
        let vary = [("Vary", "X-One, Accept-Encoding"), ("Vary", "X-Two")];
        call.answer(
            200,
            &[&vary[..], &[("Cache-Control", "max-age=600")]].concat(),
            body.as_bytes(),
        )
    });
    let proxy = caching(&app);
    for _ in 0..2 {
        for (one, two) in [("a", "a"), ("a", "b"), ("b", "a")] {
            let reply = proxy.get("/x", &[("x-one", one), ("x-two", two)]);
            assert_eq!(reply.text(), format!("{one} {two}"));
        }
    }
    assert_eq!(app.requests().len(), 3);
}

#[test]
fn thousands_of_vary_values_are_bounded() {
    let fields = [("Cache-Control", "max-age=600"), ("Vary", "X-Any")];
    let app = Origin::answer(200, &fields, "x");
    let proxy = caching(&app);
    proxy.get("/other", &[]);
    let mut conn = proxy.conn();
    for number in 0..1000 {
        conn.get("/x", &[("x-any", &*number.to_string())]);
    }
    let held = proxy.metrics().sum("thinwire_cache_bytes", &[]);
    assert!(held < 65.0 * 4096.0, "{held}");
    is_hit(&proxy.get("/other", &[]));
}

/// An app that tells how it was asked, as many do in links and redirects.
fn reflecting() -> Origin {
    Origin::start(|call| {
        call.body()?;
        let names = [
            "host",
            "x-forwarded-host",
            "x-forwarded-proto",
            "x-original-url",
            "forwarded",
        ];
        let told = names.map(|name| asked(call, name).unwrap_or("-").to_owned());
        let body = format!("{} {} {}", call.method(), call.target(), told.join(" "));
        call.answer(200, &[("Cache-Control", "max-age=600")], body.as_bytes())
    })
}

#[test]
fn unkeyed_fields_do_not_poison() {
    let app = reflecting();
    for trust in ["[]", "[127.0.0.0/8]"] {
        let listen = format!("- address: 127.0.0.1:0\n  trust_forwarded_from: {trust}");
        let proxy = Setup::before(&app).listen(&listen).route(ON).start();
        for poison in [
            ("x-forwarded-host", "evil.example"),
            ("x-forwarded-prefix", "/evil"),
            ("x-forwarded-server", "evil.example"),
            ("x-original-url", "/evil"),
            ("x-rewrite-url", "/evil"),
            ("x-host", "evil.example"),
            ("x-http-method-override", "POST"),
        ] {
            let path = format!("/{}", poison.0);
            proxy.get(&path, &[poison]);
            let victim = proxy.get(&path, &[]).text();
            assert!(!victim.contains("evil"), "{poison:?}: {victim}");
            is_hit(&proxy.get(&path, &[]));
            let clean = proxy.get(&path, &[]).text();
            assert!(!clean.contains("evil"), "{clean}");
        }
    }
}

#[test]
fn scheme_host_port_path_and_query_are_all_in_the_key() {
    let app = reflecting();
    let listen = "- address: 127.0.0.1:0\n  trust_forwarded_from: [127.0.0.0/8]";
    let proxy = Setup::before(&app).listen(listen).route(ON).start();
    let ways: [(&str, Fields<'_>); 8] = [
        ("/x", &[("host", "a.example")]),
        ("/x", &[("host", "b.example")]),
        ("/x", &[("host", "a.example:81")]),
        (
            "/x",
            &[("host", "a.example"), ("x-forwarded-proto", "https")],
        ),
        ("/x?q", &[("host", "a.example")]),
        ("/x?q=1", &[("host", "a.example")]),
        ("/X", &[("host", "a.example")]),
        ("/%78", &[("host", "a.example")]),
    ];
    let first = ways.map(|(target, fields)| proxy.get(target, fields).text());
    assert_eq!(app.requests().len(), ways.len());
    for ((target, fields), first) in ways.iter().zip(&first) {
        let reply = proxy.get(target, fields);
        is_hit(&reply);
        assert_eq!(reply.text(), *first);
    }
    is_hit(&proxy.get("/x", &[("host", "A.EXAMPLE:80")]));
    let absolute = proxy.get("http://b.example/x", &[("host", "a.example")]);
    assert_eq!(
        absolute.text(),
        first[1],
        "Host beside an absolute target is ignored"
    );
}

#[test]
fn the_query_counts_as_the_route_says() {
    for (rule, targets) in [
        ("none", ["/x?a=1", "/x?b=2", "/x"]),
        ("[a]", ["/x?a=1&b=1", "/x?b=2&a=1", "/x?a=1"]),
    ] {
        let app = counting(&[("Cache-Control", "max-age=600")]);
        let proxy = caching_with(&app, &format!("query: {rule}"));
        for target in targets {
            assert_eq!(proxy.get(target, &[]).body, b"0", "{rule} {target}");
        }
    }
}

#[test]
fn a_get_with_a_body_is_nobody_elses() {
    let app = Origin::start(|call| {
        let body = call.body()?;
        call.answer(200, &[("Cache-Control", "max-age=600")], &body)
    });
    let proxy = caching(&app);
    assert_eq!(proxy.ask("GET", "/x", &[], b"evil").body, b"evil");
    assert_eq!(proxy.get("/x", &[]).body, b"");
    assert_eq!(proxy.ask("GET", "/x", &[], b"evil").body, b"evil");
}

#[test]
fn routes_share_no_copies() {
    let app = Origin::start(|call| {
        call.body()?;
        let body = if asked(call, "x-beta").is_some() {
            "new"
        } else {
            "old"
        };
        call.answer(200, &[("Cache-Control", "max-age=600")], body.as_bytes())
    });
    let beta = "- name: beta\n  match: { path: /, headers: { x-beta: \"*\" } }\n  upstream: app";
    let proxy = Setup::before(&app)
        .routes_before(&format!("{beta}\n  {ON}"))
        .route(ON)
        .start();
    for _ in 0..2 {
        assert_eq!(proxy.get("/x", &[("x-beta", "1")]).body, b"new");
        assert_eq!(proxy.get("/x", &[]).body, b"old");
    }
    assert_eq!(app.requests().len(), 2);
}

#[test]
fn a_reload_keeps_the_copies() {
    let app = counting(&[("Cache-Control", "max-age=600")]);
    let setup = Setup::before(&app).route(ON);
    let proxy = setup.start();
    proxy.get("/x", &[]);
    proxy.reload(&setup.defaults("timeouts: { request_body: 61s }").yaml());
    proxy.wait_for_log("the reload", |line| line.contains("configuration reloaded"));
    assert_eq!(proxy.get("/x", &[]).body, b"0");
}
