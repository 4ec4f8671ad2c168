//! What the app is asked, and what is remembered of the client's question for the answer.

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use http_body::Body as _;
use hyper::body::Incoming;

use super::facts::Facts;
use super::informational;
use super::route::Route;
use super::snapshot::Shared;
use super::upgrade::Wanted;
use crate::body::{Arriving, Body, Ledger, RequestBody, RequestLimits};
use crate::codec::Coding;
use crate::config::settings::{HeaderEdits, Policy, Requests, UpstreamProtocol};
use crate::head::accept;
use crate::head::conditional::{self, Held};
use crate::head::expect::Expectation;
use crate::head::grpc::Dialect;
use crate::head::hop;
use crate::policy;
use crate::protocol::{Failure, Kind, grpc};
use crate::telemetry::trace::TraceContext;
use crate::upstream::Call;

/// A request ready for the app.
pub(super) struct Outgoing {
    pub(super) asked: Asked,
    pub(super) request: Request<Body>,
    pub(super) call: Call,
    pub(super) upgrade: Option<Wanted>,
}

/// What is remembered until the answer comes.
pub(super) struct Asked {
    pub(super) facts: policy::Asked,
    /// The entity tags that the client holds.
    pub(super) held: Held,
    /// Of gRPC and its like.
    pub(super) call: Option<grpc::Call>,
}

impl Outgoing {
    /// Turns the client's request into the app's.
    pub(super) fn prepare(
        shared: &Shared,
        facts: &Facts,
        route: &Route,
        host: &str,
        request: Request<Incoming>,
        ledger: &mut Ledger,
    ) -> Result<Self, Failure> {
        let policy = &route.policy;
        let (mut head, incoming) = request.into_parts();
        if Expectation::of(&head.headers, head.version) == Expectation::Unknown {
            return Err(Failure::client(Kind::Expectation));
        }
        // 100 Continue is said here, when the app's connection takes the body.
        head.headers.remove(header::EXPECT);
        let mut asked = Asked::of(&head, host, policy);
        let hop = hop::strip_request(&mut head.headers, head.version);
        let over_http1 = route.upstream.protocol() == UpstreamProtocol::Http1;
        let upgrade = if over_http1 {
            Wanted::of(&mut head, &hop.upgrade, policy)?
        } else {
            None
        };
        if upgrade.is_none()
            && let Some(wire) = &ledger.wire
        {
            wire.stay();
        }
        if head.method == Method::CONNECT && upgrade.is_none() {
            return Err(Failure::client(Kind::UnknownProtocol));
        }
        let unbounded = asked.call.is_some() || upgrade.is_some();
        let part = ledger.wire.as_ref().map(|wire| wire.part());
        let mut body = body(shared, policy, &mut head, (incoming, part), unbounded)?;
        if let Some(call) = &mut asked.call {
            let shop = shared.tools.workshop(&route.metrics);
            let protocol = route.upstream.protocol();
            body = call.ask(&policy.grpc, protocol, shop, &mut head, body)?;
        }
        forward(&mut head, facts, host);
        if policy.compress.enabled {
            asked.ask_plain(&mut head.headers, policy);
        }
        let is_call = Dialect::of(&head.headers).is_some();
        let wants_trailers = asked.call.as_ref().is_some_and(grpc::Call::wants_trailers);
        if wants_trailers || hop.takes_trailers {
            take_trailers(&mut head.headers, over_http1);
        }
        let trace = TraceContext::join(&head.headers);
        ledger.trace = Some(trace);
        trace.pass_on(&mut head.headers);
        edit(&mut head.headers, &policy.request_headers);
        let repeatable = head.method.is_idempotent() && upgrade.is_none();
        if let Some(wanted) = &upgrade {
            wanted.ask(&mut head);
        }
        // A call may be silent for as long as it likes.
        let head_timeout = (!is_call).then_some(route.head_timeout);
        let call = Call {
            repeatable,
            head_timeout,
            client: facts.client.address,
            local: None,
        };
        let mut request = Request::from_parts(head, body);
        // HTTP/1.0 knows no 1xx (RFC 9110 section 15.2).
        let wire = ledger.wire.as_deref();
        let wire = wire.filter(|_| asked.facts.version == Version::HTTP_11);
        informational::relay(&mut request, wire, &shared.metrics);
        Ok(Self {
            asked,
            request,
            call,
            upgrade,
        })
    }
}

