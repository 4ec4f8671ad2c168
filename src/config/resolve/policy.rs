//! How exchanges are treated: the keys of `defaults`, which every route has too.
//!
//! `base` is what they are merged over: the built-in defaults, then those of the file.

use crate::codec::Coding;
use crate::config::kind::{
    FORWARDED_HEADER, Flag, GRPC_CODING, HEADER_NAME, HEADER_VALUE, HTTP_CODING, MEDIA, PATIENCE,
    Query, SIZE, TIME, UPGRADE, Whole, Word,
};
use crate::config::section::Section;
use crate::config::settings::{
    Cache, Compress, CrossSite, Flush, Grpc, GrpcWeb, HeaderEdits, Levels, Limits, Policy,
    Requests, Timeouts, WebSocket,
};

/// Streams are clamped to these (NUMBERS.md).
const MOST_ON_STREAMS: [(&str, u8); 2] = [("br", 5), ("gzip", 9)];
/// A head smaller than this holds no request; a larger one than the most is an attack.
const HEAD: (u64, u64) = (256, 16 << 20);
/// More padding than any answer gains from.
const MAX_PAD: u64 = 1 << 20;
/// A count that nobody means to exceed.
const MANY: usize = 100_000_000;
/// Requests a second that nobody means to exceed.
const MANY_A_SECOND: u32 = 100_000_000;

pub(in crate::config) const FLUSH: Word<Flush> = Word(&[
    ("auto", Flush::Auto),
    ("never", Flush::Never),
    ("every_chunk", Flush::EveryChunk),
]);
pub(in crate::config) const REQUESTS: Word<Requests> = Word(&[
    ("pass", Requests::Pass),
    ("decompress", Requests::Decompress),
]);
pub(in crate::config) const CROSS_SITE: Word<CrossSite> = Word(&[
    ("compress", CrossSite::Compress),
    ("plain", CrossSite::Plain),
]);
pub(in crate::config) const WEB: Word<GrpcWeb> =
    Word(&[("pass", GrpcWeb::Pass), ("bridge", GrpcWeb::Bridge)]);

/// Where a policy stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scope {
    Defaults,
    Route,
}

pub(super) fn policy(s: &mut Section<'_>, base: &Policy, scope: Scope) -> Policy {
    let compress = s.section("compress", "HTTP bodies.", |s| compress(s, &base.compress));
    let cache = s.section("cache", "Copies of responses.", |s| cache(s, &base.cache));
    let grpc = s.section("grpc", "gRPC messages.", |s| grpc(s, &base.grpc));
    let websocket = s.section("websocket", "WebSocket messages.", |s| {
        websocket(s, &base.websocket)
    });
    let about = "Upgrade tokens that may pass: websocket is terminated, others are tunnelled \
                 untouched; any other is ignored.";
    let upgrades = s.list("upgrades", &UPGRADE, &base.upgrades, about);
    let limits = s.section("limits", "Bounds.", |s| limits(s, &base.limits, scope));
    let timeouts = s.section("timeouts", "Patience with clients.", |s| {
        timeouts(s, &base.timeouts, scope)
    });
    let (request_headers, response_headers) = s.section("headers", "Header edits.", |s| {
        let request = s.section("request", "Towards the app.", |s| {
            edits(s, &base.request_headers)
        });
        let about = "Towards the client.";
        (
            request,
            s.section("response", about, |s| edits(s, &base.response_headers)),
        )
    });
    Policy {
        compress,
        cache,
        grpc,
        websocket,
        upgrades,
        limits,
        timeouts,
        request_headers,
        response_headers,
    }
}

fn compress(s: &mut Section<'_>, base: &Compress) -> Compress {
    let about = "Off: bodies and the client's Accept-Encoding pass as they are.";
    let enabled = s.key("enabled", &Flag, base.enabled, about);
    let about = "The server's order among what the client likes equally.";
    let encodings = s.list("encodings", &HTTP_CODING, &base.encodings, about);
    let about = "In the engines' own scales; on streams br is at most 5 and gzip at most 9.";
    let levels = s.section("levels", about, |s| http_levels(s, &base.levels));
    let min_size = s.key(
        "min_size",
        &SIZE,
        base.min_size,
        "Smaller bodies stay plain.",
    );
    let about = "Media types that are compressed; * stands for anything.";
    let types = s.list("types", &MEDIA, &base.types, about);
    let about = "Media types that are not, although types has them.";
    let except_types = s.list("except_types", &MEDIA, &base.except_types, about);
    let about = "An answer that is complete within both is coded in one shot, with its length; \
                 else it streams.";
    let (whole_bytes, whole_wait) = s.section("whole", about, |s| {
        let bytes = s.key("bytes", &SIZE, base.whole_bytes, "At most so many bytes.");
        (
            bytes,
            s.key("wait", &TIME, base.whole_wait, "At most this long."),
        )
    });
    let about = "When what is there is sent; auto: when the app pauses.";
    let flush = s.key("flush", &FLUSH, base.flush, about);
    let about = "Cache-Control: no-transform keeps bodies plain.";
    let honor_no_transform = s.key("honor_no_transform", &Flag, base.honor_no_transform, about);
    let about = "decompress: bodies that the client compressed reach the app plain.";
    let requests = s.key("requests", &REQUESTS, base.requests, about);
    let about = "A request body may not inflate beyond this: 413.";
    let max_inflated = s.key("max_inflated", &SIZE, base.max_inflated, about);
    let about = "What makes it harder to guess secrets from the length of a body.";
    let (breach_pad, breach_cross_site) = s.section("breach", about, |s| {
        let about = "Up to so many random bytes hide the length of a compressed body.";
        let pad = s.key("pad", &SIZE.at_most(MAX_PAD), base.breach_pad, about);
        let about = "Answers to requests from other sites.";
        (
            pad,
            s.key("cross_site", &CROSS_SITE, base.breach_cross_site, about),
        )
    });
    Compress {
        enabled,
        encodings,
        levels,
        min_size,
        types,
        except_types,
        whole_bytes,
        whole_wait,
        flush,
        honor_no_transform,
        requests,
        max_inflated,
        breach_pad,
        breach_cross_site,
    }
}

