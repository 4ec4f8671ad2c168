//! The applications behind.

use std::time::Duration;

use super::files;
use crate::config::kind::{
    Flag, PATIENCE, SERVER, SERVER_NAME, SERVICE_NAME, TIME, URL_PATH, Whole, Word,
};
use crate::config::section::Section;
use crate::config::settings::{
    Balance, Eject, Health, HealthCheck, ProxyProtocol, Upstream, UpstreamProtocol, UpstreamTls,
};

/// A count that nobody means to exceed.
const MANY: usize = 1_000_000;
/// Ejections double up to this.
const MAX_EJECTION: Duration = Duration::from_secs(300);

pub(in crate::config) const PROTOCOL: Word<UpstreamProtocol> = Word(&[
    ("http1", UpstreamProtocol::Http1),
    ("http2", UpstreamProtocol::Http2),
]);
pub(in crate::config) const BALANCE: Word<Balance> = Word(&[
    ("round_robin", Balance::RoundRobin),
    ("least_requests", Balance::LeastRequests),
]);
pub(in crate::config) const PROXY_PROTOCOL: Word<ProxyProtocol> = Word(&[
    ("none", ProxyProtocol::None),
    ("v1", ProxyProtocol::V1),
    ("v2", ProxyProtocol::V2),
]);

pub(super) fn upstream(name: &str, s: &mut Section<'_>) -> Option<Upstream> {
    let about = "http://host:port, https://host:port, unix:/path, or demo (the built-in \
                 application); at least one.";
    let servers = s.required_list("servers", &SERVER, about);
    let about = "What is spoken to all of them; http2: h2c, or h2 over https.";
    let protocol = s.key("protocol", &PROTOCOL, UpstreamProtocol::Http1, about);
    let about = "How a server is chosen.";
    let balance = s.key("balance", &BALANCE, Balance::LeastRequests, about);
    let tls = s.section("tls", "For https:// servers.", tls);
    let about = "A PROXY header ahead of the first byte; such connections serve one client \
                 address only.";
    let proxy_protocol = s.key(
        "proxy_protocol",
        &PROXY_PROTOCOL,
        ProxyProtocol::None,
        about,
    );
    if proxy_protocol != ProxyProtocol::None && protocol == UpstreamProtocol::Http2 {
        let what = "it cannot go with protocol: http2, whose connections serve many clients; \
                    write none, or protocol: http1";
        s.fault("proxy_protocol", what);
    }
    let health = s.optional_section(
        "health",
        "Active checks; exactly one of path, grpc, tcp.",
        |s| health(s, protocol),
    );
    let about = "A server that keeps failing is left out, twice as long each time, up to 5m.";
    let eject = s.optional_section("eject", about, eject);
    let about = "To all servers together; for http2 connections, not streams.";
    let max_connections = s.key("max_connections", &Whole(1..=MANY), 1024, about);
    let timeouts = s.section("timeouts", "Patience with its servers.", timeouts);
    let about = "Further attempts of requests that are safe to repeat and were not answered.";
    let retries = s.key("retries", &Whole(0..=100), 1, about);
    Some(Upstream {
        name: name.to_owned(),
        servers,
        protocol,
        balance,
        tls,
        proxy_protocol,
        health,
        eject,
        max_connections,
        connect_timeout: timeouts.connect,
        response_head_timeout: timeouts.response_head,
        idle_timeout: timeouts.idle,
        retries,
    })
}

fn tls(s: &mut Section<'_>) -> UpstreamTls {
    let ca = files::roots(
        s,
        "ca",
        "PEM file of roots to trust instead of the system's.",
    );
    let about = "The name to verify and to send as SNI, instead of the server's host.";
    let name = s.optional("name", &SERVER_NAME, about);
    let client = s.optional_section("client", "The certificate that we show.", files::key_pair);
    UpstreamTls { ca, name, client }
}

fn health(s: &mut Section<'_>, protocol: UpstreamProtocol) -> Option<Health> {
    let path = s.optional("path", &URL_PATH, "GET this path; 2xx is healthy.");
    let about = "Ask grpc.health.v1 for this service; \"\" is the server as a whole.";
    let grpc = s.optional("grpc", &SERVICE_NAME, about);
    let tcp = s.optional("tcp", &Flag, "true: a connection that opens suffices.");
    let base = Health {
        check: HealthCheck::Tcp,
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(1),
        unhealthy_after: 2,
        healthy_after: 1,
    };
    let interval = s.key("interval", &PATIENCE, base.interval, "Between two checks.");
    let timeout = s.key("timeout", &PATIENCE, base.timeout, "Of one check.");
    let counts = Whole(1..=1000);
    let about = "Failures in a row.";
    let unhealthy_after = s.key("unhealthy_after", &counts, base.unhealthy_after, about);
    let about = "Successes in a row.";
    let healthy_after = s.key("healthy_after", &counts, base.healthy_after, about);
    let written = ["path", "grpc", "tcp"]
        .iter()
        .filter(|name| s.has(name))
        .count();
    if written != 1 || tcp == Some(false) {
        s.fault_here("it needs exactly one of path: /healthz, grpc: service.Name or tcp: true");
    }
    if grpc.is_some() && protocol == UpstreamProtocol::Http1 {
        s.fault(
            "grpc",
            "gRPC is spoken over HTTP/2 only, write protocol: http2 beside health",
        );
    }
    let check = match (path, grpc) {
        (Some(path), _) => HealthCheck::Path(path),
        (None, Some(service)) => HealthCheck::Grpc(service),
        (None, None) => base.check,
    };
    Some(Health {
        check,
        interval,
        timeout,
        unhealthy_after,
        healthy_after,
    })
}

fn eject(s: &mut Section<'_>) -> Option<Eject> {
    let failures = s.key("failures", &Whole(1..=1000), 5, "Failures in a row.");
    let about = "The first time; twice as long each further time, up to 5m.";
    let time = PATIENCE.at_most(MAX_EJECTION);
    let for_ = s.key("for", &time, Duration::from_secs(10), about);
    Some(Eject { failures, for_ })
}

struct UpstreamTimeouts {
    connect: Duration,
    response_head: Duration,
    idle: Duration,
}

fn timeouts(s: &mut Section<'_>) -> UpstreamTimeouts {
    let seconds = Duration::from_secs;
    UpstreamTimeouts {
        connect: s.key(
            "connect",
            &PATIENCE,
            seconds(2),
            "For a connection, TLS included.",
        ),
        response_head: s.key(
            "response_head",
            &PATIENCE,
            seconds(30),
            "From the request's end to the response head; not for gRPC.",
        ),
        idle: s.key(
            "idle",
            &TIME,
            seconds(4),
            "Kept connections are closed after this, before the app does it.",
        ),
    }
}
