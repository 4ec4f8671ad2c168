//! The first look at a request: what it asks of whom, and which route takes it.

use std::borrow::Cow;
use std::sync::Arc;

use http::uri::Authority;
use http::{HeaderMap, Method, Request, Uri, Version, header};
use hyper::body::Incoming;

use super::facts::Facts;
use super::route::{Route, Seen};
use super::snapshot::Snapshot;
use crate::body::Ledger;
use crate::head::{authority, path};
use crate::protocol::{Failure, Kind};

const BAD_HOST: Kind = Kind::BadRequest("the request's host is malformed");
const TWO_HOSTS: Kind = Kind::BadRequest("the request names two different hosts");
const BAD_PATH: Kind = Kind::BadRequest("the request's path is malformed");

/// The name of an HTTP version in the log.
pub(super) fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        _ => "HTTP/1.1",
    }
}

/// Finds the route of `request`, and the host that it is for, as the client wrote it.
pub(super) fn route(
    snapshot: &Snapshot,
    facts: &Facts,
    request: &Request<Incoming>,
    ledger: &mut Ledger,
) -> Result<(Arc<Route>, Box<str>), Failure> {
    let host = host(request).map_err(Failure::client)?;
    ledger.host = Some(host.as_ref().into());
    if request.version() == Version::HTTP_2 {
        let most = snapshot.settings.defaults.limits.request_head;
        if head_size(request.uri(), request.headers()) > most {
            return Err(Failure::client(Kind::HeadTooLarge));
        }
    }
    let extended = request.extensions().get::<hyper::ext::Protocol>().is_some();
    if request.method() == Method::CONNECT && !extended {
        return Err(Failure::client(Kind::MethodNotAllowed));
    }
    let path = comparable_path(request).ok_or_else(|| Failure::client(BAD_PATH))?;
    let comparable =
        comparable_host(&host, request.version()).ok_or_else(|| Failure::client(BAD_HOST))?;
    let seen = Seen {
        facts,
        method: request.method(),
        host: &comparable,
        path: &path,
        headers: request.headers(),
    };
    let route = snapshot
        .router
        .find(&seen)
        .ok_or_else(|| Failure::client(Kind::NoRoute))?;
    Ok((Arc::clone(route), host.as_ref().into()))
}

/// RFC 9112 section 3.2.2: an absolute-form target's authority replaces Host. HTTP/2: `:authority`,
/// and a Host beside it must say the same.
fn host(request: &Request<Incoming>) -> Result<Cow<'_, str>, Kind> {
    let field = match request.headers().get(header::HOST) {
        Some(value) => Some(value.to_str().map_err(|_| BAD_HOST)?),
        None => None,
    };
    match (request.uri().authority(), field) {
        (Some(authority), Some(field)) if request.version() == Version::HTTP_2 => {
            if authority.as_str().eq_ignore_ascii_case(field) {
                Ok(Cow::Borrowed(authority.as_str()))
            } else {
                Err(TWO_HOSTS)
            }
        }
        (Some(authority), _) => Ok(Cow::Borrowed(authority.as_str())),
        (None, Some(field)) if field.is_empty() || field.parse::<Authority>().is_ok() => {
            Ok(Cow::Borrowed(field))
        }
        (None, Some(_)) => Err(BAD_HOST),
        // HTTP/1.0 may leave it out; the gate saw to HTTP/1.1.
        (None, None) => Ok(Cow::Borrowed("")),
    }
}

/// The host as routes compare it. Without one, HTTP/1.0 gets what is served to any.
fn comparable_host(host: &str, version: Version) -> Option<Cow<'_, str>> {
    if host.is_empty() && version == Version::HTTP_10 {
        return Some(Cow::Borrowed(""));
    }
    authority::host(host)
}

/// The path as routes compare it; `*` of OPTIONS stands for the whole server.
fn comparable_path(request: &Request<Incoming>) -> Option<Cow<'_, str>> {
    match request.uri().path() {
        "*" | "" => Some(Cow::Borrowed("/")),
        path => path::normalize(path),
    }
}

/// What a head weighs by HTTP/2's reckoning (RFC 9113 section 6.5.2).
fn head_size(uri: &Uri, headers: &HeaderMap) -> u64 {
    let fields = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 32);
    let target = uri
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    (fields.sum::<usize>() + target) as u64
}