fn http_levels(s: &mut Section<'_>, base: &Levels) -> Levels {
    let levels = Levels {
        gzip: level(s, Coding::Gzip, base),
        br: level(s, Coding::Brotli, base),
        zstd: level(s, Coding::Zstd, base),
        ..*base
    };
    for (coding, most) in MOST_ON_STREAMS {
        let written = if coding == "br" {
            levels.br
        } else {
            levels.gzip
        };
        if s.has(coding) && written > most {
            s.warn(
                coding,
                &format!("streams are compressed at {most}, whole answers at {written}"),
            );
        }
    }
    levels
}

fn level(s: &mut Section<'_>, coding: Coding, base: &Levels) -> u8 {
    let range = match coding {
        Coding::Gzip | Coding::Deflate => 1..=12,
        Coding::Brotli => 0..=11,
        Coding::Zstd => 1..=22,
    };
    s.key(
        coding.token(),
        &Whole(range),
        base.of(coding),
        "Higher is smaller and slower.",
    )
}

fn cache(s: &mut Section<'_>, base: &Cache) -> Cache {
    let about = "Off: nothing is kept but what reuse needs.";
    let enabled = s.key("enabled", &Flag, base.enabled, about);
    let about = "For responses that say nothing about freshness.";
    let default_ttl = s.key("default_ttl", &TIME, base.default_ttl, about);
    let max_object = s.key(
        "max_object",
        &SIZE,
        base.max_object,
        "Larger responses are not kept.",
    );
    let about = "Which part of the query is in the key: all, none or the names that are.";
    let query = s.key("query", &Query, base.query.clone(), about);
    let about = "Where the response does not say.";
    let stale_while_revalidate = s.key(
        "stale_while_revalidate",
        &TIME,
        base.stale_while_revalidate,
        about,
    );
    let stale_if_error = s.key("stale_if_error", &TIME, base.stale_if_error, about);
    let about = "Identical plain bytes reuse an earlier compression, also where nothing may be \
                 cached.";
    let reuse = s.key("reuse", &Flag, base.reuse, about);
    let about = "Popular copies are recompressed at the highest density while CPUs are idle.";
    let densify = s.key("densify", &Flag, base.densify, about);
    Cache {
        enabled,
        default_ttl,
        max_object,
        query,
        stale_while_revalidate,
        stale_if_error,
        reuse,
        densify,
    }
}

fn grpc(s: &mut Section<'_>, base: &Grpc) -> Grpc {
    let compress = s.key(
        "compress",
        &Flag,
        base.compress,
        "Off: responses pass as they are.",
    );
    let encodings = s.list(
        "encodings",
        &GRPC_CODING,
        &base.encodings,
        "In the server's order.",
    );
    let levels = s.section("levels", "In the engines' own scales.", |s| Levels {
        gzip: level(s, Coding::Gzip, &base.levels),
        zstd: level(s, Coding::Zstd, &base.levels),
        deflate: level(s, Coding::Deflate, &base.levels),
        ..base.levels
    });
    let min_size = s.key(
        "min_size",
        &SIZE,
        base.min_size,
        "Smaller messages stay plain.",
    );
    let about = "decompress: messages that the client compressed reach the app plain.";
    let requests = s.key("requests", &REQUESTS, base.requests, about);
    let about = "gRPC-Web clients; bridge: to an app that speaks plain gRPC.";
    let web = s.key("web", &WEB, base.web, about);
    let about = "A message may not inflate beyond this: RESOURCE_EXHAUSTED. Larger plain \
                 responses pass untouched.";
    let max_message = s.key("max_message", &SIZE.at_least(1), base.max_message, about);
    refuse_crossed(s, min_size, max_message);
    Grpc {
        compress,
        encodings,
        levels,
        min_size,
        requests,
        web,
        max_message,
    }
}

