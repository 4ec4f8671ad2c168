//! The effective configuration as JSON, with the keys of the file.
//!
//! It reads back as the same settings, but for secrets, which it never holds.

use serde_json::{Value as Json, json};

use super::kind::{
    ADDRESS, CIDR, FORWARDED_HEADER, GRPC_CODING, HEADER_NAME, HEADER_PATTERN, HEADER_VALUE, HOST,
    HTTP_CODING, Kind, MEDIA, METHOD, PATH, Query, SERVER, SIZE, TIME,
};
use super::resolve::{BALANCE, CROSS_SITE, FLUSH, FORMAT, PROTOCOL, PROXY_PROTOCOL, REQUESTS, WEB};
use super::settings::{
    Cache, CacheStore, Compress, Grpc, HeaderEdits, Health, HealthCheck, KeyPair, Limits, Listen,
    Match, Network, Policy, Pool, Route, Settings, Timeouts, Upstream, WebSocket,
};

const MASKED: &str = "***";
/// Fields that carry secrets.
const CREDENTIALS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
];

impl Settings {
    /// What is in force, secrets masked.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let token = if self.admin.token.is_empty() {
            ""
        } else {
            MASKED
        };
        let upstreams = self
            .upstreams
            .iter()
            .map(|one| (one.name.clone(), upstream(one)));
        let route = |route| self::route(route, &self.upstreams);
        let mut json = json!({
            "listen": self.listen.iter().map(listen).collect::<Json>(),
            "admin": {
                "address": self.admin.address.to_string(),
                "token": token,
                "explain_to": all(&CIDR, &self.admin.explain_to),
            },
            "log": {
                "level": self.log.level,
                "format": FORMAT.show(&self.log.format),
                "access": self.log.access,
            },
            "network": network(&self.network),
            "pool": pool(&self.pool),
            "cache": store(&self.cache),
            "websocket": { "memory": SIZE.show(&self.websocket_memory) },
            "drain": TIME.show(&self.drain),
            "upstreams": Json::Object(upstreams.collect()),
            "defaults": policy(&self.defaults),
            "routes": self.routes.iter().map(route).collect::<Json>(),
        });
        drop_nulls(&mut json);
        json
    }
}

/// What is absent is absent.
fn drop_nulls(json: &mut Json) {
    match json {
        Json::Object(entries) => {
            entries.retain(|_, value| !value.is_null());
            entries.values_mut().for_each(drop_nulls);
        }
        Json::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn all<K: Kind>(kind: &K, values: &[K::Value]) -> Json {
    values.iter().map(|value| kind.show(value)).collect()
}

/// A mapping whose keys are values too.
fn pairs<K: Kind, V: Kind>((keys, values): (&K, &V), entries: &[(K::Value, V::Value)]) -> Json {
    let text = |key: &K::Value| keys.show(key).as_str().unwrap_or_default().to_owned();
    Json::Object(
        entries
            .iter()
            .map(|(key, value)| (text(key), values.show(value)))
            .collect(),
    )
}

fn listen(listen: &Listen) -> Json {
    json!({
        "address": ADDRESS.show(&listen.address),
        "tls": listen.tls.as_ref().map(|tls| json!({
            "certificates": tls.certificates.iter().map(key_pair).collect::<Json>(),
            "client_ca": tls.client_ca,
        })),
        "proxy_protocol": listen.proxy_protocol,
        "trust_forwarded_from": all(&CIDR, &listen.trust_forwarded_from),
    })
}

fn key_pair(pair: &KeyPair) -> Json {
    json!({ "chain": pair.chain, "key": pair.key })
}

fn network(network: &Network) -> Json {
    json!({
        "threads": network.threads,
        "max_connections": network.max_connections,
        "per_client_connections": network.per_client_connections,
        "max_streams": network.max_streams,
        "keep_alive": TIME.show(&network.keep_alive),
        "send": TIME.show(&network.send),
        "tls_handshake": TIME.show(&network.tls_handshake),
    })
}

fn pool(pool: &Pool) -> Json {
    json!({
        "threads": pool.threads,
        "nice": pool.nice,
        "inline": SIZE.show(&pool.inline),
        "max_wait": TIME.show(&pool.max_wait),
    })
}

fn store(store: &CacheStore) -> Json {
    json!({
        "memory": SIZE.show(&store.memory),
        "shared": store.shared.as_ref().map(|shared| json!({
            "url": without_password(&shared.url),
            "timeout": TIME.show(&shared.timeout),
        })),
    })
}

/// `redis://user:password@host` with the password masked.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return MASKED.to_owned();
    };
    match rest.rsplit_once('@') {
        Some((userinfo, host)) => {
            let user = userinfo.split_once(':').map_or("", |(user, _)| user);
            format!("{scheme}://{user}:{MASKED}@{host}")
        }
        None => url.to_owned(),
    }
}

fn upstream(upstream: &Upstream) -> Json {
    json!({
        "servers": all(&SERVER, &upstream.servers),
        "protocol": PROTOCOL.show(&upstream.protocol),
        "balance": BALANCE.show(&upstream.balance),
        "tls": {
            "ca": upstream.tls.ca,
            "name": upstream.tls.name,
            "client": upstream.tls.client.as_ref().map(key_pair),
        },
        "proxy_protocol": PROXY_PROTOCOL.show(&upstream.proxy_protocol),
        "health": upstream.health.as_ref().map(health),
        "eject": upstream.eject.as_ref().map(|eject| json!({
            "failures": eject.failures,
            "for": TIME.show(&eject.for_),
        })),
        "max_connections": upstream.max_connections,
        "timeouts": {
            "connect": TIME.show(&upstream.connect_timeout),
            "response_head": TIME.show(&upstream.response_head_timeout),
            "idle": TIME.show(&upstream.idle_timeout),
        },
        "retries": upstream.retries,
    })
}

