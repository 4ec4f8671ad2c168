//! What is answered to whom. No I/O.
//!
//! `/live`, `/ready` and `/metrics` are for everybody who reaches the address. The rest shows how
//! the proxy is set up: with a token, to those who bear it; without one, on loopback only, and to
//! requests that name a loopback host. A page in the operator's browser that had its own name
//! point to 127.0.0.1 would name that. Nothing here allows other origins to read.

use std::net::{IpAddr, SocketAddr};

use aws_lc_rs::constant_time;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::Authority;
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use memchr::memmem;
use serde_json::json;

use super::history::History;
use super::{AdminState, dashboard, purge};
use crate::telemetry::CONTENT_TYPE;

/// Where copies are purged.
pub(super) const PURGE: &str = "/cache/purge";

/// What the dashboard polls.
const DATA: &str = "/dashboard.json";

const TEXT: &str = "text/plain; charset=utf-8";

/// What answers need.
pub(super) struct Desk {
    state: AdminState,
    loopback: bool,
    history: History,
}

pub(super) type Answer = Response<Full<Bytes>>;

impl Desk {
    /// `address` is the one that is listened on.
    pub(super) fn new(state: AdminState, address: SocketAddr) -> Self {
        let loopback = address.ip().to_canonical().is_loopback();
        Self {
            state,
            loopback,
            history: History::new(),
        }
    }

    /// The answer to a request; a HEAD's body is left out by the server.
    pub(super) fn answer(&self, head: &Parts) -> Answer {
        let path = head.uri.path();
        if !matches!(
            path,
            "/" | "/live" | "/ready" | "/metrics" | "/config" | DATA
        ) {
            return text(StatusCode::NOT_FOUND, "not found\n");
        }
        if !matches!(head.method, Method::GET | Method::HEAD) {
            let refused = text(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD\n");
            return with(refused, header::ALLOW, "GET, HEAD");
        }
        match path {
            "/live" => text(StatusCode::OK, "live\n"),
            "/ready" => self.ready(),
            "/metrics" => answer(StatusCode::OK, CONTENT_TYPE, (self.state.metrics)()),
            _ => match self.check(head) {
                Some(refused) if path == "/" => locked(refused, &head.headers),
                Some(refused) => refused,
                None => self.private(head),
            },
        }
    }

    /// Remembers the metrics as they are now.
    pub(super) fn sample(&self) {
        self.history.take(&(self.state.metrics)());
    }

    /// The refusal of a purge by its head, before its body is read.
    pub(super) fn refuse_purge(&self, head: &Parts) -> Option<Answer> {
        if head.method != Method::POST {
            let refused = text(StatusCode::METHOD_NOT_ALLOWED, "POST\n");
            return Some(with(refused, header::ALLOW, "POST"));
        }
        if purge::is_from_elsewhere(&head.headers) {
            let why = "a page of another site purges nothing here\n";
            return Some(text(StatusCode::FORBIDDEN, why));
        }
        self.check(head)
    }

    /// Purges; `None` stands for a body that was too long or did not come.
    pub(super) async fn purge(&self, head: &Parts, body: Option<&[u8]>) -> Answer {
        let Some(body) = body else {
            return text(StatusCode::BAD_REQUEST, "the purge did not come whole\n");
        };
        let purge = match purge::read(&head.headers, body) {
            Ok(purge) => purge,
            Err(why) => return text(StatusCode::BAD_REQUEST, why),
        };
        match (self.state.purge)(&purge) {
            Some(purged) => {
                let purged = purged.await;
                let json = format!("{{\"purged\": {purged}}}\n");
                answer(StatusCode::OK, "application/json", json)
            }
            None => text(StatusCode::BAD_REQUEST, "an absolute http or https URL\n"),
        }
    }

    fn ready(&self) -> Answer {
        let status = if self.state.readiness.is_ready() {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        let word = self.state.readiness.word();
        answer(status, TEXT, format!("{word}\n"))
    }

    fn private(&self, head: &Parts) -> Answer {
        match head.uri.path() {
            "/" => page(StatusCode::OK),
            DATA => answer(StatusCode::OK, "application/json", self.data(head)),
            _ => {
                let json = format!("{:#}\n", (self.state.config)());
                answer(StatusCode::OK, "application/json", json)
            }
        }
    }

    /// What the dashboard shows; `?after=N` leaves out what it knows.
    fn data(&self, head: &Parts) -> String {
        let query = head.uri.query().unwrap_or_default();
        let after = query
            .split('&')
            .find_map(|part| part.strip_prefix("after="))
            .and_then(|number| number.parse().ok());
        let config = (self.state.config)();
        let about = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "state": self.state.readiness.word(),
            "process": std::process::id(),
            "pool_threads": config["pool"]["threads"],
            "cache_memory": config["cache"]["memory"],
            "websocket_memory": config["websocket"]["memory"],
        });
        format!("{{\"about\":{about},{}}}\n", self.history.members(after))
    }

