//! What the settings are: defaults, and routes merged over them.

use std::time::Duration;

use super::*;
use crate::codec::Coding;
use crate::config::settings::{
    Address, Flush, HealthCheck, HostPattern, PathPattern, Policy, Server,
};

#[test]
fn absent_keys_have_the_defaults_of_the_contract() {
    let settings = parsed("").unwrap();
    assert_eq!(settings.admin.address.to_string(), "127.0.0.1:9900");
    assert_eq!(settings.drain, Duration::from_secs(30));
    assert_eq!(settings.websocket_memory, 256 << 20);
    assert_eq!(settings.defaults, Policy::default());
    assert_eq!(settings.routes[0].policy, Policy::default());
    assert!(settings.pool.threads >= 1 && settings.network.threads >= 1);
    let upstream = &settings.upstreams[0];
    assert_eq!(upstream.servers, [Server::Demo]);
    assert_eq!(upstream.connect_timeout, Duration::from_secs(2));
    assert_eq!(upstream.response_head_timeout, Duration::from_secs(30));
    assert_eq!(upstream.idle_timeout, Duration::from_secs(4));
    assert_eq!((upstream.max_connections, upstream.retries), (1024, 1));
    assert_eq!((&upstream.health, &upstream.eject), (&None, &None));
    assert_eq!(settings.warnings, Vec::<String>::new());
}

#[test]
fn a_written_section_fills_in_what_it_does_not_say() {
    let settings = parsed(
        "cache: { shared: { url: 'redis://127.0.0.1' } }\nupstreams:\n  app:\n    servers: [demo]\n    \
         health: { tcp: true }\n    eject: {}\n",
    )
    .unwrap();
    assert_eq!(
        settings.cache.shared.unwrap().timeout,
        Duration::from_millis(50)
    );
    let health = settings.upstreams[0].health.clone().unwrap();
    assert_eq!(health.check, HealthCheck::Tcp);
    assert_eq!(
        (health.interval, health.timeout),
        (Duration::from_secs(5), Duration::from_secs(1))
    );
    assert_eq!((health.unhealthy_after, health.healthy_after), (2, 1));
    let eject = settings.upstreams[0].eject.clone().unwrap();
    assert_eq!((eject.failures, eject.for_), (5, Duration::from_secs(10)));
}

#[test]
fn a_route_is_merged_over_defaults_key_by_key() {
    let settings = parsed(
        "defaults:\n  compress: { levels: { br: 3, zstd: 5 }, types: [text/*], min_size: 2KiB }\n  \
         websocket: { except: [text] }\nroutes:\n  - name: one\n    upstream: app\n    compress:\n      \
         levels: { br: 4 }\n      types: [font/*]\n    websocket: { except: [binary] }\n  - name: two\n    \
         upstream: app\n",
    )
    .unwrap();
    let one = &settings.routes[0].policy;
    let levels = one.compress.levels;
    assert_eq!(
        (levels.gzip, levels.br, levels.zstd),
        (4, 4, 5),
        "levels are merged one by one"
    );
    assert_eq!(one.compress.types.len(), 1, "lists are replaced");
    assert_eq!(
        one.compress.min_size, 2048,
        "what is absent comes from defaults"
    );
    assert_eq!(
        (one.websocket.except_text, one.websocket.except_binary),
        (false, true)
    );
    assert_eq!(settings.routes[1].policy, settings.defaults);
}

#[test]
fn header_fields_are_merged_one_by_one() {
    let settings = parsed(
        "defaults:\n  headers:\n    request: { set: { x-a: base, x-b: base }, remove: [x-r] }\nroutes:\n  \
         - name: all\n    upstream: app\n    headers: { request: { set: { X-B: route, x-c: 5 } } }\n",
    )
    .unwrap();
    let edits = &settings.routes[0].policy.request_headers;
    let set: Vec<_> = edits
        .set
        .iter()
        .map(|(n, v)| format!("{n}={}", v.to_str().unwrap()))
        .collect();
    assert_eq!(set, ["x-a=base", "x-b=route", "x-c=5"]);
    assert_eq!(edits.remove, ["x-r"]);
}

