//! The dashboard and what it is drawn from; Chromium looks at it where there is one.

use std::process::Command;

use serde_json::Value;

use crate::support::{
    Demo, Fields, Origin, Proxy, Reply, Setup, big, eventually, folder, get, python,
};

const DATA: &str = "/dashboard.json";

/// A proxy that answered some requests of each kind.
fn busy(setup: &Setup) -> Proxy {
    let proxy = setup.start();
    for coding in ["gzip", "br", "zstd", ""] {
        proxy.get("/", &[("Accept-Encoding", coding)]).expect(200);
    }
    proxy
}

/// The values of a metric at the last sample, all of its series together.
fn latest(data: &Value, name: &str) -> f64 {
    let series = data["series"].as_array().expect("series");
    let last = data["samples"]
        .as_array()
        .and_then(|samples| samples.last());
    let values = &last.expect("a sample")["values"];
    let of = |(place, series): (usize, &Value)| {
        (series[0] == name).then(|| values[place].as_f64().unwrap_or(0.0))
    };
    series.iter().enumerate().filter_map(of).sum()
}

#[test]
fn its_numbers_are_those_of_the_metrics() {
    let app = Origin::json(big());
    let proxy = busy(&Setup::before(&app));
    let data = eventually("a sample with four answers", || {
        let data = proxy.admin(DATA).expect(200).json();
        (latest(&data, "thinwire_responses_total") == 4.0).then_some(data)
    });
    let about = &data["about"];
    assert_eq!(about["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(about["state"], "ready");
    assert!(
        about["pool_threads"]
            .as_u64()
            .is_some_and(|threads| threads > 0)
    );
    assert_eq!(
        latest(&data, "thinwire_bytes_before_total"),
        4.0 * big().len() as f64
    );
    assert_eq!(latest(&data, "thinwire_upstream_healthy"), 1.0);
    let labelled = |series: &Value| {
        series[0] == "thinwire_responses_total"
            && series[1]["coding"] == "gzip"
            && series[1]["status"] == "2xx"
    };
    assert!(
        data["series"]
            .as_array()
            .is_some_and(|all| all.iter().any(labelled))
    );
    let text = data.to_string();
    assert!(!text.contains("_bucket"), "buckets are not plotted");
}

#[test]
fn only_what_is_new_is_sent_again() {
    let proxy = Proxy::before(&Demo);
    let numbers = |target: &str| -> Vec<u64> {
        let data = proxy.admin(target).expect(200).json();
        let samples = data["samples"].as_array().expect("samples");
        samples
            .iter()
            .map(|sample| sample["number"].as_u64().expect("a number"))
            .collect()
    };
    let first = eventually("two samples", || {
        Some(numbers(DATA)).filter(|numbers| numbers.len() >= 2)
    });
    assert_eq!(first[0], 0);
    let later = numbers("/dashboard.json?after=0");
    assert_eq!(later[0], 1);
    assert!(numbers("/dashboard.json?after=1000000").is_empty());
}

#[track_caller]
fn is_the_page(reply: &Reply) {
    assert_eq!(
        reply.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = reply.header("content-security-policy").expect("a policy");
    for rule in [
        "default-src 'none'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(rule), "{rule}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(reply.header("x-frame-options"), Some("DENY"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
}

#[test]
fn the_page_is_one_file_that_may_load_nothing_else() {
    let proxy = Proxy::before(&Demo);
    let page = proxy.admin("/").expect(200);
    is_the_page(&page);
    assert!(!page.text().contains("<script src") && !page.text().contains("<link rel=\"style"));
}

/// The same with a token.
fn locked() -> Proxy {
    let yaml = Setup::before(&Demo).yaml();
    let address = "  address: 127.0.0.1:0\nlog";
    Proxy::start(&yaml.replace(address, "  address: 127.0.0.1:0\n  token: hush-hush\nlog"))
}

#[test]
fn with_a_token_browsers_get_a_page_that_asks_for_it_and_nobody_gets_numbers() {
    let proxy = locked();
    let ask = |target: &str, fields: Fields<'_>| get(proxy.admin_addr(), target, fields);
    let browser = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let page = ask("/", &[browser]).expect(401);
    is_the_page(&page);
    assert!(
        page.header("www-authenticate")
            .is_some_and(|asks| asks.starts_with("Bearer"))
    );
    let script = ask("/", &[]).expect(401);
    assert!(
        !script.text().contains("<html"),
        "scripts get a line of text"
    );
    for target in [DATA, "/config"] {
        ask(target, &[browser]).expect(401);
        ask(target, &[("Authorization", "Bearer wrong")]).expect(401);
        ask(target, &[("Authorization", "Bearer hush-hush")]).expect(200);
    }
    is_the_page(&ask("/", &[("Authorization", "Bearer hush-hush")]).expect(200));
}

/// What `tests/dashboard/look.py` saw in each of its looks.
fn looked_at(proxy: &Proxy, arguments: &[&str]) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dashboard/look.py");
    let mut look = Command::new(python::python());
    look.arg("-B").arg(script);
    look.arg(format!("http://{}/", proxy.admin_addr()));
    look.arg(folder("dashboard")).args(arguments);
    let output = look.output().expect("python runs");
    let (seen, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{seen}\n{said}");
    seen.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn there_is_chromium() -> bool {
    let asked = Command::new("chromium").arg("--version").output();
    let there = asked.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("no chromium: ./tests/run installs it; nobody looked at the page");
    }
    there
}

#[test]
fn chromium_shows_it_wide_and_on_a_phone_light_and_dark_without_errors() {
    if !there_is_chromium() {
        return;
    }
    let app = Origin::json(big());
    let proxy = busy(&Setup::before(&app).top("pool: { inline: 0B }"));
    let looks = looked_at(&proxy, &[]);
    assert_eq!(looks.len(), 4);
    for look in &looks {
        assert_eq!(look["errors"], Value::Array(Vec::new()), "{look}");
        assert_eq!(look["state"], "ready");
        assert_eq!(look["routes"][0], "everything");
        assert_eq!(look["reasons"][0], "not_accepted");
        assert_eq!(look["servers"][0], app.server().as_str());
        assert!(
            look["wider"].as_i64().is_some_and(|wider| wider <= 0),
            "{look}"
        );
    }
    assert_ne!(
        looks[0]["background"], looks[1]["background"],
        "dark is dark"
    );
}

#[test]
fn chromium_asks_for_the_token_and_then_shows_it() {
    if !there_is_chromium() {
        return;
    }
    let proxy = locked();
    proxy
        .get("/users", &[("Accept-Encoding", "gzip")])
        .expect(200);
    let looks = looked_at(&proxy, &["hush-hush"]);
    assert!(
        looks.iter().all(|look| look["state"] == "ready"),
        "{looks:?}"
    );
}
