//! `cache.shared`: several processes before one app, and a real redis-server between them.

use std::time::Instant;

use super::*;
use crate::support::{Ca, Conn, PATIENCE, Redis, Signal, eventually};

const CODINGS: [&str; 3] = ["gzip", "br", "identity"];
const FRESH: (&str, &str) = ("Cache-Control", "max-age=600");

/// A replica that reaches the tier.
#[track_caller]
fn replica(app: &impl App, redis: &Redis) -> Proxy {
    replica_with(app, &redis.yaml(), "")
}

#[track_caller]
fn replica_with(app: &impl App, top: &str, keys: &str) -> Proxy {
    let proxy = Setup::before(app)
        .top(top)
        .route(&format!(
            "cache: {{ enabled: true, densify: false, {keys} }}"
        ))
        .start();
    is_reached(&proxy, true);
    proxy
}

#[track_caller]
fn is_reached(proxy: &Proxy, reached: bool) {
    proxy.until("thinwire_shared_cache_reached", &[], |seen| {
        (seen == 1.0) == reached
    });
}

/// Waits until so many things of this kind ended so.
#[track_caller]
fn until(proxy: &Proxy, operation: &str, outcome: &str, count: usize) {
    let labels = [("operation", operation), ("outcome", outcome)];
    proxy.until("thinwire_shared_cache_total", &labels, |seen| {
        seen >= count as f64
    });
}

fn count(proxy: &Proxy, operation: &str, outcome: &str) -> f64 {
    let labels = [("operation", operation), ("outcome", outcome)];
    proxy.metrics().sum("thinwire_shared_cache_total", &labels)
}

#[track_caller]
fn purge(proxy: &Proxy, body: &str) -> u64 {
    let json = [("content-type", "application/json")];
    let mut conn = Conn::open(proxy.admin_addr());
    let reply = conn.ask("POST", "/cache/purge", &json, body.as_bytes());
    reply.expect(200).json()["purged"]
        .as_u64()
        .expect("a number")
}

/// Asks with this host, so that all replicas speak of one URL.
#[track_caller]
fn ask(proxy: &Proxy, target: &str, fields: Fields<'_>) -> Reply {
    let host = [("host", "app.example")];
    proxy.get(target, &[&host, fields].concat())
}

#[test]
fn three_replicas_fetch_once_and_encode_each_coding_once() {
    let (app, redis) = (json(&[FRESH, ("ETag", "\"a\"")]), Redis::start());
    let replicas = [(); 3].map(|()| replica(&app, &redis));
    for (number, proxy) in replicas.iter().enumerate() {
        for coding in CODINGS {
            let reply = ask(proxy, "/x", &[("accept-encoding", coding)]).expect(200);
            assert_eq!((reply.coding(), reply.decoded() == big()), (coding, true));
            let form = if coding == "identity" {
                ""
            } else {
                &format!("-{coding}")
            };
            assert_eq!(reply.header("etag"), Some(&*format!("\"a{form}\"")));
            if number > 0 {
                is_hit(&reply);
            }
        }
        if number == 0 {
            until(proxy, "keep", "kept", 1);
            until(proxy, "keep_coded", "kept", 2);
        }
    }
    assert_eq!(app.requests().len(), 1, "one fetch in all");
    for coding in ["gzip", "br"] {
        let encodes = |proxy: &Proxy| {
            let labels = [("coding", coding)];
            proxy.metrics().sum("thinwire_encodes_total", &labels)
        };
        assert_eq!(replicas.iter().map(encodes).sum::<f64>(), 1.0, "{coding}");
    }
    let page = &redis.names("thinwire:1:p:")[..];
    let [page] = page else { panic!("{page:?}") };
    let left: u64 = redis.cli(&["PTTL", page]).parse().expect("a number");
    assert!(
        left > 0 && left <= 600_000,
        "it lives while it is fresh: {left}"
    );
}

