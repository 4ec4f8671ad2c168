//! Each kind of fault, with its place, its path and what would be right.

use super::*;

#[test]
fn all_faults_are_reported_at_once_in_the_order_of_the_lines() {
    let lines = "\
listen:
  - address: 127.0.0.1:99999
    proxy_protocl: true
drain: 30
defaults:
  compress:
    levels: { gzip: 13, br: 12 }
    min_size: 5KB
    min_size: 1KiB
upstreams:
  app:
    servers: []
routes:
  - name: one
    upstream: ap
  - name: one
    match: { path: api }
";
    let faults = faults(lines);
    let places: Vec<_> = faults
        .iter()
        .map(|fault| fault.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "2:14 listen[0].address",
            "3:5 listen[0].proxy_protocl",
            "4:8 drain",
            "7:21 defaults.compress.levels.gzip",
            "7:29 defaults.compress.levels.br",
            "8:15 defaults.compress.min_size",
            "9:5 defaults.compress.min_size",
            "12:5 upstreams.app.servers",
            "15:15 routes[0].upstream",
            "16:5 routes[1].upstream",
            "16:11 routes[1].name",
            "17:20 routes[1].match.path",
        ]
    );
}

#[test]
fn unknown_keys_name_the_nearest_known_one() {
    only(
        "drian: 5s\n",
        "1:1 drian: this key is unknown, did you mean drain?",
    );
    only(
        "defaults:\n  compress: { minsize: 1KiB }\n",
        "2:15 defaults.compress.minsize: this key is unknown, did you mean min_size?",
    );
    only(
        "log: { colour: true }\n",
        "1:8 log.colour: this key is unknown, known here are level, format, access",
    );
}

#[test]
fn duplicate_keys_name_the_first_one() {
    only(
        "drain: 5s\ndrain: 6s\n",
        "2:1 drain: it stands in line 1 already, remove one of the two",
    );
    only(
        "upstreams:\n  app:\n    servers: [demo]\n  app:\n    servers: [demo]\n",
        "4:3 upstreams.app: it stands in line 2 already, remove one of the two",
    );
    only(
        "defaults: { headers: { request: { set: { X-A: one, x-a: two } } } }\n",
        "1:52 defaults.headers.request.set.x-a: it is written already, remove one of the two",
    );
}

#[test]
fn values_of_another_type_are_faults() {
    only(
        "drain: [5s]\n",
        "1:1 drain: a list does not fit here, write a time such as 250ms, 30s or 5m",
    );
    only(
        "log: { access: yes }\n",
        "1:16 log.access: \"yes\" does not fit here, write true or false",
    );
    only(
        "log: { access: \"true\" }\n",
        "1:16 log.access: \"true\" does not fit here, write true or false",
    );
    only(
        "drain:\n",
        "1:1 drain: nothing stands here, write a time such as 250ms, 30s or 5m",
    );
    only(
        "log: text\n",
        "1:6 log: \"text\" does not fit here, write keys and values, such as `key: value`",
    );
    only(
        "admin: { explain_to: 10.0.0.0/8 }\n",
        "1:22 admin.explain_to: \"10.0.0.0/8\" does not fit here, write a list such as [10.0.0.0/8]",
    );
    only(
        "routes: { name: all }\n",
        "1:1 routes: a mapping does not fit here, write a list",
    );
    only(
        "routes: [all]\n",
        "1:10 routes[0]: \"all\" does not fit here, write keys and values, such as `key: value`",
    );
    only(
        "upstreams: [app]\nroutes: [{ name: a, upstream: app }]\n",
        "1:1 upstreams: a list does not fit here, write names and values, such as `name: value`",
    );
}