fn websocket(s: &mut Section<'_>, base: &WebSocket) -> WebSocket {
    let compress = s.key(
        "compress",
        &Flag,
        base.compress,
        "Off: permessage-deflate is not agreed.",
    );
    let level = s.key("level", &Whole(1..=9), base.level, "zlib's own scale.");
    let about = "The most that we use toward the client.";
    let window_bits = s.key("window_bits", &Whole(9..=15), base.window_bits, about);
    let about = "History across messages: far smaller, and memory for each connection.";
    let context_takeover = s.key("context_takeover", &Flag, base.context_takeover, about);
    let about = "Smaller messages stay plain; only where context_takeover is false.";
    let min_size = s.key("min_size", &SIZE, base.min_size, about);
    let about = "Message kinds that stay plain.";
    let mut except = Vec::new();
    except.extend(base.except_text.then_some(MessageKind::Text));
    except.extend(base.except_binary.then_some(MessageKind::Binary));
    let except = s.list("except", &MESSAGE_KIND, &except, about);
    let about = "A message from the client may not inflate beyond this: close 1009.";
    let max_message = s.key("max_message", &SIZE.at_least(1), base.max_message, about);
    let about = "A silent connection is closed after this.";
    let idle_timeout = s.key("idle_timeout", &PATIENCE, base.idle_timeout, about);
    refuse_crossed(s, min_size, max_message);
    WebSocket {
        compress,
        level,
        window_bits,
        context_takeover,
        min_size,
        except_text: except.contains(&MessageKind::Text),
        except_binary: except.contains(&MessageKind::Binary),
        max_message,
        idle_timeout,
    }
}

/// Only where both are written: a small limit beside a default is no mistake.
fn refuse_crossed(s: &mut Section<'_>, min_size: u64, max_message: u64) {
    if s.has("min_size") && s.has("max_message") && min_size > max_message {
        s.fault(
            "min_size",
            "it is larger than max_message, write a smaller one",
        );
    }
}

fn limits(s: &mut Section<'_>, base: &Limits, scope: Scope) -> Limits {
    let about = "Bytes of a request head: 431. Read before a route is known: only that of \
                 defaults counts.";
    let head = SIZE.at_least(HEAD.0).at_most(HEAD.1);
    let request_head = s.key("request_head", &head, base.request_head, about);
    warn_of_late(s, "request_head", request_head != base.request_head, scope);
    let about = "413. Not for gRPC, Connect streams, WebSocket and tunnels.";
    let request_body = s.key("request_body", &SIZE, base.request_body, about);
    let about = "Of this route; 0: unlimited. Beyond: 503 with Retry-After.";
    let concurrent_requests = s.key(
        "concurrent_requests",
        &Whole(0..=MANY),
        base.concurrent_requests,
        about,
    );
    let about = "By client address. Beyond: 429 with Retry-After.";
    let (requests_per_second, burst) = s.section("per_client", about, |s| {
        let most = Whole(0..=MANY_A_SECOND);
        let rate = s.key(
            "requests_per_second",
            &most,
            base.requests_per_second,
            "0: unlimited.",
        );
        let about = "What may come at once above that.";
        (rate, s.key("burst", &most, base.burst, about))
    });
    Limits {
        request_head,
        request_body,
        concurrent_requests,
        requests_per_second,
        burst,
    }
}

/// A head is read before its route is known.
fn warn_of_late(s: &mut Section<'_>, name: &str, differs: bool, scope: Scope) {
    if differs && scope == Scope::Route {
        let what = "it is read before a route is known, only that of defaults counts";
        s.warn(name, what);
    }
}

fn timeouts(s: &mut Section<'_>, base: &Timeouts, scope: Scope) -> Timeouts {
    let about = "For a request head: 408. Read before a route is known: only that of defaults \
                 counts.";
    let request_head = s.key("request_head", &PATIENCE, base.request_head, about);
    warn_of_late(s, "request_head", request_head != base.request_head, scope);
    let about = "Between two reads of a request body, not in total.";
    let request_body = s.key("request_body", &PATIENCE, base.request_body, about);
    let about = "The whole exchange; 0s: no limit.";
    let response = s.key("response", &TIME, base.response, about);
    Timeouts {
        request_head,
        request_body,
        response,
    }
}

fn edits(s: &mut Section<'_>, base: &HeaderEdits) -> HeaderEdits {
    let about = "Fields that are replaced, or added.";
    let set = s.map("set", (&FORWARDED_HEADER, &HEADER_VALUE), &base.set, about);
    let remove = s.list(
        "remove",
        &HEADER_NAME,
        &base.remove,
        "Fields that are removed.",
    );
    HeaderEdits { set, remove }
}

/// What a WebSocket message carries.
#[derive(Debug, Clone, Copy, PartialEq)]
enum MessageKind {
    Text,
    Binary,
}

const MESSAGE_KIND: Word<MessageKind> =
    Word(&[("text", MessageKind::Text), ("binary", MessageKind::Binary)]);
