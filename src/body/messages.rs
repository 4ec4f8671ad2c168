//! One direction of a call: messages found in the bytes, and recoded one by one.
//!
//! What passes goes on as it comes, in the pieces it came in. What is to be compressed or inflated
//! is held, within `grpc.max_message` and the budget of all calls, because its length stands before
//! its first byte; one message of a call is away at a time, and nothing more is read meanwhile, so
//! the peer's window is the backpressure. A message leaves when it is done: nothing waits for the
//! next. A stream that ends within a message ends with an error, never looking complete.

mod feed;
mod job;
mod recode;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http::HeaderMap;
use http_body::Frame;
use tokio::sync::oneshot;
use tokio::time::Sleep;

use super::{BoxError, Budget, EndedBy, Ledger};
use crate::frame::grpc::{Cut, Cutter, Prefix};
use crate::head::grpc::Status;
use crate::policy::{MessageFault, Reason, Terms, Treatment};
use crate::telemetry::{Direction, Form, Kind, RouteMetrics};
use crate::work::{Errand, Pool};
pub use feed::Feed;
use job::Turned;
use recode::{Held, Then};

/// What the messages of a call are worked on with.
#[derive(Clone)]
pub struct Workshop {
    /// Where work is done that costs more than a hand-over.
    pub pool: Pool,
    /// What all calls and answers together may hold.
    pub budget: Budget,
    /// Bytes that may be coded on the network thread.
    pub inline: usize,
    /// `pool.max_wait`.
    pub max_wait: Duration,
    /// The route's.
    pub metrics: Arc<RouteMetrics>,
}

/// Which way the messages go.
pub enum Way {
    /// From the app.
    ToClient {
        /// The request's messages broke the protocol: the call ends.
        stop: Option<oneshot::Receiver<MessageFault>>,
        /// When the client's patience is over.
        deadline: Option<Pin<Box<Sleep>>>,
        /// A fault is told in trailers; else the stream is reset.
        trailers: bool,
    },
    /// From the client; its faults end the answer.
    ToApp {
        /// Tells the other direction.
        stop: Option<oneshot::Sender<MessageFault>>,
    },
}

/// The messages of one direction.
pub struct Messages {
    feed: Feed,
    way: Way,
    terms: Terms,
    shop: Workshop,
    cutter: Cutter,
    input: Bytes,
    state: State,
    ready: VecDeque<Bytes>,
}

enum State {
    /// The message goes on as it comes, or there is none.
    Passing,
    /// The message is gathered.
    Holding(Held),
    /// A worker has it.
    Away(Held, Errand<Turned>),
    /// The call ends so, once what is ready has left.
    Ending(End),
    Done,
}

enum End {
    /// As the peer ended it.
    Proper(Option<HeaderMap>),
    /// With a status of ours, because of what the peer sent.
    Fault(MessageFault),
    /// The same, because of what the other side sent.
    Stopped(MessageFault),
    /// The client's patience is over.
    Late,
}

/// A call that we ended where nothing could be said any more.
#[derive(Debug, thiserror::Error)]
#[error("the deadline of the call is over")]
pub(super) struct Late;

impl Messages {
    /// Relays what `feed` brings.
    #[must_use]
    pub fn new(feed: Feed, way: Way, terms: Terms, shop: Workshop) -> Self {
        Self {
            feed,
            way,
            terms,
            shop,
            cutter: Cutter::default(),
            input: Bytes::new(),
            state: State::Passing,
            ready: VecDeque::new(),
        }
    }