    /// The refusal, where this request may not see what is private.
    fn check(&self, head: &Parts) -> Option<Answer> {
        if !self.state.token.is_empty() {
            return (!bears(&head.headers, &self.state.token)).then(|| {
                let refused = text(StatusCode::UNAUTHORIZED, "a Bearer token is needed\n");
                with(
                    refused,
                    header::WWW_AUTHENTICATE,
                    "Bearer realm=\"thinwire\"",
                )
            });
        }
        let why = if !self.loopback {
            "without admin.token this answers on loopback addresses only\n"
        } else if !names_this_machine(head) {
            "without admin.token this answers to loopback hosts only\n"
        } else {
            return None;
        };
        Some(text(StatusCode::FORBIDDEN, why))
    }
}

/// `Authorization: Bearer TOKEN` (RFC 6750 section 2.1), once.
fn bears(headers: &HeaderMap, token: &str) -> bool {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (values.next(), values.next()) else {
        return false;
    };
    let Some((scheme, rest)) = only.as_bytes().split_at_checked("Bearer ".len()) else {
        return false;
    };
    // In constant time: how long a wrong token takes must not say how much of it was right.
    scheme.eq_ignore_ascii_case(b"Bearer ")
        && constant_time::verify_slices_are_equal(rest.trim_ascii(), token.as_bytes()).is_ok()
}

/// Whether the request's host is an address or `localhost`. No name is: whoever owns one decides
/// where it points to. Scripts may leave the host out; browsers never do.
fn names_this_machine(head: &Parts) -> bool {
    let named = match (head.uri.authority(), head.headers.get(header::HOST)) {
        (Some(authority), _) => Some(authority.clone()),
        (None, None) => return true,
        (None, Some(host)) => Authority::try_from(host.as_bytes()).ok(),
    };
    named.is_some_and(|authority| {
        let host = authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().is_ok() || bare.eq_ignore_ascii_case("localhost")
    })
}

/// A browser that has no token gets the page, which asks for it.
fn locked(refused: Answer, asked: &HeaderMap) -> Answer {
    let accepted = asked.get(header::ACCEPT).map(HeaderValue::as_bytes);
    let takes_html = accepted.is_some_and(|types| memmem::find(types, b"text/html").is_some());
    if !takes_html || refused.status() != StatusCode::UNAUTHORIZED {
        return refused;
    }
    let mut page = page(StatusCode::UNAUTHORIZED);
    if let Some(scheme) = refused.headers().get(header::WWW_AUTHENTICATE) {
        page.headers_mut()
            .insert(header::WWW_AUTHENTICATE, scheme.clone());
    }
    page
}

fn page(status: StatusCode) -> Answer {
    let locked = status == StatusCode::UNAUTHORIZED;
    let mut page = answer(status, "text/html; charset=utf-8", dashboard::page(locked));
    dashboard::fields(page.headers_mut());
    page
}

fn text(status: StatusCode, words: &'static str) -> Answer {
    answer(status, TEXT, words)
}

fn answer(status: StatusCode, media: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let answer = with(answer, header::CONTENT_TYPE, media);
    let answer = with(answer, header::CACHE_CONTROL, "no-store");
    with(answer, header::X_CONTENT_TYPE_OPTIONS, "nosniff")
}

fn with(mut answer: Answer, name: HeaderName, value: &'static str) -> Answer {
    answer
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
    answer
}