#[test]
fn what_is_matched_is_read_into_what_it_means() {
    let settings = parsed(
        "routes:\n  - name: all\n    upstream: app\n    match:\n      \
         host: [\"API.Example.com:8443\", \"*.Example.org\", \"[::1]:80\"]\n      path: =/a//%7eb/./c\n      \
         methods: [GET, PURGE]\n      client: [10.1.2.3/8, \"::1\"]\n      listener: ['127.0.0.1:8080']\n",
    )
    .unwrap();
    let matches = &settings.routes[0].matches;
    assert_eq!(
        matches.hosts,
        [
            HostPattern::Exact("api.example.com".into()),
            HostPattern::Suffix(".example.org".into()),
            HostPattern::Exact("[::1]".into()),
        ]
    );
    assert_eq!(matches.path, Some(PathPattern::Exact("/a/~b/c".into())));
    let clients: Vec<_> = matches.clients.iter().map(ToString::to_string).collect();
    assert_eq!(clients, ["10.0.0.0/8", "::1/128"]);
    assert_eq!(
        matches.listeners,
        [Address::Tcp("127.0.0.1:8080".parse().unwrap())]
    );
}

#[test]
fn servers_are_read_in_all_their_forms() {
    let settings = parsed(
        "upstreams:\n  app:\n    servers: [\"http://a_b:1\", \"https://[::1]:2/\", https://c, unix:/s, demo]\n",
    )
    .unwrap();
    let tcp = |tls, host: &str, port| Server::Tcp {
        tls,
        host: host.into(),
        port,
    };
    let expected = [
        tcp(false, "a_b", 1),
        tcp(true, "::1", 2),
        tcp(true, "c", 443),
        Server::Unix("/s".into()),
        Server::Demo,
    ];
    assert_eq!(settings.upstreams[0].servers, expected);
}

#[test]
fn sizes_times_words_and_threads_are_read() {
    let settings = parsed(
        "drain: 0\nnetwork: { threads: 3, keep_alive: 2h }\npool: { inline: 0, nice: -5 }\n\
         defaults:\n  compress: { min_size: 3MiB, flush: every_chunk, encodings: [br] }\n",
    )
    .unwrap();
    assert_eq!(settings.drain, Duration::ZERO);
    assert_eq!((settings.network.threads, settings.pool.inline), (3, 0));
    assert_eq!(settings.network.keep_alive, Duration::from_secs(7200));
    assert_eq!(settings.pool.nice, -5);
    let compress = &settings.defaults.compress;
    assert_eq!(
        (compress.min_size, compress.flush),
        (3 << 20, Flush::EveryChunk)
    );
    assert_eq!(compress.encodings, [Coding::Brotli]);
}

#[test]
fn a_section_with_everything_commented_out_is_empty() {
    assert_eq!(
        parsed("defaults:\n  compress:\n").unwrap().defaults,
        Policy::default()
    );
}

#[test]
fn levels_that_streams_do_not_reach_are_warnings() {
    let settings =
        parsed("defaults:\n  compress:\n    levels: { br: 11, gzip: 12, zstd: 22 }\n").unwrap();
    assert_eq!(
        settings.warnings,
        [
            "t.yaml:3:19: defaults.compress.levels.br: warning: streams are compressed at 5, whole \
             answers at 11",
            "t.yaml:3:29: defaults.compress.levels.gzip: warning: streams are compressed at 9, whole \
             answers at 12",
        ]
    );
    assert_eq!(settings.defaults.compress.levels.br, 11);
}

#[test]
fn what_only_counts_in_defaults_is_a_warning_in_a_route() {
    let settings = parsed(
        "routes:\n  - name: all\n    upstream: app\n    timeouts: { request_head: 1s }\n    \
         limits: { request_head: 1KiB }\n",
    )
    .unwrap();
    let late = "warning: it is read before a route is known, only that of defaults counts";
    assert_eq!(
        settings.warnings,
        [
            format!("t.yaml:4:31: routes[0].timeouts.request_head: {late}"),
            format!("t.yaml:5:29: routes[0].limits.request_head: {late}"),
        ]
    );
}

#[test]
fn two_listeners_may_leave_the_port_to_the_kernel() {
    parsed("listen:\n  - address: 127.0.0.1:0\n  - address: 127.0.0.1:0\nadmin: { address: 127.0.0.1:0 }\n")
        .unwrap();
}
