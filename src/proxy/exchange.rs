//! The life of a request.
//!
//! 1. It is looked at: method, authority, path, expectation. What two parsers could read
//!    differently never came this far; what is merely wrong gets its status here.
//! 2. The first route that matches takes it; its limits are checked.
//! 3. The app is asked: hop-by-hop fields removed, Accept-Encoding replaced, conditionals mapped.
//!    Where the route keeps copies, `protocol::cached` answers, and asks the app if it has to.
//! 4. The app's head comes, and `protocol::http` makes the client's answer of it; of a call
//!    `protocol::grpc` does, message by message.
//! 5. The record is written when the answer's body ends, or is dropped.
//!
//! Each step that fails ends in one place: `error`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use tokio::time::Sleep;

use super::copies::{self, Unsafe};
use super::error;
use super::explain;
use super::facts::Facts;
use super::intake;
use super::outgoing::{self, Asked, Outgoing};
use super::route::Route;
use super::snapshot::Shared;
use super::upgrade::Agreed;
use crate::body::{AppBody, Arriving, Body, Lease, Ledger, Wire};
use crate::head::grpc::Dialect;
use crate::protocol::cached::{self, Lookup};
use crate::protocol::http::{FromApp, respond};
use crate::protocol::{Failure, Kind, grpc};
use crate::telemetry::CacheResult;
use crate::upstream::{Answer, Call, SendError};

/// Answers one request.
pub async fn exchange(
    shared: &Arc<Shared>,
    facts: &Arc<Facts>,
    mut request: Request<Incoming>,
    wire: Option<Box<dyn Wire>>,
) -> Response<Body> {
    let explaining = explain::is_wanted(shared, facts.client, request.headers_mut());
    let mut response = answer(shared, facts, request, wire).await;
    if explaining {
        explain::explain(&mut response);
    }
    response
}

/// The answer, and its record in it.
async fn answer(
    shared: &Arc<Shared>,
    facts: &Arc<Facts>,
    request: Request<Incoming>,
    wire: Option<Box<dyn Wire>>,
) -> Response<Body> {
    let mut ledger = open(shared, facts, &request, wire);
    match ask(shared, facts, request, &mut ledger).await {
        Ok(Step::Answered(answered)) => {
            let Answered { asked, route, from } = *answered;
            let (tools, policy) = (&shared.tools, &route.policy);
            let responded = match asked.call {
                Some(call) => {
                    grpc::respond(tools, policy, (&asked.facts, call), from, ledger).await
                }
                None => respond(tools, policy, &asked.facts, from, ledger).await,
            };
            finish(&route, responded)
        }
        Ok(Step::Cached(cached)) => {
            let Cached { lookup, route } = *cached;
            finish(&route, cached::answer(&shared.tools, lookup, ledger).await)
        }
        Ok(Step::Upgraded(agreed)) => agreed.switch(shared, facts, ledger),
        Err(failure) => error::response(&failure, ledger),
    }
}

/// The last edits, or the answer that says what went wrong.
fn finish(
    route: &Route,
    answered: Result<Response<Body>, (Failure, Box<Ledger>)>,
) -> Response<Body> {
    match answered {
        Ok(mut response) => {
            outgoing::finish(route, &mut response);
            response
        }
        Err((failure, ledger)) => error::response(&failure, ledger),
    }
}

/// Opens the record.
fn open(
    shared: &Shared,
    facts: &Arc<Facts>,
    request: &Request<Incoming>,
    wire: Option<Box<dyn Wire>>,
) -> Box<Ledger> {
    let mut ledger = Ledger::open(
        shared.sink.clone(),
        Arc::clone(&shared.unrouted),
        request.method().clone(),
        request.uri().clone(),
    );
    ledger.client = facts.client.ip();
    ledger.dialect = Dialect::of(request.headers());
    ledger.protocol = intake::protocol(request.version());
    if wire.is_none() {
        ledger.hold(facts.busy());
    }
    ledger.wire = wire;
    ledger
}

/// What asking led to.
enum Step {
    /// An answer to pass on.
    Answered(Box<Answered>),
    /// The connection changes its protocol.
    Upgraded(Box<Agreed>),
    /// A question that copies may answer.
    Cached(Box<Cached>),
}

struct Cached {
    lookup: Lookup,
    route: Arc<Route>,
}

struct Answered {
    asked: Asked,
    route: Arc<Route>,
    from: FromApp,
}

