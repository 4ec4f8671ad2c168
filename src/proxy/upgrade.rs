//! Changes of protocol: HTTP/1.1 Upgrade, and extended CONNECT over HTTP/2 (RFC 8441).
//!
//! The app is asked first, always over HTTP/1.1, and nothing of the client's is passed on before
//! its 101. A token that the route does not list is ignored, as RFC 9110 section 7.8 allows.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::time::Duration;

use super::error;
use super::facts::Facts;
use super::outgoing::edit;
use super::route::Route;
use crate::body::{Body, Ledger};
use crate::config::settings::Policy;
use crate::head::hop::{self, Upgrade};
use crate::protocol::tunnel::Tunnel;
use crate::protocol::{Failure, Kind};

/// RFC 6455 section 1.3.
const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A change that the client wants and the route allows.
pub(super) struct Wanted {
    token: HeaderValue,
    /// Over HTTP/2: the client's stream, and the key that the app has to answer.
    stream: Option<(OnUpgrade, String)>,
}

/// A change that the app agreed to.
pub(super) struct Agreed {
    app: OnUpgrade,
    headers: HeaderMap,
    token: HeaderValue,
    stream: Option<OnUpgrade>,
    idle: Duration,
}

impl Wanted {
    /// What `head` asks for, if the route lets it pass.
    pub(super) fn of(head: &mut Parts, named: &Upgrade, policy: &Policy) -> Option<Self> {
        if head.version == Version::HTTP_11 {
            let token = HeaderValue::from_str(named.choose(&policy.upgrades)?).ok()?;
            return Some(Self {
                token,
                stream: None,
            });
        }
        let protocol = head.extensions.get::<hyper::ext::Protocol>()?;
        // Only WebSocket can be put to an HTTP/1.1 application (RFC 8441 section 5).
        if protocol.as_str() != "websocket"
            || !policy.upgrades.iter().any(|token| token == "websocket")
        {
            return None;
        }
        let on = head.extensions.remove::<OnUpgrade>()?;
        let key = BASE64_STANDARD.encode(fastrand::u128(..).to_be_bytes());
        Some(Self {
            token: HeaderValue::from_static("websocket"),
            stream: Some((on, key)),
        })
    }

    /// Puts it to the app.
    pub(super) fn ask(&self, head: &mut Parts) {
        head.headers
            .insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        head.headers.insert(header::UPGRADE, self.token.clone());
        if let Some((_, key)) = &self.stream {
            head.method = Method::GET;
            if let Ok(key) = HeaderValue::from_str(key) {
                head.headers.insert(header::SEC_WEBSOCKET_KEY, key);
            }
        }
    }

    /// What the app says to it: `None`, it declines and answers as usual.
    pub(super) fn judge(
        self,
        response: &mut Response<Incoming>,
        route: &Route,
    ) -> Result<Option<Agreed>, Failure> {
        let fault = |what| Err(Failure::app(Kind::BadGateway(what)));
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            // As an answer to CONNECT it would say that there is a tunnel.
            if self.stream.is_some() && response.status().is_success() {
                return fault("the application did not switch protocols");
            }
            return Ok(None);
        }
        let chosen = response
            .headers()
            .get(header::UPGRADE)
            .and_then(|value| value.to_str().ok());
        if !chosen.is_some_and(|chosen| {
            self.token
                .as_bytes()
                .eq_ignore_ascii_case(chosen.as_bytes())
        }) {
            return fault("the application switched to another protocol");
        }
        let accept = response
            .headers_mut()
            .get(header::SEC_WEBSOCKET_ACCEPT)
            .cloned();
        let stream = match self.stream {
            None => None,
            Some((on, key)) => {
                if accept.is_none_or(|accept| accept != accept_for(&key)) {
                    return fault("the application answered another handshake");
                }
                response.headers_mut().remove(header::SEC_WEBSOCKET_ACCEPT);
                Some(on)
            }
        };
        let app = hyper::upgrade::on(&mut *response);
        let mut headers = std::mem::take(response.headers_mut());
        hop::strip_response(&mut headers);
        edit(&mut headers, &route.policy.response_headers);
        let idle = route.policy.websocket.idle_timeout;
        Ok(Some(Agreed {
            app,
            headers,
            token: self.token,
            stream,
            idle,
        }))
    }
}

impl Agreed {
    /// Answers the client and lets the bytes through.
    pub(super) fn tunnel(self, facts: &Arc<Facts>, mut ledger: Box<Ledger>) -> Response<Body> {
        ledger.reason = "upgrade";
        let mut response = Response::new(Body::Empty);
        *response.headers_mut() = self.headers;
        if let Some(on) = self.stream {
            ledger.status = StatusCode::OK;
            let tunnel = Tunnel {
                app: self.app,
                ledger,
                idle: self.idle,
            };
            tokio::spawn(async move {
                match on.await {
                    Ok(client) => tunnel.run(TokioIo::new(client), bytes::Bytes::new()).await,
                    Err(error) => tracing::debug!(%error, "the client left before its tunnel"),
                }
            });
            return response;
        }
        ledger.status = StatusCode::SWITCHING_PROTOCOLS;
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, self.token);
        if !ledger.wire.as_ref().is_some_and(|wire| wire.tunnel()) {
            return error::response(
                &Failure::app(Kind::BadGateway(
                    "the application switched protocols unasked",
                )),
                ledger,
            );
        }
        *facts.tunnel.lock() = Some(Tunnel {
            app: self.app,
            ledger,
            idle: self.idle,
        });
        response
    }
}

/// What the app has to answer to `key` (RFC 6455 section 4.2.2).
fn accept_for(key: &str) -> String {
    let mut digest = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key.as_bytes());
    digest.update(WEBSOCKET_GUID);
    BASE64_STANDARD.encode(digest.finish())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_handshake_of_the_rfc_is_answered_as_in_the_rfc() {
        let accept = super::accept_for("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