#[test]
fn sizes_and_times_say_which_unit_is_missing() {
    let pool = |value: &str| format!("pool: {{ inline: {value} }}\n");
    let fits = "write a size such as 512B, 64KiB or 8MiB";
    only(
        &pool("512"),
        "1:17 pool.inline: 512 has no unit, write 512B (or a size such as 512B, 64KiB or 8MiB)",
    );
    for bad in [
        "8KB",
        "8 KiB",
        "-1B",
        "1.5MiB",
        "KiB",
        "8kib",
        "99999999999999GiB",
    ] {
        only(
            &pool(bad),
            &format!("1:17 pool.inline: {bad:?} does not fit here, {fits}"),
        );
    }
    let fits = "write a time such as 250ms, 30s or 5m";
    for bad in ["5 s", "5sec", "-5s", "1m30s", "forever"] {
        only(
            &format!("drain: {bad}\n"),
            &format!("1:8 drain: {bad:?} does not fit here, {fits}"),
        );
    }
    only(
        "network: { send: 0s }\n",
        "1:18 network.send: \"0s\" does not fit here, write a time from 1ms to 8784h",
    );
}

#[test]
fn levels_have_the_ranges_of_their_engines() {
    let bad = [
        ("compress", "levels: { gzip: 0 }", "levels.gzip", 1, 12),
        ("compress", "levels: { gzip: 13 }", "levels.gzip", 1, 12),
        ("compress", "levels: { br: 12 }", "levels.br", 0, 11),
        ("compress", "levels: { br: -1 }", "levels.br", 0, 11),
        ("compress", "levels: { zstd: 0 }", "levels.zstd", 1, 22),
        ("compress", "levels: { zstd: 23 }", "levels.zstd", 1, 22),
        ("grpc", "levels: { deflate: 13 }", "levels.deflate", 1, 12),
        ("websocket", "level: 10", "level", 1, 9),
        ("websocket", "level: fast", "level", 1, 9),
        ("websocket", "window_bits: 8", "window_bits", 9, 15),
        ("websocket", "window_bits: 16", "window_bits", 9, 15),
    ];
    for (section, text, path, least, most) in bad {
        let lines = format!("defaults: {{ {section}: {{ {text} }} }}\n");
        let [fault] = faults(&lines).try_into().unwrap();
        let value = text
            .trim_end_matches([' ', '}'])
            .rsplit(' ')
            .next()
            .unwrap();
        let column = lines.find(value).unwrap() + 1;
        assert_eq!(
            fault,
            format!(
                "1:{column} defaults.{section}.{path}: {value:?} does not fit here, \
                 write a whole number from {least} to {most}"
            )
        );
    }
    parsed("defaults: { compress: { levels: { gzip: 12, br: 0, zstd: 22 } } }\n").unwrap();
}

#[test]
fn encodings_are_those_of_their_protocol_and_each_once() {
    only(
        "defaults: { compress: { encodings: [gzip, deflate] } }\n",
        "1:43 defaults.compress.encodings[1]: \"deflate\" does not fit here, write gzip or br or zstd",
    );
}

#[test]
fn a_coding_listed_twice_is_a_fault() {
    only(
        "defaults: { grpc: { encodings: [gzip, gzip] } }\n",
        "1:39 defaults.grpc.encodings[1]: it is listed already, remove it",
    );
    only(
        "defaults: { grpc: { encodings: [br] } }\n",
        "1:33 defaults.grpc.encodings[0]: \"br\" does not fit here, write gzip or zstd or deflate",
    );
}

#[test]
fn addresses_and_networks_are_checked() {
    for bad in [
        "localhost:80",
        "127.0.0.1",
        "::1:80",
        "unix:relative",
        "127.0.0.1:65536",
    ] {
        only(
            &format!("listen:\n  - address: \"{bad}\"\n"),
            &format!(
                "2:14 listen[0].address: {bad:?} does not fit here, write IP:port, \"[v6]:port\" or \
                 unix:/path"
            ),
        );
    }
    for bad in ["10.0.0.0/33", "10.0.0", "any"] {
        only(
            &format!("admin: {{ explain_to: [{bad}] }}\n"),
            &format!(
                "1:23 admin.explain_to[0]: {bad:?} does not fit here, write a CIDR such as \
                 10.0.0.0/8 or fd00::/8"
            ),
        );
    }
    let servers = [
        "app:80",
        "ftp://a:1",
        "http://a:0",
        "http://a:1/path",
        "http://u@a:1",
        "http://:80",
    ];
    for bad in servers
        .into_iter()
        .chain(["unix:a", "http://a:1?q", "http://a..b:1"])
    {
        let [fault] = faults(&format!("upstreams:\n  app:\n    servers: [\"{bad}\"]\n"))
            .try_into()
            .unwrap();
        assert!(
            fault.starts_with("3:15 upstreams.app.servers[0]: "),
            "{fault}"
        );
    }
}

