//! Changes of protocol: HTTP/1.1 Upgrade, and extended CONNECT over HTTP/2 (RFC 8441).
//!
//! The app is asked first, always over HTTP/1.1, and nothing of the client's is passed on before
//! its 101. A token that the route does not list is ignored, as RFC 9110 section 7.8 allows.
//! WebSocket is terminated here, with a handshake of its own on either side; others are tunnelled.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::error;
use super::facts::Facts;
use super::outgoing::edit;
use super::route::Route;
use super::snapshot::Shared;
use crate::body::{Body, Ledger};
use crate::config::settings::Policy;
use crate::head::hop::{self, Upgrade};
use crate::protocol::tunnel::Tunnel;
use crate::protocol::websocket::{Contract, Deflate, Handshake, Opening, Refusal};
use crate::protocol::{Failure, Kind, Switched};

/// A change that the client wants and the route allows.
pub(super) struct Wanted {
    token: HeaderValue,
    /// Absent: to be tunnelled.
    handshake: Option<Handshake>,
    /// Over HTTP/2: the client's stream.
    stream: Option<OnUpgrade>,
}

/// A change that the app agreed to.
pub(super) struct Agreed {
    app: OnUpgrade,
    headers: HeaderMap,
    wanted: Wanted,
    route: Arc<Route>,
}

impl Wanted {
    /// What `head` asks for, if the route lets it pass; what belongs to the client's connection
    /// only is taken out.
    pub(super) fn of(
        head: &mut Parts,
        named: &Upgrade,
        policy: &Policy,
    ) -> Result<Option<Self>, Failure> {
        if head.version == Version::HTTP_11 {
            let chosen = named.choose(&policy.upgrades);
            let Some(token) = chosen.and_then(|token| HeaderValue::from_str(token).ok()) else {
                return Ok(None);
            };
            let is_websocket = token.as_bytes().eq_ignore_ascii_case(b"websocket");
            if is_websocket && head.method != Method::GET {
                return Ok(None);
            }
            let handshake = is_websocket.then(|| begin(&mut head.headers, false));
            return Ok(Some(Self {
                token,
                handshake: handshake.transpose()?,
                stream: None,
            }));
        }
        // Only WebSocket can be put to an HTTP/1.1 application (RFC 8441 section 5).
        let protocol = head.extensions.get::<hyper::ext::Protocol>();
        let known = protocol.is_some_and(|protocol| protocol.as_str() == "websocket")
            && policy.upgrades.iter().any(|token| token == "websocket");
        let stream = known.then(|| head.extensions.remove::<OnUpgrade>());
        let Some(stream) = stream.flatten() else {
            return Ok(None);
        };
        Ok(Some(Self {
            token: HeaderValue::from_static("websocket"),
            handshake: Some(begin(&mut head.headers, true)?),
            stream: Some(stream),
        }))
    }

    /// Puts it to the app.
    pub(super) fn ask(&self, head: &mut Parts) {
        head.method = Method::GET;
        head.headers
            .insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        head.headers.insert(header::UPGRADE, self.token.clone());
    }

    /// What the app says to it: `None`, it declines and answers as usual.
    pub(super) fn judge(
        self,
        response: &mut Response<Incoming>,
        route: &Arc<Route>,
    ) -> Result<Option<Agreed>, Failure> {
        let fault = |what| Err(Failure::app(Kind::BadGateway(what)));
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            // As an answer to CONNECT it would say that there is a tunnel.
            if self.stream.is_some() && response.status().is_success() {
                return fault("the application did not switch protocols");
            }
            return Ok(None);
        }
        let chosen = response.headers().get(header::UPGRADE);
        if !chosen.is_some_and(|chosen| {
            chosen
                .as_bytes()
                .eq_ignore_ascii_case(self.token.as_bytes())
        }) {
            return fault("the application switched to another protocol");
        }
        if let Some(handshake) = &self.handshake
            && let Err(what) = handshake.finish(response.headers_mut())
        {
            return fault(what);
        }
        let app = hyper::upgrade::on(&mut *response);
        let mut headers = std::mem::take(response.headers_mut());
        hop::strip_response(&mut headers);
        hop::via(&mut headers, response.version());
        edit(&mut headers, &route.policy.response_headers);
        Ok(Some(Agreed {
            app,
            headers,
            wanted: self,
            route: Arc::clone(route),
        }))
    }
}

impl Agreed {
    /// Answers the client; what follows on the connection is the other protocol's.
    pub(super) fn switch(
        mut self,
        shared: &Shared,
        facts: &Arc<Facts>,
        mut ledger: Box<Ledger>,
    ) -> Response<Body> {
        ledger.reason = "upgrade";
        let over_http1 = self.wanted.stream.is_none();
        if over_http1 && !ledger.wire.as_ref().is_some_and(|wire| wire.tunnel()) {
            let what = "the application switched protocols unasked";
            return error::response(&Failure::app(Kind::BadGateway(what)), ledger);
        }
        let mut response = Response::new(Body::Empty);
        if over_http1 {
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        }
        ledger.status = response.status();
        let stream = self.wanted.stream.take();
        let token = self.wanted.token.clone();
        let (mut headers, switched) = self.switched(shared, ledger);
        if let Some(stream) = stream {
            tokio::spawn(async move {
                match stream.await {
                    Ok(client) => switched.run(TokioIo::new(client), Bytes::new()).await,
                    Err(error) => tracing::debug!(%error, "the client left before its tunnel"),
                }
            });
        } else {
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::UPGRADE, token);
            *facts.switched.lock() = Some(switched);
        }
        *response.headers_mut() = headers;
        response
    }

    /// The answer's head, and what the connection becomes.
    fn switched(self, shared: &Shared, ledger: Box<Ledger>) -> (HeaderMap, Switched) {
        let Self {
            app,
            mut headers,
            wanted,
            route,
        } = self;
        let policy = &route.policy.websocket;
        let Some(handshake) = wanted.handshake else {
            let idle = policy.idle_timeout;
            return (headers, Switched::Tunnel(Tunnel { app, ledger, idle }));
        };
        let house = Arc::clone(&shared.tools.websockets);
        let deflate = Deflate::agree(handshake.offers(), policy, &house.budget);
        if let Some(deflate) = &deflate {
            headers.insert(header::SEC_WEBSOCKET_EXTENSIONS, deflate.answer.clone());
        }
        let contract = Contract {
            ledger,
            policy: policy.clone(),
            deflate,
            send: send_patience(shared),
            house,
        };
        let opening = Opening { app, contract };
        (headers, Switched::WebSocket(Box::new(opening)))
    }
}

fn begin(headers: &mut HeaderMap, connect: bool) -> Result<Handshake, Failure> {
    Handshake::begin(headers, connect).map_err(|refusal| {
        Failure::client(match refusal {
            Refusal::Malformed(what) => Kind::BadRequest(what),
            Refusal::Version => Kind::WebSocketVersion,
        })
    })
}

fn send_patience(shared: &Shared) -> Duration {
    shared.snapshot.load().settings.network.send
}
