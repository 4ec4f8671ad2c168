//! gRPC and Connect streams: each message recoded by itself, in both directions.
//!
//! The head says which coding the compressed messages are in, before it is known whether there
//! will be any; so it is announced wherever the client takes it and the route compresses. A call
//! is never ended by silence, only by its deadline, its peers, or what breaks the protocol.

mod refusal;

use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, header};
use tokio::sync::oneshot;

use super::failure::{Failure, Kind};
use super::http::{FromApp, Tools};
use crate::body::{Body, Feed, Guarded, Ledger, Messages, Source, Way, Workshop};
use crate::config::settings::{Grpc, Policy, Requests, UpstreamProtocol};
use crate::head::grpc::{self, Announced, Codings, Dialect, Status};
use crate::policy::{Asked, Head, MessageFault, Reason, Terms};

pub use refusal::{Reset, refusal};

/// Our own timer never ends a call before the client's and the app's do.
const GRACE: Duration = Duration::from_millis(50);

/// What is remembered of a client's call until the app answers.
pub struct Call {
    dialect: Dialect,
    takes: Codings,
    timeout: Option<Duration>,
    stop: Option<oneshot::Receiver<MessageFault>>,
}

impl Call {
    /// Of the client's head; `None`: it is no call that is looked into.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let dialect = Dialect::of(headers)?;
        if matches!(dialect, Dialect::Web { .. }) {
            return None;
        }
        Some(Self {
            dialect,
            takes: Codings::of(headers, dialect.accept_encoding()),
            timeout: grpc::timeout(headers),
            stop: None,
        })
    }

    /// How long the client waits, at most.
    #[must_use]
    pub fn patience(&self) -> Option<Duration> {
        self.timeout.map(|timeout| timeout.saturating_add(GRACE))
    }

    /// The app needs to know that trailers are taken, or it answers nothing.
    #[must_use]
    pub fn wants_trailers(&self) -> bool {
        self.dialect == Dialect::Grpc
    }

    /// Turns the client's head and body into the app's.
    ///
    /// # Errors
    /// The app cannot be asked this, or not by this client.
    pub fn ask(
        &mut self,
        policy: &Grpc,
        protocol: UpstreamProtocol,
        shop: Workshop,
        head: &mut Parts,
        body: Body,
    ) -> Result<Body, Failure> {
        let refuse = |sentence| Err(Failure::client(Kind::Call(Status::Unimplemented, sentence)));
        if self.dialect == Dialect::Grpc {
            if head.version != Version::HTTP_2 {
                return refuse("gRPC is spoken over HTTP/2");
            }
            if protocol == UpstreamProtocol::Http1 {
                return refuse("the application speaks no HTTP/2");
            }
        }
        let headers = &mut head.headers;
        let announced = Announced::of(headers, self.dialect.encoding());
        let Some(terms) = Terms::to_app(policy, self.dialect, announced) else {
            if self.dialect == Dialect::Grpc {
                return refuse("the encoding of the request is unknown; see grpc-accept-encoding");
            }
            return Ok(body);
        };
        if policy.compress {
            headers.insert(self.dialect.accept_encoding(), grpc::IDENTITY);
        }
        if policy.requests == Requests::Decompress {
            headers.remove(self.dialect.encoding());
            headers.remove(header::CONTENT_LENGTH);
        }
        let Body::Request(request) = body else {
            return Ok(body);
        };
        let (told, stop) = oneshot::channel();
        self.stop = Some(stop);
        let way = Way::ToApp { stop: Some(told) };
        let messages = Messages::new(Feed::Client(request), way, terms, shop);
        Ok(Body::Messages(Box::new(messages)))
    }
}

/// Makes the client's answer of the app's.
///
/// # Errors
/// As of [`super::http::respond`].
pub async fn respond(
    tools: &Tools,
    policy: &Policy,
    (asked, call): (&Asked, Call),
    from: FromApp,
    mut ledger: Box<Ledger>,
) -> Result<Response<Body>, (Failure, Box<Ledger>)> {
    let speaks = Dialect::of(&from.head.headers) == Some(call.dialect);
    if !speaks || from.head.status != StatusCode::OK {
        // What stands before the app, or an app that does not speak it: HTTP, which clients map.
        return super::http::respond(tools, policy, asked, from, ledger).await;
    }
    let FromApp {
        mut head,
        incoming,
        lease,
        deadline,
        ..
    } = from;
    ledger.status = head.status;
    let app = Announced::of(&head.headers, call.dialect.encoding());
    let (terms, said) = Terms::to_client(&policy.grpc, call.takes, app);
    ledger.reason = match terms.compress {
        Some(_) => Reason::MinSize.word(),
        None => terms.plain.word(),
    };
    if incoming.is_end_stream() {
        // Trailers-only: all is in the head.
        let body = Guarded::new(Source::Empty, ledger, lease, deadline);
        return Ok(Response::from_parts(head, Body::Guarded(Box::new(body))));
    }
    announce(&mut head.headers, &policy.grpc, call.dialect, said);
    let way = Way::ToClient {
        stop: call.stop,
        deadline,
        trailers: call.dialect == Dialect::Grpc,
    };
    let shop = tools.workshop(&ledger.metrics);
    let messages = Messages::new(Feed::App(incoming), way, terms, shop);
    let source = Source::Messages(Box::new(messages));
    let body = Guarded::new(source, ledger, lease, None);
    Ok(Response::from_parts(head, Body::Guarded(Box::new(body))))
}

/// What the client is told of the codings, ours and its own.
fn announce(headers: &mut HeaderMap, policy: &Grpc, dialect: Dialect, said: Head) {
    match said {
        Head::Keep => {}
        Head::Announce(coding) => {
            let token = HeaderValue::from_static(coding.token());
            headers.insert(dialect.encoding(), token);
        }
        Head::Silent => {
            headers.remove(dialect.encoding());
        }
    }
    headers.remove(header::CONTENT_LENGTH);
    if policy.requests == Requests::Decompress {
        headers.insert(dialect.accept_encoding(), grpc::WE_TAKE);
    }
}
