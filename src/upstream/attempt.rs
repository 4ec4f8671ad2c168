//! One attempt at one server: a connection for it, the exchange, and what a failure allows.

use http::Request;
use http::request::Parts;
use prometheus_client::metrics::counter::Counter;
use tokio::time::{Instant, timeout};

use super::client::{Client, Link, Unanswered};
use super::connect::Ends;
use super::endpoint::Endpoint;
use super::gate::Place;
use super::sending::{Again, Sending};
use super::thrift::Thrift;
use super::{Answer, Call, SendError, Upstream};
use crate::body::Body;
use crate::body::Lease;
use crate::telemetry::ServerMetrics;

/// A request that may still be sent.
pub(super) struct Exchange {
    head: Parts,
    body: Body,
    call: Call,
    /// Attempts left after one that may have reached a server.
    repeats: u32,
    /// Only on a connection made since then: an older one failed.
    since: Option<Instant>,
}

/// No answer, and what may be done about it.
pub(super) enum Setback {
    /// Nothing.
    Over(SendError),
    /// Send it again to this server, on another connection.
    Again(Box<Exchange>),
    /// Nothing was sent: another server may be asked.
    Unreached(SendError, Box<Exchange>),
}

/// What a repetition needs.
struct Kept {
    head: Parts,
    again: Again,
}

/// Counts how an attempt ended; unless told otherwise, the caller left.
struct Outcome<'a> {
    metrics: &'a ServerMetrics,
    known: bool,
}

/// What the queue brings.
enum Found {
    Link(Link),
    Place(Place),
}

impl Exchange {
    pub(super) fn new(request: Request<Body>, call: Call, repeats: u32) -> Self {
        let (head, body) = request.into_parts();
        Self {
            head,
            body,
            call,
            repeats,
            since: None,
        }
    }
}

impl Upstream {
    /// One attempt at this server.
    pub(super) async fn attempt(
        &self,
        endpoint: &Endpoint,
        mut exchange: Box<Exchange>,
    ) -> Result<Answer, Setback> {
        let outcome = Outcome {
            metrics: &endpoint.metrics,
            known: false,
        };
        let lease = Lease::new(endpoint.load.clone(), None);
        let ends = Ends {
            client: exchange.call.client,
            local: exchange.call.local,
        };
        let link = match self.link(endpoint, ends, exchange.since).await {
            Ok(link) => link,
            Err(error @ SendError::Saturated) => {
                outcome.is(None);
                return Err(Setback::Over(error));
            }
            Err(error) => {
                outcome.is(Some(&endpoint.metrics.connect_failed));
                self.failed(endpoint, &error);
                exchange.since = None;
                return Err(Setback::Unreached(error, exchange));
            }
        };
        let Exchange {
            mut head,
            body,
            call,
            repeats,
            ..
        } = *exchange;
        endpoint
            .client
            .address(&mut head, endpoint.scheme(), endpoint.authority());
        let reused = link.is_reused();
        let body = Sending::new(body);
        let keep = repeats > 0 && (link.may_be_refused() || reused && call.repeatable);
        let kept = keep.then(|| Kept {
            head: head.clone(),
            again: body.again(),
        });
        match link
            .exchange(Request::from_parts(head, body), call.head_timeout)
            .await
        {
            Ok((response, stream)) => {
                outcome.is(Some(&endpoint.metrics.answered));
                self.answered(endpoint, response.status());
                let lease = match stream {
                    None => lease,
                    stream => Lease::new(endpoint.load.clone(), stream),
                };
                Ok(Answer {
                    response,
                    server: endpoint.label.clone(),
                    lease,
                })
            }
            Err(unanswered) => {
                let next = after(unanswered, reused, kept, call, repeats, &self.thrift);
                outcome.after(&next);
                if let Setback::Over(error) = &next
                    && error.is_the_servers()
                {
                    self.failed(endpoint, error);
                }
                Err(next)
            }
        }
    }