/// The request's body within the limits of its route, inflated where the policy says so.
fn body(
    shared: &Shared,
    policy: &Policy,
    head: &mut Parts,
    (incoming, part): (Incoming, Option<Box<dyn Send + Sync>>),
    unbounded: bool,
) -> Result<Body, Failure> {
    if incoming.is_end_stream() {
        return Ok(Body::Empty);
    }
    let bytes = if unbounded {
        u64::MAX
    } else {
        policy.limits.request_body
    };
    if incoming.size_hint().lower() > bytes {
        return Err(Failure::client(Kind::TooLarge));
    }
    let pause = if unbounded {
        None
    } else {
        Some(policy.timeouts.request_body)
    };
    let incoming = Arriving::new(incoming, head.version);
    let body = RequestBody::new(incoming, RequestLimits { bytes, pause }, part);
    let coding = match policy.compress.requests {
        Requests::Decompress if !unbounded => coding_of(&head.headers),
        _ => None,
    };
    let Some(coding) = coding else {
        return Ok(Body::Request(Box::new(body)));
    };
    for stale in [header::CONTENT_ENCODING, header::CONTENT_LENGTH] {
        head.headers.remove(stale);
    }
    // Digests and checksums of the coded bytes say nothing of the plain ones.
    for stale in ["content-md5", "content-digest", "repr-digest", "digest"] {
        head.headers.remove(stale);
    }
    let tools = &shared.tools;
    let most = policy.compress.max_inflated;
    Ok(Body::Request(Box::new(body.inflated(
        coding,
        most,
        tools.inline,
        tools.pool.clone(),
    ))))
}

/// The one coding of a request body; several, or one that is unknown here, pass as they are.
fn coding_of(headers: &HeaderMap) -> Option<Coding> {
    let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
    let (only, more) = (values.next()?, values.next());
    if more.is_some() {
        None
    } else {
        Coding::from_token(only.to_str().ok()?)
    }
}

/// Says where the request comes from, and puts its target into the form for an origin.
fn forward(head: &mut Parts, facts: &Facts, host: &str) {
    if let Ok(value) = HeaderValue::from_str(host) {
        head.headers.insert(header::HOST, value);
    }
    facts.forwarded.announce(&mut head.headers);
    hop::via(&mut head.headers, head.version);
    hop::join_cookies(&mut head.headers);
    if head.uri.authority().is_some() || head.uri.scheme().is_some() {
        let target = head.uri.path_and_query().cloned();
        head.uri = target.map_or_else(Uri::default, Uri::from);
    }
    head.version = Version::HTTP_11;
}

/// TE is the connection's own, which HTTP/1 has to be told (RFC 9110 section 10.1.4).
fn take_trailers(headers: &mut HeaderMap, over_http1: bool) {
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    if over_http1 {
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
}

impl Asked {
    fn of(head: &Parts, host: &str, policy: &Policy) -> Self {
        let (method, version) = (&head.method, head.version);
        let facts = policy::Asked::of(method, version, host, &head.headers, &policy.compress);
        Self {
            facts,
            held: Held::default(),
            call: grpc::Call::of(&head.headers),
        }
    }

    /// Asks the app for plain bytes, under tags that it knows.
    fn ask_plain(&mut self, headers: &mut HeaderMap, policy: &Policy) {
        accept::ask_plain(headers);
        self.held = conditional::toward_app(headers, self.facts.takes_coded(&policy.compress));
    }

    /// What comes from the app, with what concerns only its own connection removed.
    pub(super) fn receive(&self, response: &mut Response<Incoming>) {
        let version = response.version();
        hop::strip_response(response.headers_mut());
        hop::via(response.headers_mut(), version);
        if response.status() == StatusCode::NOT_MODIFIED {
            self.held.toward_client(response.headers_mut());
        }
    }
}

/// The last edits, on the client's answer.
pub(super) fn finish(route: &Route, response: &mut Response<Body>) {
    // Ours is what the client's connection speaks: an app's HTTP/1.0 must not end that.
    *response.version_mut() = Version::HTTP_11;
    edit(response.headers_mut(), &route.policy.response_headers);
}

pub(super) fn edit(headers: &mut HeaderMap, edits: &HeaderEdits) {
    for name in &edits.remove {
        headers.remove(name);
    }
    for (name, value) in &edits.set {
        headers.insert(name, value.clone());
    }
}