    /// The next frame. `ledger` is that of the exchange, where it travels with this direction.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        mut ledger: Option<&mut Ledger>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            match &mut self.state {
                State::Done => return Poll::Ready(None),
                State::Ending(_) => return Poll::Ready(self.end(ledger)),
                State::Passing | State::Holding(_) | State::Away(..) => {}
            }
            if let Some(end) = self.stopped(cx) {
                if !matches!(self.state, State::Passing) {
                    // Of what is held or away nothing has left.
                    self.cutter = Cutter::default();
                }
                self.state = State::Ending(end);
                continue;
            }
            if let State::Away(_, errand) = &mut self.state {
                let outcome = ready!(Pin::new(errand).poll(cx));
                if let State::Away(held, _) = std::mem::replace(&mut self.state, State::Passing) {
                    self.back(held, outcome, &mut ledger);
                }
            } else if self.input.is_empty() {
                match ready!(self.feed.poll_frame(cx)) {
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(bytes) => {
                            if let Some(ledger) = ledger.as_mut() {
                                ledger.plain(bytes.len());
                            }
                            self.input = bytes;
                        }
                        Err(frame) => self.ended(frame.into_trailers().ok()),
                    },
                    Some(Err(error)) => return self.broke(error),
                    None => self.ended(None),
                }
            } else {
                self.take(&mut ledger);
            }
        }
    }

    /// Nothing follows, for certain.
    #[must_use]
    pub fn is_end_stream(&self) -> bool {
        let over = match self.state {
            State::Done => true,
            State::Passing => {
                self.input.is_empty() && self.cutter.is_between() && self.feed.is_end_stream()
            }
            _ => false,
        };
        over && self.ready.is_empty()
    }

    /// The client's patience, and the other direction.
    fn stopped(&mut self, cx: &mut Context<'_>) -> Option<End> {
        let Way::ToClient { stop, deadline, .. } = &mut self.way else {
            return None;
        };
        if let Some(deadline) = deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            return Some(End::Late);
        }
        if let Some(receiver) = stop
            && let Poll::Ready(stopped) = Pin::new(receiver).poll(cx)
        {
            // The request ended well: nobody stops this any more.
            *stop = None;
            return stopped.ok().map(End::Stopped);
        }
        None
    }

    /// The peer ended its stream.
    fn ended(&mut self, trailers: Option<HeaderMap>) {
        self.state = State::Ending(if self.cutter.is_between() {
            End::Proper(trailers)
        } else {
            End::Fault(MessageFault::Cut)
        });
    }

    /// The peer's stream failed: so does ours, with its reason.
    fn broke(&mut self, error: BoxError) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.close();
        Poll::Ready(Some(Err(error)))
    }

    fn close(&mut self) {
        self.state = State::Done;
        self.feed = Feed::Over;
        self.input = Bytes::new();
    }

    /// The end of the stream, in the words of its protocol.
    fn end(&mut self, ledger: Option<&mut Ledger>) -> Option<Result<Frame<Bytes>, BoxError>> {
        let passing = self.cutter.is_inside();
        let State::Ending(end) = std::mem::replace(&mut self.state, State::Done) else {
            return None;
        };
        self.close();
        let (by, status, sentence, error): (_, _, _, BoxError) = match end {
            End::Proper(trailers) => return trailers.map(|fields| Ok(Frame::trailers(fields))),
            End::Fault(fault) => {
                let by = EndedBy::Upstream;
                (by, fault.status(), fault.sentence(), fault.into())
            }
            End::Stopped(fault) => {
                let by = EndedBy::Client;
                (by, fault.status(), fault.sentence(), fault.into())
            }
            End::Late => {
                let sentence = "the deadline of the call is over";
                let status = Status::DeadlineExceeded;
                (EndedBy::Proxy, status, sentence, Late.into())
            }
        };
        let cut = matches!(end, End::Fault(MessageFault::Cut));
        match &mut self.way {
            Way::ToApp { stop } => {
                if let End::Fault(fault) = end
                    && let Some(stop) = stop.take()
                {
                    // An answer that has ended needs no telling.
                    let _ = stop.send(fault);
                }
                Some(Err(error))
            }
            // Half a message is out, or was: trailers would make it look complete.
            Way::ToClient { trailers, .. } => {
                if let Some(ledger) = ledger {
                    ledger.broken(by, error.to_string());
                }
                // Half a message is out, or was: trailers would make it look complete.
                if !*trailers || passing || cut {
                    return Some(Err(error));
                }
                let mut fields = HeaderMap::new();
                status.write(sentence, &mut fields);
                Some(Ok(Frame::trailers(fields)))
            }
        }
    }

    /// Works through the input until it is used up, or a message is away.
    fn take(&mut self, ledger: &mut Option<&mut Ledger>) {
        // What goes on is left in one piece as far as that is possible.
        let mut passing = 0;
        let mut at = 0;
        while let Some((taken, cut)) = self.cutter.cut(&self.input[at..]) {
            let start = at;
            at += taken;
            match cut {
                // Its first bytes wait in the cutter.
                Cut::Part => {
                    self.pass(passing, start);
                    passing = at;
                }
                Cut::Prefix(prefix) => match self.terms.decide(prefix) {
                    Treatment::Pass(reason) => {
                        self.passes(prefix, reason, ledger);
                        if taken < prefix.encode().len() {
                            self.pass(passing, start);
                            self.ready
                                .push_back(Bytes::copy_from_slice(&prefix.encode()));
                            passing = at;
                        }
                    }
                    Treatment::End(fault) => {
                        self.pass(passing, start);
                        self.state = State::Ending(End::Fault(fault));
                        // Of this message nothing left: the stream may still end properly.
                        self.cutter = Cutter::default();
                        return;
                    }
                    Treatment::Compress(recipe) => {
                        self.pass(passing, start);
                        passing = at;
                        self.state = State::Holding(Held::new(prefix, Then::Compress(recipe)));
                    }
                    Treatment::Inflate(coding) => {
                        self.pass(passing, start);
                        passing = at;
                        self.count_app(ledger);
                        self.state = State::Holding(Held::new(prefix, Then::Inflate(coding)));
                        if prefix.length == 0 {
                            self.input.advance(at);
                            return self.held(ledger);
                        }
                    }
                },
                Cut::Payload { last } => {
                    if matches!(self.state, State::Holding(_)) {
                        self.hold(start, at);
                        passing = if matches!(self.state, State::Holding(_)) {
                            at
                        } else {
                            start
                        };
                        if last && matches!(self.state, State::Holding(_)) {
                            self.input.advance(at);
                            return self.held(ledger);
                        }
                        if matches!(self.state, State::Ending(_)) {
                            self.cutter = Cutter::default();
                            return;
                        }
                    }
                }
            }
        }
        self.pass(passing, at);
        self.input = Bytes::new();
    }

    /// These bytes of the input go on.
    fn pass(&mut self, from: usize, to: usize) {
        if from < to {
            self.ready.push_back(self.input.slice(from..to));
        }
    }

    /// These bytes of the input are kept; where there is no room for them, the message goes on
    /// plain from here, or the call ends.
    fn hold(&mut self, from: usize, to: usize) {
        let State::Holding(held) = &mut self.state else {
            return;
        };
        let (bytes, within) = self.shop.budget.hold(self.input.slice(from..to));
        if within {
            held.size += bytes.len();
            held.pieces.push(bytes);
            return;
        }
        self.state = match std::mem::replace(&mut self.state, State::Passing) {
            State::Holding(held) if matches!(held.then, Then::Compress(_)) => {
                self.ready
                    .push_back(Bytes::copy_from_slice(&held.prefix.encode()));
                self.ready.extend(held.pieces);
                self.shop.count(self.direction(), Form::Plain);
                State::Passing
            }
            _ => State::Ending(End::Fault(MessageFault::Full)),
        };
    }

    /// A message that was not held begins to pass.
    fn passes(&mut self, prefix: Prefix, reason: Reason, ledger: &mut Option<&mut Ledger>) {
        note(reason, ledger);
        let form = if prefix.is_compressed() {
            self.count_app(ledger);
            Form::Compressed
        } else {
            Form::Plain
        };
        self.shop.count(self.direction(), form);
    }

    /// The app compresses, although it need not.
    fn count_app(&self, ledger: &Option<&mut Ledger>) {
        if matches!(self.way, Way::ToClient { .. }) && self.shop.metrics.app_compresses(Kind::Grpc)
        {
            let path = ledger.as_ref().map_or("", |ledger| ledger.target.path());
            tracing::warn!(
                route = self.shop.metrics.name(),
                path,
                "the application compresses gRPC messages itself; switch that off there, and this \
                 proxy does it"
            );
        }
    }

    fn direction(&self) -> Direction {
        match self.way {
            Way::ToClient { .. } => Direction::ToClient,
            Way::ToApp { .. } => Direction::ToApp,
        }
    }
}

/// The reason of the exchange: that of its last message, unless one was compressed.
fn note(reason: Reason, ledger: &mut Option<&mut Ledger>) {
    if let Some(ledger) = ledger
        && ledger.reason != Reason::Compressed.word()
    {
        ledger.reason = reason.word();
    }
}

impl Workshop {
    fn count(&self, direction: Direction, form: Form) {
        self.metrics.grpc_message(direction, form);
    }
}