fn health(health: &Health) -> Json {
    let (key, value) = match &health.check {
        HealthCheck::Path(path) => ("path", json!(path)),
        HealthCheck::Grpc(service) => ("grpc", json!(service)),
        HealthCheck::Tcp => ("tcp", json!(true)),
    };
    json!({
        key: value,
        "interval": TIME.show(&health.interval),
        "timeout": TIME.show(&health.timeout),
        "unhealthy_after": health.unhealthy_after,
        "healthy_after": health.healthy_after,
    })
}

fn route(route: &Route, upstreams: &[Upstream]) -> Json {
    let mut json = policy(&route.policy);
    json["name"] = json!(route.name);
    json["match"] = matches(&route.matches);
    json["upstream"] = json!(upstreams.get(route.upstream).map(|upstream| &upstream.name));
    json
}

fn matches(matches: &Match) -> Json {
    json!({
        "host": all(&HOST, &matches.hosts),
        "path": matches.path.as_ref().map(|path| PATH.show(path)),
        "methods": all(&METHOD, &matches.methods),
        "headers": pairs((&HEADER_NAME, &HEADER_PATTERN), &matches.headers),
        "client": all(&CIDR, &matches.clients),
        "listener": all(&ADDRESS, &matches.listeners),
    })
}

fn policy(policy: &Policy) -> Json {
    json!({
        "compress": compress(&policy.compress),
        "cache": cache(&policy.cache),
        "grpc": grpc(&policy.grpc),
        "websocket": websocket(&policy.websocket),
        "upgrades": policy.upgrades,
        "limits": limits(&policy.limits),
        "timeouts": timeouts(&policy.timeouts),
        "headers": {
            "request": edits(&policy.request_headers),
            "response": edits(&policy.response_headers),
        },
    })
}

fn compress(compress: &Compress) -> Json {
    let levels = &compress.levels;
    json!({
        "enabled": compress.enabled,
        "encodings": all(&HTTP_CODING, &compress.encodings),
        "levels": { "zstd": levels.zstd, "br": levels.br, "gzip": levels.gzip },
        "min_size": SIZE.show(&compress.min_size),
        "types": all(&MEDIA, &compress.types),
        "except_types": all(&MEDIA, &compress.except_types),
        "whole": {
            "bytes": SIZE.show(&compress.whole_bytes),
            "wait": TIME.show(&compress.whole_wait),
        },
        "flush": FLUSH.show(&compress.flush),
        "honor_no_transform": compress.honor_no_transform,
        "requests": REQUESTS.show(&compress.requests),
        "max_inflated": SIZE.show(&compress.max_inflated),
        "breach": {
            "pad": SIZE.show(&compress.breach_pad),
            "cross_site": CROSS_SITE.show(&compress.breach_cross_site),
        },
    })
}

fn cache(cache: &Cache) -> Json {
    json!({
        "enabled": cache.enabled,
        "default_ttl": TIME.show(&cache.default_ttl),
        "max_object": SIZE.show(&cache.max_object),
        "query": Query.show(&cache.query),
        "stale_while_revalidate": TIME.show(&cache.stale_while_revalidate),
        "stale_if_error": TIME.show(&cache.stale_if_error),
        "reuse": cache.reuse,
        "densify": cache.densify,
    })
}

fn grpc(grpc: &Grpc) -> Json {
    let levels = &grpc.levels;
    json!({
        "compress": grpc.compress,
        "encodings": all(&GRPC_CODING, &grpc.encodings),
        "levels": { "gzip": levels.gzip, "zstd": levels.zstd, "deflate": levels.deflate },
        "min_size": SIZE.show(&grpc.min_size),
        "requests": REQUESTS.show(&grpc.requests),
        "web": WEB.show(&grpc.web),
        "max_message": SIZE.show(&grpc.max_message),
    })
}

fn websocket(websocket: &WebSocket) -> Json {
    let text = websocket.except_text.then_some("text");
    let binary = websocket.except_binary.then_some("binary");
    json!({
        "compress": websocket.compress,
        "level": websocket.level,
        "window_bits": websocket.window_bits,
        "context_takeover": websocket.context_takeover,
        "min_size": SIZE.show(&websocket.min_size),
        "except": text.into_iter().chain(binary).collect::<Json>(),
        "max_message": SIZE.show(&websocket.max_message),
        "idle_timeout": TIME.show(&websocket.idle_timeout),
    })
}

fn limits(limits: &Limits) -> Json {
    json!({
        "request_head": SIZE.show(&limits.request_head),
        "request_body": SIZE.show(&limits.request_body),
        "concurrent_requests": limits.concurrent_requests,
        "per_client": {
            "requests_per_second": limits.requests_per_second,
            "burst": limits.burst,
        },
    })
}

fn timeouts(timeouts: &Timeouts) -> Json {
    json!({
        "request_head": TIME.show(&timeouts.request_head),
        "request_body": TIME.show(&timeouts.request_body),
        "response": TIME.show(&timeouts.response),
    })
}

fn edits(edits: &HeaderEdits) -> Json {
    let mut set = pairs((&FORWARDED_HEADER, &HEADER_VALUE), &edits.set);
    for name in CREDENTIALS {
        if let Some(value) = set.get_mut(name) {
            *value = json!(MASKED);
        }
    }
    json!({ "set": set, "remove": all(&HEADER_NAME, &edits.remove) })
}
