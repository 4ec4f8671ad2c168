//! What went wrong, said as calls say it: 200, and the status in a head that is all there is.

use http::{HeaderMap, HeaderValue, Response, header};

use crate::body::Body;
use crate::head::grpc::{self, Dialect, Status};
use crate::protocol::failure::{Failure, Kind};
use crate::upstream::SendError;

/// In a response's extensions: the stream is to be reset instead, as the app reset its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reset(pub h2::Reason);

/// The answer that says what went wrong. `None`: this dialect says it in HTTP.
#[must_use]
pub fn refusal(dialect: Dialect, failure: &Failure) -> Option<Response<Body>> {
    let content_type = match dialect {
        Dialect::Grpc => "application/grpc",
        Dialect::Web { text: false } => "application/grpc-web",
        Dialect::Web { text: true } => "application/grpc-web-text",
        Dialect::Connect => return None,
    };
    let mut response = Response::new(Body::Empty);
    if let Some(SendError::Reset(reason)) = send_error(failure)
        && dialect == Dialect::Grpc
    {
        // Some clients take NO_ERROR for a proper end.
        let reason = match *reason {
            h2::Reason::NO_ERROR => h2::Reason::INTERNAL_ERROR,
            reason => reason,
        };
        response.extensions_mut().insert(Reset(reason));
    }
    let headers = response.headers_mut();
    let content_type = HeaderValue::from_static(content_type);
    headers.insert(header::CONTENT_TYPE, content_type);
    status(failure.kind).write(failure.kind.sentence(), headers);
    said_of_codings(failure.kind, headers);
    Some(response)
}

fn send_error(failure: &Failure) -> Option<&SendError> {
    failure.source.as_deref()?.downcast_ref()
}

/// An encoding that nobody knows is answered with those that somebody does.
fn said_of_codings(kind: Kind, headers: &mut HeaderMap) {
    if matches!(kind, Kind::Call(Status::Unimplemented, _)) {
        headers.insert(grpc::ACCEPT_ENCODING, grpc::WE_TAKE);
    }
}

/// The status that clients would make of the one that HTTP has for it.
fn status(kind: Kind) -> Status {
    match kind {
        Kind::Call(status, _) => return status,
        Kind::Overdue => return Status::DeadlineExceeded,
        Kind::TooManyRequests(_) => return Status::ResourceExhausted,
        _ => {}
    }
    match kind.status().as_u16() {
        401 => Status::Unauthenticated,
        403 => Status::PermissionDenied,
        404 | 405 | 501 => Status::Unimplemented,
        413 | 431 => Status::ResourceExhausted,
        429 | 502..=504 => Status::Unavailable,
        499 => Status::Cancelled,
        _ => Status::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_http_would_say_becomes_what_clients_make_of_it() {
        for (kind, code) in [
            (Kind::NoRoute, 12),
            (Kind::MethodNotAllowed, 12),
            (Kind::BadGateway("x"), 14),
            (Kind::Unavailable("x"), 14),
            (Kind::GatewayTimeout("x"), 14),
            (Kind::Overdue, 4),
            (Kind::TooLarge, 8),
            (Kind::TooManyRequests(1), 8),
            (Kind::BadRequest("x"), 13),
            (Kind::Call(Status::ResourceExhausted, "x"), 8),
        ] {
            assert_eq!(status(kind).code(), code, "{kind:?}");
        }
    }

    #[test]
    fn a_refusal_is_a_head_in_the_clients_protocol() {
        let failure = Failure::client(Kind::NoRoute);
        let response = refusal(Dialect::Grpc, &failure).expect("gRPC's own");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/grpc");
        assert_eq!(response.headers()[grpc::STATUS], "12");
        assert!(response.headers().contains_key(grpc::MESSAGE));
        assert!(refusal(Dialect::Connect, &failure).is_none());
    }
}