#[test]
fn many_who_want_the_same_ask_the_tier_once() {
    let (app, redis) = (json(&[FRESH]), Redis::start());
    let first = replica(&app, &redis);
    ask(&first, "/x", &[]);
    until(&first, "keep", "kept", 1);
    let second = replica(&app, &redis);
    redis.freeze();
    let mut conns: Vec<_> = (0..50).map(|_| second.conn()).collect();
    for conn in &mut conns {
        conn.request("GET", "/x", &[("host", "app.example")], b"");
    }
    second.until("thinwire_requests_in_flight", &[], |running| {
        running == 50.0
    });
    redis.thaw();
    for conn in &mut conns {
        assert_eq!(conn.reply().expect(200).body, big());
    }
    assert_eq!(count(&second, "find", "hit"), 1.0);
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn a_purge_reaches_all() {
    let app = counting(&[FRESH, ("Surrogate-Key", "red")]);
    let redis = Redis::start();
    let replicas = [(); 3].map(|()| replica(&app, &redis));
    let purges = [
        ("/x", r#"{"url": "http://app.example/x"}"#),
        ("/y", r#"{"prefix": "http://app.example/"}"#),
        ("/z", r#"{"tag": "red"}"#),
    ];
    for (number, (target, body)) in purges.into_iter().enumerate() {
        let old = ask(&replicas[0], target, &[]).body;
        eventually("the tier to have it", || {
            (redis.names("thinwire:1:p:").len() == number + 1).then_some(())
        });
        for proxy in &replicas {
            assert_eq!(ask(proxy, target, &[]).body, old);
        }
        assert!(purge(&replicas[1], body) >= 1);
        for proxy in &replicas {
            eventually("the old to be gone", || {
                (ask(proxy, target, &[]).body != old).then_some(())
            });
        }
        let late = replica(&app, &redis);
        assert_ne!(
            ask(&late, target, &[]).body,
            old,
            "nor does the tier give it"
        );
    }
}

#[test]
fn what_a_request_makes_invalid_is_invalid_for_all() {
    let app = counting(&[FRESH]);
    let redis = Redis::start();
    let [one, other] = [(); 2].map(|()| replica(&app, &redis));
    let old = ask(&one, "/x", &[]).body;
    until(&one, "keep", "kept", 1);
    assert_eq!(ask(&other, "/x", &[]).body, old);
    one.ask("POST", "/x", &[("host", "app.example")], b"change");
    eventually("the old to be gone", || {
        (ask(&other, "/x", &[]).body != old).then_some(())
    });
}

#[test]
fn an_answer_from_before_a_purge_is_not_found_after_it() {
    let (asked_for, go) = (Signal::new(), Signal::new());
    let app = {
        let (asked_for, go) = (asked_for.clone(), go.clone());
        let count = std::sync::atomic::AtomicUsize::new(0);
        Origin::start(move |call| {
            call.body()?;
            let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            if number == 0 {
                asked_for.fire();
                call.wait(&go);
            }
            call.answer(200, &[FRESH], number.to_string().as_bytes())
        })
    };
    let redis = Redis::start();
    let [slow, other] = [(); 2].map(|()| replica(&app, &redis));
    let mut conn = slow.conn();
    conn.request("GET", "/x", &[("host", "app.example")], b"");
    asked_for.wait();
    purge(&other, r#"{"url": "http://app.example/x"}"#);
    go.fire();
    assert_eq!(conn.reply().body, b"0");
    assert_eq!(ask(&other, "/x", &[]).body, b"1");
}

#[test]
fn it_may_be_killed_and_started_again_at_any_time() {
    let app = counting(&[FRESH]);
    let mut redis = Redis::start();
    let [one, other] = [(); 2].map(|()| replica(&app, &redis));
    let old = ask(&one, "/x", &[]).body;
    until(&one, "keep", "kept", 1);
    assert_eq!(ask(&other, "/x", &[]).body, old);
    redis.kill();
    for proxy in [&one, &other] {
        is_reached(proxy, false);
        assert_eq!(ask(proxy, "/x", &[]).body, old, "memory is the first tier");
        let unseen = ask(proxy, "/y", &[]).expect(200).body;
        assert_eq!(ask(proxy, "/y", &[]).body, unseen, "and goes on by itself");
    }
    let purged = purge(&one, r#"{"url": "http://app.example/x"}"#);
    assert_eq!(purged, 1);
    assert_eq!(ask(&other, "/x", &[]).body, old, "it cannot know yet");
    redis.restart();
    for proxy in [&one, &other] {
        is_reached(proxy, true);
    }
    eventually("the purge to be told", || {
        (ask(&other, "/x", &[]).body != old).then_some(())
    });
    let body = ask(&one, "/z", &[]).body;
    eventually("it to be used again", || {
        (ask(&other, "/z?", &[]).status == 200 && ask(&other, "/z", &[]).body == body).then_some(())
    });
    let said = one.log();
    let lines = |words: &str| said.iter().filter(|line| line.contains(words)).count();
    assert_eq!(lines("is not used for now"), 1, "{said:#?}");
    assert_eq!(lines("is used\""), 2, "{said:#?}");
}

#[test]
fn purges_that_were_missed_are_caught_up_with() {
    let app = counting(&[FRESH, ("Surrogate-Key", "red")]);
    let redis = Redis::start();
    let [one, other] = [(); 2].map(|()| replica(&app, &redis));
    for purged in [
        r#"{"url": "http://app.example/x"}"#,
        r#"{"tag": "red"}"#,
        r#"{"prefix": "http://app.example/x"}"#,
    ] {
        let old = ask(&other, "/x", &[]).body;
        let kept = ask(&other, "/kept", &[]).body;
        // The first connection of the other one that listens ends without a word.
        let clients = redis.cli(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        let id = |line: &str| {
            let (_, rest) = line.split_once("id=")?;
            rest.split(' ').next().map(str::to_owned)
        };
        for id in clients.lines().filter_map(id) {
            redis.cli(&["CLIENT", "KILL", "ID", &id]);
        }
        purge(&one, purged);
        for proxy in [&one, &other] {
            is_reached(proxy, true);
        }
        eventually("the old to be gone", || {
            (ask(&other, "/x", &[]).body != old).then_some(())
        });
        if !purged.contains("tag") {
            assert_eq!(ask(&other, "/kept", &[]).body, kept);
        }
    }
}

#[test]
fn nobody_waits_longer_than_the_timeout_for_a_tier_that_hangs() {
    let (app, redis) = (counting(&[FRESH]), Redis::start());
    let proxy = replica_with(&app, &redis.yaml_with("timeout: 50ms"), "");
    redis.freeze();
    let began = Instant::now();
    for number in 0..20 {
        ask(&proxy, &format!("/{number}"), &[]).expect(200);
    }
    // Five wait for 50 ms each, the others for nothing; the machine may be busy.
    assert!(began.elapsed() < PATIENCE / 4, "{:?}", began.elapsed());
    is_reached(&proxy, false);
    let slow = count(&proxy, "find", "slow");
    assert!((5.0..20.0).contains(&slow), "the circuit opened: {slow}");
    redis.thaw();
    is_reached(&proxy, true);
}

#[test]
fn a_tier_that_is_not_there_at_the_start_hinders_nobody() {
    let app = counting(&[FRESH]);
    let mut redis = Redis::start();
    redis.kill();
    let proxy = Setup::before(&app).top(&redis.yaml()).route(ON).start();
    proxy.wait_for_log("a word about the tier", |line| {
        line.contains("is not used for now")
    });
    assert_eq!(ask(&proxy, "/x", &[]).expect(200).body, b"0");
    is_hit(&ask(&proxy, "/x", &[]));
    redis.restart();
    is_reached(&proxy, true);
}

#[test]
fn corrupt_and_foreign_entries_are_passed_over_and_counted() {
    let (app, redis) = (json(&[FRESH]), Redis::start());
    let first = replica(&app, &redis);
    ask(&first, "/x", &[("accept-encoding", "gzip")]);
    ask(&first, "/other", &[]);
    until(&first, "keep", "kept", 2);
    until(&first, "keep_coded", "kept", 1);
    let [ref page, ref other] = redis.names("thinwire:1:p:")[..] else {
        panic!("two pages");
    };
    let [ref coded] = redis.names("thinwire:1:c:")[..] else {
        panic!("one coded form");
    };
    let damage: [(&str, &[&[&str]]); 6] = [
        (
            "corrupt",
            &[
                &["SETRANGE", page, "60", "xyz"],
                &["SETRANGE", other, "60", "xyz"],
            ],
        ),
        (
            "foreign",
            &[&["SET", page, "hello"], &["SET", other, "hello"]],
        ),
        (
            "foreign",
            &[
                &["DEL", page, other],
                &["LPUSH", page, "x"],
                &["LPUSH", other, "x"],
            ],
        ),
        (
            "foreign",
            &[
                &["COPY", coded, page, "REPLACE"],
                &["COPY", coded, other, "REPLACE"],
            ],
        ),
        (
            "large",
            &[
                &["SETRANGE", page, "9999999", "x"],
                &["SETRANGE", other, "9999999", "x"],
            ],
        ),
        (
            "foreign",
            &[
                &["COPY", other, page, "REPLACE"],
                &["SET", other, "swapped"],
            ],
        ),
    ];
    for (outcome, commands) in damage {
        for command in commands {
            redis.cli(command);
        }
        let proxy = replica(&app, &redis);
        for target in ["/x", "/other"] {
            let reply = ask(&proxy, target, &[("accept-encoding", "gzip")]).expect(200);
            assert_eq!((reply.coding(), reply.decoded() == big()), ("gzip", true));
            assert!(
                said(&reply).contains("fwd=uri-miss"),
                "{outcome}: {}",
                said(&reply)
            );
        }
        assert_eq!(count(&proxy, "find", outcome), 2.0, "{commands:?}");
        until(&proxy, "keep", "kept", 2);
    }
}

#[test]
fn a_damaged_coded_form_is_made_again() {
    let (app, redis) = (json(&[FRESH]), Redis::start());
    let first = replica(&app, &redis);
    ask(&first, "/x", &[("accept-encoding", "gzip")]);
    until(&first, "keep_coded", "kept", 1);
    until(&first, "keep", "kept", 1);
    let [ref coded] = redis.names("thinwire:1:c:")[..] else {
        panic!("one coded form");
    };
    redis.cli(&["SETRANGE", coded, "200", "xyz"]);
    let proxy = replica(&app, &redis);
    let reply = ask(&proxy, "/x", &[("accept-encoding", "gzip")]);
    is_hit(&reply);
    assert_eq!((reply.coding(), reply.decoded() == big()), ("gzip", true));
    assert_eq!(count(&proxy, "find_coded", "corrupt"), 1.0);
}

#[test]
fn answers_that_vary_are_found_by_what_they_vary_by() {
    let app = Origin::start(|call| {
        call.body()?;
        let lang = asked(call, "x-lang").unwrap_or("none").to_owned();
        call.answer(200, &[FRESH, ("Vary", "X-Lang")], lang.as_bytes())
    });
    let redis = Redis::start();
    let first = replica(&app, &redis);
    for lang in ["de", "fr"] {
        ask(&first, "/x", &[("x-lang", lang)]);
    }
    until(&first, "keep", "kept", 2);
    let second = replica(&app, &redis);
    for lang in ["de", "fr"] {
        let reply = ask(&second, "/x", &[("x-lang", lang)]);
        is_hit(&reply);
        assert_eq!(reply.text(), lang);
    }
    assert_eq!(ask(&second, "/x", &[("x-lang", "it")]).text(), "it");
    purge(&first, r#"{"url": "http://app.example/x"}"#);
    let third = replica(&app, &redis);
    for lang in ["de", "fr"] {
        ask(&third, "/x", &[("x-lang", lang)]);
    }
    assert_eq!(app.requests().len(), 5, "three, and two after the purge");
}

#[test]
fn what_may_not_be_shared_never_gets_there() {
    let app = Origin::start(|call| {
        call.body()?;
        let control = match call.path() {
            "/private" => "private, max-age=600",
            "/no-store" => "no-store",
            "/no-cache" => "no-cache, max-age=600",
            _ => "max-age=600",
        };
        let cookie = ("Set-Cookie", "id=1");
        let fields = [("Cache-Control", control), ("ETag", "\"a\""), cookie];
        let fields = if call.path() == "/cookie" {
            &fields[..]
        } else {
            &fields[..2]
        };
        call.answer(200, fields, b"x")
    });
    let redis = Redis::start();
    let proxy = replica(&app, &redis);
    for target in ["/private", "/no-store", "/no-cache", "/cookie"] {
        ask(&proxy, target, &[]);
    }
    ask(&proxy, "/user", &[("authorization", "Basic eA==")]);
    ask(&proxy, "/shared", &[]);
    until(&proxy, "keep", "kept", 1);
    assert_eq!(redis.names("thinwire:1:p:").len(), 1);
}

#[test]
fn over_tls_with_a_password_that_is_shown_nowhere() {
    let ca = Ca::new();
    let redis = Redis::secured(&ca, "sesame%20open");
    let app = counting(&[FRESH]);
    let yaml = Setup::before(&app).top(&redis.yaml()).route(ON).yaml();
    let [one, other] = [(); 2].map(|()| Proxy::trusting(&ca, &yaml));
    for proxy in [&one, &other] {
        // The URL's password is escaped: what is said is "sesame open".
        proxy.wait_for_log("a word about the tier", |line| {
            line.contains("the shared cache at")
        });
    }
    let shown = one.admin("/config").expect(200).text();
    assert!(shown.contains("rediss://:***@localhost"), "{shown}");
    for text in [shown, one.log().join("\n"), other.log().join("\n")] {
        assert!(!text.contains("sesame"), "{text}");
    }
    drop((one, other));
}