#[test]
fn two_listeners_on_one_address_are_a_fault() {
    only(
        "listen:\n  - address: 127.0.0.1:80\n  - address: 127.0.0.1:80\n",
        "3:14 listen[1].address: another listener has this address, write another one",
    );
    only(
        "listen:\n  - address: 127.0.0.1:9900\n",
        "1:1 admin.address: a listener has 127.0.0.1:9900 already, write another one",
    );
}

#[test]
fn what_has_to_be_there_is_missed_where_it_belongs() {
    only(
        "listen: []\n",
        "1:1 listen: it is empty, it needs at least one",
    );
    only(
        "routes: []\n",
        "1:1 routes: it is empty, it needs at least one",
    );
    only(
        "upstreams:\n  app:\n    servers: [demo]\n  other: {}\n",
        "4:3 upstreams.other.servers: it is missing: http://host:port, https://host:port, \
         unix:/path, or demo (the built-in application); at least one.",
    );
    only(
        "upstreams:\n  app:\n    servers: []\n",
        "3:5 upstreams.app.servers: it is empty, it needs at least one",
    );
    only(
        "routes:\n  - match: { path: / }\n    upstream: app\n",
        "2:5 routes[0].name: it is missing: Its label in logs and metrics.",
    );
    only(
        "routes:\n  - name: all\n",
        "2:5 routes[0].upstream: it is missing: The name of one of the upstreams.",
    );
    assert_eq!(
        faults("upstreams: {}\n"),
        ["1:1 upstreams: it is empty, it needs at least one"]
    );
}

#[test]
fn routes_name_upstreams_that_exist_and_themselves_once() {
    only(
        "routes:\n  - name: a\n    upstream: web\n",
        "3:15 routes[0].upstream: no upstream is named \"web\", write one of app",
    );
    only(
        "routes:\n  - { name: a, upstream: app }\n  - { name: a, upstream: app }\n",
        "3:13 routes[1].name: another route has this name, write another one",
    );
}

#[test]
fn an_upstream_with_faults_of_its_own_is_there() {
    only(
        "upstreams:\n  app:\n    servers: [nonsense]\n",
        "3:15 upstreams.app.servers[0]: \"nonsense\" does not fit here, write http://host:port, \
         https://host:port, unix:/path or demo",
    );
}

#[test]
fn matches_are_checked() {
    let bad = [
        ("host: [a*b]", "host[0]"),
        ("host: [\"*\"]", "host[0]"),
        ("host: [\"x.*.y\"]", "host[0]"),
        ("path: api", "path"),
        ("path: /a?b", "path"),
        ("path: \"=api\"", "path"),
        ("path: \"/%zz\"", "path"),
        ("methods: [get]", "methods[0]"),
        ("methods: [\"G T\"]", "methods[0]"),
        ("headers: { \"x y\": a }", "headers.x y"),
        ("headers: { x: \"a\\nb\" }", "headers.x"),
        ("client: [me]", "client[0]"),
        ("listener: [\"127.0.0.1:81\"]", "listener[0]"),
    ];
    for (text, path) in bad {
        let lines = format!("routes:\n  - name: a\n    upstream: app\n    match: {{ {text} }}\n");
        let [fault] = faults(&lines).try_into().unwrap();
        let place = fault.split(": ").next().unwrap();
        let column: usize = place[2..].split(' ').next().unwrap().parse().unwrap();
        assert_eq!(
            place.split_once(' ').unwrap().1,
            format!("routes[0].match.{path}")
        );
        assert!(
            place.starts_with("4:") && (14..=14 + text.len()).contains(&column),
            "{fault}"
        );
    }
}

#[test]
fn media_patterns_are_checked() {
    only(
        "defaults: { compress: { types: [json] } }\n",
        "1:33 defaults.compress.types[0]: \"json\" does not fit here, write type/subtype such as \
         text/* or application/*+json",
    );
}

