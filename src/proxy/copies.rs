//! What exchanges have to do with copies: which of them copies may answer, and what an unsafe
//! request makes invalid.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri};

use super::facts::Facts;
use super::route::Route;
use crate::body::Body;
use crate::cache::invalidate::{self, Change};
use crate::cache::key::{Origin, Url};
use crate::config::settings::QueryKey;
use crate::head::authority::Authority;
use crate::protocol::cached::{self, Copies};

/// The key of a request that copies may answer. `head` is as the app would get it.
pub(super) fn key(
    route: &Route,
    facts: &Facts,
    head: &Parts,
    host: &str,
    body: &Body,
) -> Option<Url> {
    let cache = &route.policy.cache;
    if !cache.enabled || !cached::admits(head, host, !matches!(body, Body::Empty)) {
        return None;
    }
    let origin = origin(facts, &head.headers, host)?;
    let (path, query) = (head.uri.path(), head.uri.query());
    Some(Url::new(&origin, path, query, &cache.query))
}

/// Scheme and authority as the app is told of them.
fn origin<'a>(facts: &Facts, told: &HeaderMap, host: &'a str) -> Option<Origin<'a>> {
    let https = match told.get("x-forwarded-proto") {
        Some(proto) => proto.as_bytes().eq_ignore_ascii_case(b"https"),
        None => facts.listening.tls,
    };
    let authority = Authority::parse(host)?;
    Some(Origin { https, authority })
}

/// An unsafe request on its way, and where it goes.
pub(super) struct Unsafe {
    method: Method,
    uri: Uri,
    host: Box<str>,
    https: bool,
    queries: Arc<[QueryKey]>,
}

impl Unsafe {
    /// `None` where nothing can become invalid.
    pub(super) fn of(
        facts: &Facts,
        head: &Parts,
        host: &str,
        queries: &Arc<[QueryKey]>,
    ) -> Option<Self> {
        let safe = matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if safe || queries.is_empty() {
            return None;
        }
        Some(Self {
            method: head.method.clone(),
            uri: head.uri.clone(),
            host: host.into(),
            https: origin(facts, &head.headers, host)?.https,
            queries: Arc::clone(queries),
        })
    }

    /// The app answered: what it may have changed is forgotten (RFC 9111 section 4.4).
    pub(super) fn answered(&self, status: StatusCode, response: &HeaderMap, copies: &Copies) {
        let Some(authority) = Authority::parse(&self.host) else {
            return;
        };
        let origin = Origin {
            https: self.https,
            authority,
        };
        let change = Change {
            method: &self.method,
            origin: &origin,
            path: self.uri.path(),
            query: self.uri.query(),
            status,
            response,
        };
        copies.invalidate(invalidate::invalidated(change, &self.queries));
    }
}
