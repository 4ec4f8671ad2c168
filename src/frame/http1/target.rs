//! Request targets and hosts (RFC 9112 section 3.2).

use http::Uri;
use http::uri::Authority;

use super::chars::{is_host, is_path, is_query};
use super::refusal::Refusal;

/// The longest that `http::Uri`, and hence hyper, takes.
const LONGEST_TARGET: usize = u16::MAX as usize - 1;

/// A target in the form that its method asks for.
pub(super) fn check_target(method: &[u8], target: &[u8]) -> Result<(), Refusal> {
    if target.len() > LONGEST_TARGET {
        return Err(Refusal::TargetTooLong);
    }
    let good = match target {
        _ if method == b"CONNECT" => is_authority(target),
        [b'/', ..] => is_origin(target),
        b"*" => method == b"OPTIONS",
        _ => is_absolute(target),
    };
    if good { Ok(()) } else { Err(Refusal::Target) }
}

fn is_origin(target: &[u8]) -> bool {
    let Some(end) = target.iter().position(|&byte| !is_path(byte)) else {
        return true;
    };
    target[end] == b'?' && target[end + 1..].iter().all(|&byte| is_query(byte))
}

/// `host:port`.
fn is_authority(target: &[u8]) -> bool {
    check_host(target).is_ok()
        && Authority::try_from(target).is_ok_and(|authority| authority.port_u16().is_some())
}

/// `http://host/...`, without user information and fragment, which parsers see differently.
fn is_absolute(target: &[u8]) -> bool {
    target.iter().all(|&byte| is_path(byte) || byte == b'?')
        && Uri::try_from(target).is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri
                    .authority()
                    .is_some_and(|it| check_host(it.as_str().as_bytes()).is_ok())
        })
}

/// A name or an address, and perhaps a port (RFC 3986 section 3.2.2).
pub(super) fn check_host(value: &[u8]) -> Result<(), Refusal> {
    let (host_is_good, rest) = match value {
        [b'[', inner @ ..] => {
            let end = inner
                .iter()
                .position(|&byte| byte == b']')
                .ok_or(Refusal::Host)?;
            let good = |&byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
            (end > 0 && inner[..end].iter().all(good), &inner[end + 1..])
        }
        _ => {
            let end = value
                .iter()
                .position(|&byte| !is_host(byte))
                .unwrap_or(value.len());
            (end > 0, &value[end..])
        }
    };
    let port_is_good = match rest {
        [] => true,
        [b':', port @ ..] => port.len() <= 5 && port.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if host_is_good && port_is_good {
        Ok(())
    } else {
        Err(Refusal::Host)
    }
}