#[test]
fn header_edits_are_checked() {
    let edits = |text: &str| format!("defaults: {{ headers: {{ response: {{ {text} }} }} }}\n");
    let name = "write a header name such as x-tenant";
    only(
        &edits("remove: [\"a b\"]"),
        &format!("1:45 defaults.headers.response.remove[0]: \"a b\" does not fit here, {name}"),
    );
    only(
        &edits("set: { Content-Length: 5 }"),
        &format!(
            "1:43 defaults.headers.response.set.Content-Length: \"Content-Length\" does not fit \
             here, {name}, none that frames a message or is for one hop only"
        ),
    );
    only(
        &edits("set: { x-a: \"a\\r\\nb: c\" }"),
        "1:48 defaults.headers.response.set.x-a: \"a\\r\\nb: c\" does not fit here, write a header \
         value of visible ASCII characters, on one line",
    );
}

#[test]
fn a_log_filter_has_to_be_one() {
    for bad in ["inf", "info,thinwire", "thinwire=loud", ""] {
        let [fault] = faults(&format!("log: {{ level: \"{bad}\" }}\n"))
            .try_into()
            .unwrap();
        assert!(fault.starts_with("1:15 log.level: "), "{fault}");
    }
    for good in ["warn", "off", "info,thinwire::proxy=debug"] {
        parsed(&format!("log: {{ level: \"{good}\" }}\n")).unwrap();
    }
}

#[test]
fn proxy_protocol_does_not_go_with_http2() {
    only(
        "upstreams:\n  app: { servers: [demo], protocol: http2, proxy_protocol: v1 }\n",
        "2:60 upstreams.app.proxy_protocol: it cannot go with protocol: http2, whose connections \
         serve many clients; write none, or protocol: http1",
    );
}

#[test]
fn a_health_check_is_exactly_one() {
    let health = |text: &str| {
        format!("upstreams:\n  app: {{ servers: [demo], protocol: http2, health: {{ {text} }} }}\n")
    };
    let one = "2:44 upstreams.app.health: it needs exactly one of path: /healthz, \
               grpc: service.Name or tcp: true";
    only(&health("interval: 1s"), one);
    only(&health("path: /, tcp: true"), one);
    only(&health("tcp: false"), one);
    only(
        &health("path: healthz"),
        "2:60 upstreams.app.health.path: \"healthz\" does not fit here, write a path that begins \
         with /",
    );
    only(
        "upstreams:\n  app: { servers: [demo], health: { grpc: \"\" } }\n",
        "2:43 upstreams.app.health.grpc: gRPC is spoken over HTTP/2 only, write protocol: http2 \
         beside health",
    );
}

#[test]
fn limits_that_cross_are_faults() {
    only(
        "defaults: { grpc: { min_size: 2KiB, max_message: 1KiB } }\n",
        "1:31 defaults.grpc.min_size: it is larger than max_message, write a smaller one",
    );
    only(
        "upstreams:\n  app: { servers: [demo], eject: { for: 6m } }\n",
        "2:41 upstreams.app.eject.for: \"6m\" does not fit here, write a time from 1ms to 5m",
    );
    parsed("defaults: { grpc: { max_message: 512B } }\n").unwrap();
}

#[test]
fn the_shared_cache_is_redis() {
    let [fault] = faults("cache: { shared: { url: \"http://a\" } }\n")
        .try_into()
        .unwrap();
    assert!(
        fault.starts_with("1:25 cache.shared.url: this value does not fit"),
        "{fault}"
    );
    let [fault] = faults("cache: { shared: {} }\n").try_into().unwrap();
    assert!(
        fault.starts_with("1:10 cache.shared.url: it is missing"),
        "{fault}"
    );
}

#[test]
fn h2c_is_no_upgrade_that_may_pass() {
    let [fault] = faults("defaults: { upgrades: [h2c] }\n")
        .try_into()
        .unwrap();
    assert!(
        fault.starts_with("1:24 defaults.upgrades[0]: \"h2c\" does not fit here"),
        "{fault}"
    );
}

#[test]
fn faults_of_defaults_are_not_repeated_for_each_route() {
    assert_eq!(faults("defaults: { compress: { min_size: 5 } }\n").len(), 1);
}