    /// A connection to this server: one that is kept, or a new one.
    async fn link(
        &self,
        endpoint: &Endpoint,
        ends: Ends,
        since: Option<Instant>,
    ) -> Result<Link, SendError> {
        // With HTTP/1 whoever waits for a connection comes first.
        let behind = matches!(endpoint.client, Client::Http1(_)) && self.gate.is_crowded();
        if !behind && let Some(link) = endpoint.client.take(since) {
            if link.wants_more()
                && let Some(_turn) = endpoint.client.try_turn()
                && let Some(more) = self.one_more(endpoint, ends).await
            {
                return Ok(more);
            }
            return Ok(link);
        }
        let late = |_| SendError::ConnectTimeout {
            server: endpoint.label.clone(),
        };
        let _turn = timeout(self.connect_timeout, endpoint.client.turn())
            .await
            .map_err(late)?;
        if !behind && let Some(link) = endpoint.client.take(since) {
            // Who waited for this turn may find that as many did before.
            let more = if link.wants_more() {
                self.one_more(endpoint, ends).await
            } else {
                None
            };
            return Ok(more.unwrap_or(link));
        }
        let place = if behind { None } else { self.gate.enter() };
        let found = match place {
            Some(place) => Found::Place(place),
            None => self.queue(endpoint, since, behind).await?,
        };
        match found {
            Found::Link(link) => Ok(link),
            Found::Place(place) => endpoint.open(ends, place).await,
        }
    }

    /// A further connection beside busy ones, if there may be one and it can be made.
    async fn one_more(&self, endpoint: &Endpoint, ends: Ends) -> Option<Link> {
        let place = self.gate.enter()?;
        endpoint.open(ends, place).await.ok()
    }

    /// Waits until something is freed, as long as a connection might take.
    async fn queue(
        &self,
        endpoint: &Endpoint,
        since: Option<Instant>,
        mut behind: bool,
    ) -> Result<Found, SendError> {
        let turn = self.gate.queue();
        let waiting = async {
            loop {
                let mut comes = std::pin::pin!(turn.comes());
                // From here on nothing that is freed is missed.
                comes.as_mut().enable();
                if !std::mem::take(&mut behind)
                    && let Some(found) = self.look(endpoint, since)
                {
                    return found;
                }
                comes.await;
            }
        };
        timeout(self.connect_timeout, waiting)
            .await
            .map_err(|_| SendError::Saturated)
    }

    /// What there is when `max_connections` are open; makes room if there is nothing.
    fn look(&self, endpoint: &Endpoint, since: Option<Instant>) -> Option<Found> {
        let kept = endpoint
            .client
            .take(since)
            .or_else(|| endpoint.client.take_anywhere(since));
        if let Some(link) = kept {
            return Some(Found::Link(link));
        }
        if let Some(place) = self.gate.enter() {
            return Some(Found::Place(place));
        }
        // The place comes when its socket is closed.
        let _ = self
            .endpoints
            .iter()
            .any(|endpoint| endpoint.client.close_one());
        None
    }
}

/// What a failed exchange allows (RFC 9110 section 9.2.2, RFC 9113 section 8.7).
fn after(
    unanswered: Unanswered,
    reused: bool,
    kept: Option<Kept>,
    call: Call,
    repeats: u32,
    thrift: &Thrift,
) -> Setback {
    let Unanswered { error, unsent } = unanswered;
    let since = Some(Instant::now());
    if let Some(request) = unsent
        && reused
    {
        let (head, body) = request.into_parts();
        let body = body.into_body();
        return Setback::Again(Box::new(Exchange {
            head,
            body,
            call,
            repeats,
            since,
        }));
    }
    let refused = error.is_unprocessed();
    let repeatable = reused && call.repeatable && matches!(error, SendError::Closed(_));
    if let Some(Kept { head, again }) = kept
        && (refused || repeatable)
        && let Some(body) = again.into_body()
        && thrift.spend()
    {
        // A connection that refuses one stream may take the next.
        let since = since.filter(|_| matches!(error, SendError::Closed(_)));
        let repeats = repeats - 1;
        return Setback::Again(Box::new(Exchange {
            head,
            body,
            call,
            repeats,
            since,
        }));
    }
    Setback::Over(error)
}

impl Outcome<'_> {
    fn is(mut self, counter: Option<&Counter>) {
        self.known = true;
        if let Some(counter) = counter {
            counter.inc();
        }
    }

    fn after(self, next: &Setback) {
        let metrics = self.metrics;
        self.is(Some(match next {
            Setback::Again(_) => &metrics.retried,
            Setback::Over(SendError::HeadTimeout) => &metrics.timed_out,
            Setback::Over(SendError::RequestBody(_)) => &metrics.canceled,
            _ => &metrics.failed,
        }));
    }
}

impl Drop for Outcome<'_> {
    fn drop(&mut self) {
        if !self.known {
            self.metrics.canceled.inc();
        }
    }
}
