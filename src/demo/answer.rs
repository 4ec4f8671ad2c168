//! Which path answers what.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{Either, Full};
use hyper::body::Incoming;

use super::events::{Events, Pace};
use super::socket::{self, Talk};
use super::{catalogue, data, echo};

/// Whole, or as time goes by.
pub(super) type Body = Either<Full<Bytes>, Events>;

/// The page that says what to try.
const INDEX: &str = include_str!("index.html");

/// How many records `/users` has unless told.
const USERS: usize = 10_000;

/// Answers one request.
pub(super) async fn answer(request: Request<Incoming>) -> Response<Body> {
    let head_only = request.method() == Method::HEAD;
    let response = route(request).await;
    if head_only {
        headless(response)
    } else {
        response
    }
}

async fn route(request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path();
    if path == "/upload" {
        return match *request.method() {
            Method::POST | Method::PUT => echo::upload(request).await,
            _ => method_not_allowed("POST, PUT"),
        };
    }
    match path {
        "/ws/echo" => return socket::answer(request, Talk::Echo),
        "/ws/ticks" => {
            return match pace(&request) {
                Ok(pace) => socket::answer(request, Talk::Ticks(pace)),
                Err(refusal) => *refusal,
            };
        }
        _ => {}
    }
    let found = match path {
        // The first: nothing may cost less than this.
        "/ping" => whole("text/plain; charset=utf-8", Bytes::from_static(b"pong\n")),
        "/" => whole(
            "text/html; charset=utf-8",
            Bytes::from_static(INDEX.as_bytes()),
        ),
        "/users" => users(&request),
        "/report" => whole("application/json", data::report()),
        "/catalogue" => catalogue::answer(request.headers()),
        "/random" => random(&request),
        "/events" => events(&request),
        "/headers" => echo::headers(&request),
        _ => {
            return refuse(
                StatusCode::NOT_FOUND,
                "No such page. / says what there is.\n",
            );
        }
    };
    match *request.method() {
        Method::GET | Method::HEAD => found,
        _ => method_not_allowed("GET, HEAD"),
    }
}

fn users<B>(request: &Request<B>) -> Response<Body> {
    match number(request, "count", USERS, 0, data::MOST_USERS) {
        Ok(count) => whole("application/json", data::users(count)),
        Err(refusal) => *refusal,
    }
}

fn random<B>(request: &Request<B>) -> Response<Body> {
    match parameter(request, "type") {
        None => whole("application/octet-stream", data::random()),
        // A lie on purpose: what a proxy believes that trusts the type alone.
        Some("json") => whole("application/json", data::random()),
        Some(_) => refuse(StatusCode::BAD_REQUEST, "type: only json is known.\n"),
    }
}

/// How many, and how far apart: `count` and `interval_ms`.
fn pace<B>(request: &Request<B>) -> Result<Pace, Box<Response<Body>>> {
    let count = number(request, "count", usize::MAX, 1, usize::MAX)?;
    let millis = number(request, "interval_ms", 1000, 1, 60_000)?;
    Ok(Pace { count, millis })
}

fn events<B>(request: &Request<B>) -> Response<Body> {
    let pace = match pace(request) {
        Ok(pace) => pace,
        Err(refusal) => return *refusal,
    };
    let mut response = Response::new(Either::Right(Events::new(&pace)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// A query parameter that is a number from `least` to `most`.
fn number<B>(
    request: &Request<B>,
    name: &str,
    default: usize,
    least: usize,
    most: usize,
) -> Result<usize, Box<Response<Body>>> {
    let Some(text) = parameter(request, name) else {
        return Ok(default);
    };
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => {
            let sentence = format!("{name}: a number from {least} to {most}, please.\n");
            Err(Box::new(refuse(StatusCode::BAD_REQUEST, sentence)))
        }
    }
}

/// The first value under this name. None of them needs percent-decoding.
fn parameter<'a, B>(request: &'a Request<B>, name: &str) -> Option<&'a str> {
    let pairs = request.uri().query()?.split('&');
    pairs
        .filter_map(|pair| pair.split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// A 200 with its length.
pub(super) fn whole(media_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(body)));
    let media_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    response
}

/// The same head with no body: what HEAD gets (RFC 9110 section 9.3.2).
fn headless(response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let described = parts.status != StatusCode::NOT_MODIFIED;
    if let Some(length) = body.size_hint().exact().filter(|_| described) {
        parts.headers.insert(CONTENT_LENGTH, length.into());
    }
    Response::from_parts(parts, Either::Left(Full::default()))
}

fn method_not_allowed(allowed: &'static str) -> Response<Body> {
    let sentence = "This page does not answer that method.\n";
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, sentence);
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// A refusal in plain text.
pub(super) fn refuse(status: StatusCode, sentence: impl Into<Bytes>) -> Response<Body> {
    let mut response = whole("text/plain; charset=utf-8", sentence.into());
    *response.status_mut() = status;
    response
}
