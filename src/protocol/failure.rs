//! Who failed, and how: what an exchange can end in before its answer's head is sent.

use std::error::Error;

use http::StatusCode;

use crate::body::{BoxError, EndedBy, RequestFault};
use crate::codec::DecodeError;
use crate::frame::http1::refusal_in;
use crate::head::grpc::Status;
use crate::policy::MessageFault;
use crate::upstream::SendError;

/// An exchange that gets no answer of the app's.
#[derive(Debug)]
pub struct Failure {
    /// Who is to blame.
    pub side: Side,
    /// What went wrong.
    pub kind: Kind,
    /// What lies under it, for the log.
    pub source: Option<BoxError>,
}

/// Who failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The application or the way to it.
    Upstream,
    /// A limit or a fault of ours.
    Proxy,
}

/// What went wrong, as a client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 400.
    BadRequest(&'static str),
    /// 404.
    NoRoute,
    /// 405.
    MethodNotAllowed,
    /// 408.
    SlowBody,
    /// 413.
    TooLarge,
    /// 417.
    Expectation,
    /// 426: a version of WebSocket that nobody speaks.
    WebSocketVersion,
    /// 429: this address asks too often; after so many seconds it may again.
    TooManyRequests(u64),
    /// 431.
    HeadTooLarge,
    /// 499 in the log only: it is gone.
    Gone,
    /// 501: an extended CONNECT to a protocol that does not pass here (RFC 8441).
    UnknownProtocol,
    /// 502.
    BadGateway(&'static str),
    /// 503.
    Unavailable(&'static str),
    /// 504.
    GatewayTimeout(&'static str),
    /// 504: the exchange took longer than it may.
    Overdue,
    /// A call that ends so; the status that comes nearest in HTTP.
    Call(Status, &'static str),
}

impl Failure {
    /// The client's fault.
    #[must_use]
    pub fn client(kind: Kind) -> Self {
        Self {
            side: Side::Client,
            kind,
            source: None,
        }
    }

    /// A limit or fault of ours.
    #[must_use]
    pub fn proxy(kind: Kind) -> Self {
        Self {
            side: Side::Proxy,
            kind,
            source: None,
        }
    }

    /// The application's fault.
    #[must_use]
    pub fn app(kind: Kind) -> Self {
        Self {
            side: Side::Upstream,
            kind,
            source: None,
        }
    }

    /// The application's fault, and what lies under it.
    #[must_use]
    pub fn upstream(kind: Kind, source: BoxError) -> Self {
        Self {
            side: Side::Upstream,
            kind,
            source: Some(source),
        }
    }

    /// What the log says of it.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = self.kind.sentence().to_owned();
        let mut next = self
            .source
            .as_deref()
            .map(|error| error as &(dyn Error + 'static));
        while let Some(error) = next {
            text.push_str(": ");
            text.push_str(&error.to_string());
            next = error.source();
        }
        text
    }

    /// The same side as the record names it.
    #[must_use]
    pub fn ended_by(&self) -> EndedBy {
        match self.side {
            Side::Client => EndedBy::Client,
            Side::Upstream => EndedBy::Upstream,
            Side::Proxy => EndedBy::Proxy,
        }
    }
}

impl Kind {
    /// The status that fits.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::BadRequest(_) | Self::Gone => StatusCode::BAD_REQUEST,
            Self::NoRoute => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::WebSocketVersion => StatusCode::UPGRADE_REQUIRED,
            Self::TooManyRequests(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::UnknownProtocol => StatusCode::NOT_IMPLEMENTED,
            Self::BadGateway(_) => StatusCode::BAD_GATEWAY,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::GatewayTimeout(_) | Self::Overdue => StatusCode::GATEWAY_TIMEOUT,
            Self::Call(status, _) => in_http(status),
        }
    }

    /// One sentence for the client; it tells nothing of what stands behind the proxy.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::BadRequest(what) | Self::Unavailable(what) => what,
            Self::BadGateway(what) | Self::GatewayTimeout(what) => what,
            Self::Call(_, what) => what,
            Self::Overdue => "the exchange took too long",
            Self::NoRoute => "no route matches this host and path",
            Self::MethodNotAllowed => "this method is not served here",
            Self::SlowBody => "the request body came too slowly",
            Self::TooLarge => "the request body is too large",
            Self::Expectation => "no expectation but 100-continue is met here",
            Self::WebSocketVersion => "version 13 of WebSocket is spoken here",
            Self::TooManyRequests(_) => "too many requests from this address",
            Self::HeadTooLarge => "the request's header fields are too large",
            Self::UnknownProtocol => "this protocol does not pass here",
            Self::Gone => "the client left",
        }
    }
}

/// As Connect maps them.
fn in_http(status: Status) -> StatusCode {
    match status {
        Status::Cancelled => StatusCode::REQUEST_TIMEOUT,
        Status::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Status::PermissionDenied => StatusCode::FORBIDDEN,
        Status::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Status::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Status::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        Status::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Status::Unauthenticated => StatusCode::UNAUTHORIZED,
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        let kind = match &error {
            SendError::RequestBody(_) => return Self::of_request(error),
            SendError::NoServer => Kind::Unavailable("no server of the application is available"),
            SendError::Saturated => Kind::Unavailable("the application is busy"),
            SendError::ConnectTimeout { .. } => {
                Kind::GatewayTimeout("the application did not accept in time")
            }
            SendError::HeadTimeout => {
                Kind::GatewayTimeout("the application did not answer in time")
            }
            SendError::Connect { .. } => Kind::BadGateway("the application cannot be reached"),
            SendError::Closed(_) => {
                Kind::BadGateway("the application closed the connection without an answer")
            }
            SendError::Malformed(_) => {
                Kind::BadGateway("the application's answer is no valid HTTP")
            }
            SendError::Reset(_) => Kind::BadGateway("the application reset the exchange"),
        };
        let side = if matches!(error, SendError::Saturated) {
            Side::Proxy
        } else {
            Side::Upstream
        };
        Self {
            side,
            kind,
            source: Some(error.into()),
        }
    }
}

impl Failure {
    /// The request's body is what failed.
    fn of_request(error: SendError) -> Self {
        let SendError::RequestBody(source) = error else {
            return Self {
                side: Side::Upstream,
                kind: Kind::BadGateway("the exchange failed"),
                source: Some(error.into()),
            };
        };
        let kind = kind_of_fault(&*source);
        let side = if matches!(kind, Kind::Unavailable(_)) {
            Side::Proxy
        } else {
            Side::Client
        };
        Self {
            side,
            kind,
            source: Some(source),
        }
    }
}

/// Finds the fault of the request's body among an error and its causes.
fn kind_of_fault(error: &(dyn Error + 'static)) -> Kind {
    if refusal_in(error).is_some() {
        return Kind::BadRequest("the request body is malformed");
    }
    let mut next = Some(error);
    let mut kind = Kind::Gone;
    while let Some(error) = next {
        if let Some(fault) = error.downcast_ref::<MessageFault>() {
            return Kind::Call(fault.status(), fault.sentence());
        }
        if let Some(fault) = error.downcast_ref::<RequestFault>() {
            kind = match fault {
                RequestFault::TooLarge(_) | RequestFault::Decode(DecodeError::TooLarge) => {
                    Kind::TooLarge
                }
                RequestFault::Slow(_) => Kind::SlowBody,
                RequestFault::Decode(_) => Kind::BadRequest("the request body does not decompress"),
                RequestFault::Lost(_) => Kind::Unavailable("too busy to decompress the request"),
                RequestFault::Read(_) => Kind::Gone,
            };
        }
        next = error.source();
    }
    kind
}