/// Steps 1 to 4.
async fn ask(
    shared: &Arc<Shared>,
    facts: &Arc<Facts>,
    request: Request<Incoming>,
    ledger: &mut Ledger,
) -> Result<Step, Failure> {
    let snapshot = shared.snapshot.load();
    let (route, host) = intake::route(&snapshot, facts, &request, ledger)?;
    let queries = Arc::clone(&snapshot.queries);
    drop(snapshot);
    ledger.routed(&route.metrics);
    admit(&route, facts, &request)?;
    enter(&route, ledger)?;
    let outgoing = Outgoing::prepare(shared, facts, &route, &host, request, ledger)?;
    let Outgoing {
        asked,
        request,
        call,
        upgrade,
    } = outgoing;
    let mut deadline = patience(&route, &asked).map(|most| Box::pin(tokio::time::sleep(most)));
    let (head, body) = request.into_parts();
    if upgrade.is_none()
        && let Some(url) = copies::key(&route, facts, &head, &host, &body)
    {
        let lookup = Lookup {
            site: route.site.clone(),
            url,
            asked: asked.facts,
            held: asked.held,
            head,
            call,
            deadline,
        };
        return Ok(Step::Cached(Box::new(Cached { lookup, route })));
    }
    let changing = Unsafe::of(facts, &head, &host, &queries);
    let request = Request::from_parts(head, body);
    let asking = Instant::now();
    let answer = send(&route, request, call, &mut deadline).await?;
    let Answer {
        mut response,
        server,
        lease,
    } = answer;
    ledger.server = Some(server);
    ledger.server_took = Some(asking.elapsed());
    if let Some(changing) = changing {
        let copies = &shared.tools.copies;
        changing.answered(response.status(), response.headers(), copies);
    }
    if let Some(wanted) = upgrade {
        if let Some(agreed) = wanted.judge(&mut response, &route)? {
            ledger.hold(lease);
            return Ok(Step::Upgraded(Box::new(agreed)));
        }
        if let Some(wire) = &ledger.wire {
            wire.stay();
        }
    } else if response.status().is_informational() {
        return Err(Failure::app(Kind::BadGateway(
            "the application switched protocols unasked",
        )));
    }
    let mut from = from_app(response, lease, deadline, &asked);
    if route.policy.cache.enabled {
        ledger.cache = Some(CacheResult::Bypass);
        cached::bypassed(&asked.facts.method).append(&mut from.head.headers);
    }
    Ok(Step::Answered(Box::new(Answered { asked, route, from })))
}

/// Whether this client may ask again already.
fn admit(route: &Route, facts: &Facts, request: &Request<Incoming>) -> Result<(), Failure> {
    let told = |seconds| Failure::client(Kind::TooManyRequests(seconds));
    route.admit(facts.asker(request.headers())).map_err(told)
}

/// Takes one of the route's places.
fn enter(route: &Arc<Route>, ledger: &mut Ledger) -> Result<(), Failure> {
    if route.policy.limits.concurrent_requests > 0 {
        let running = route.enter().ok_or_else(|| {
            Failure::proxy(Kind::Unavailable("too many requests at once on this route"))
        })?;
        ledger.hold(running);
    }
    Ok(())
}

/// How long the exchange may take, if that is limited: by the route, or by the client of a call.
fn patience(route: &Route, asked: &Asked) -> Option<Duration> {
    let own = route.policy.timeouts.response;
    let own = (!own.is_zero()).then_some(own);
    let client = asked.call.as_ref().and_then(grpc::Call::patience);
    own.into_iter().chain(client).min()
}

/// Sends the request, for as long as the exchange may take.
async fn send(
    route: &Route,
    request: Request<Body>,
    call: Call,
    deadline: &mut Option<Pin<Box<Sleep>>>,
) -> Result<Answer, Failure> {
    let sending = route.upstream.send(request, call);
    let sent: Result<Answer, SendError> = match deadline {
        None => sending.await,
        Some(deadline) => tokio::select! {
            sent = sending => sent,
            () = deadline.as_mut() => {
                return Err(Failure::app(Kind::Overdue));
            }
        },
    };
    sent.map_err(Failure::from)
}

fn from_app(
    mut response: Response<Incoming>,
    lease: Lease,
    deadline: Option<Pin<Box<Sleep>>>,
    asked: &Asked,
) -> FromApp {
    asked.receive(&mut response);
    let (head, incoming) = response.into_parts();
    let mut incoming = Arriving::new(incoming, head.version);
    if asked.call.is_some() {
        incoming = incoming.with_all_trailers();
    }
    FromApp {
        head,
        incoming: AppBody::Arriving(incoming),
        lease: Some(lease),
        deadline,
        keeping: None,
    }
}
