//! The opening handshake, towards both sides (RFC 6455 section 4, RFC 8441 section 5).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::head::list;

/// RFC 6455 section 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The only version there is.
const VERSION: &str = "13";

/// A handshake between its two halves: the client has asked, the app has not answered.
#[derive(Debug)]
pub struct Handshake {
    /// Over HTTP/1.1: the client's proof that it was understood.
    accept: Option<HeaderValue>,
    /// What the app is asked with.
    key: String,
    /// The client's Sec-WebSocket-Extensions.
    offers: Vec<HeaderValue>,
    /// The client's Sec-WebSocket-Protocol.
    protocols: Vec<HeaderValue>,
}

/// Why a handshake ends before the app hears of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// 400.
    Malformed(&'static str),
    /// 426, with the version that is spoken here.
    Version,
}

impl Handshake {
    /// Takes a client's half out of its request's head, and puts ours into it. `connect`: it came as
    /// an extended CONNECT, which has no key.
    ///
    /// # Errors
    /// The client is to be refused.
    pub fn begin(headers: &mut HeaderMap, connect: bool) -> Result<Self, Refusal> {
        let mut versions = headers.get_all(header::SEC_WEBSOCKET_VERSION).iter();
        let version = versions
            .next()
            .map(|version| version.as_bytes().trim_ascii());
        if versions.next().is_some() || version != Some(VERSION.as_bytes()) {
            return Err(Refusal::Version);
        }
        let accept = if connect {
            None
        } else {
            Some(accept_of(headers)?)
        };
        let fresh: [u8; 16] = aws_lc_rs::rand::generate(&aws_lc_rs::rand::SystemRandom::new())
            .map_or_else(
                |_| fastrand::u128(..).to_be_bytes(),
                aws_lc_rs::rand::Random::expose,
            );
        let key = BASE64_STANDARD.encode(fresh);
        let taken = |name| headers.get_all(name).iter().cloned().collect();
        let (offers, protocols) = (
            taken(header::SEC_WEBSOCKET_EXTENSIONS),
            taken(header::SEC_WEBSOCKET_PROTOCOL),
        );
        headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
        headers.remove(header::SEC_WEBSOCKET_ACCEPT);
        if let Ok(key) = HeaderValue::from_str(&key) {
            headers.insert(header::SEC_WEBSOCKET_KEY, key);
        }
        Ok(Self {
            accept,
            key,
            offers,
            protocols,
        })
    }

    /// Judges the app's 101, and makes its head the client's but for the extension.
    ///
    /// # Errors
    /// What the app did wrong.
    pub fn finish(&self, headers: &mut HeaderMap) -> Result<(), &'static str> {
        let mut accepts = headers.get_all(header::SEC_WEBSOCKET_ACCEPT).iter();
        let accept = accepts.next();
        if accepts.next().is_some()
            || accept.is_none_or(|accept| accept.as_bytes() != accept_for(&self.key).as_bytes())
        {
            return Err("the application answered another handshake");
        }
        if headers.contains_key(header::SEC_WEBSOCKET_EXTENSIONS) {
            return Err("the application agreed to an extension that nobody offered");
        }
        self.check_protocol(headers)?;
        headers.remove(header::SEC_WEBSOCKET_ACCEPT);
        if let Some(accept) = &self.accept {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept.clone());
        }
        Ok(())
    }

    /// The lines of the client's offers.
    pub fn offers(&self) -> impl Iterator<Item = &[u8]> {
        self.offers.iter().map(HeaderValue::as_bytes)
    }

    /// The app chooses one of those that the client listed, or none.
    fn check_protocol(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let mut chosen = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
        let Some(one) = chosen.next() else {
            return Ok(());
        };
        let listed = self.protocols.iter().any(|line| {
            list::split(line.as_bytes()).any(|listed| listed == one.as_bytes().trim_ascii())
        });
        if listed && chosen.next().is_none() {
            Ok(())
        } else {
            Err("the application chose a subprotocol that the client does not know")
        }
    }
}

impl Refusal {
    /// What the client is answered.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Version => StatusCode::UPGRADE_REQUIRED,
        }
    }
}

/// What the client wants to hear.
fn accept_of(headers: &HeaderMap) -> Result<HeaderValue, Refusal> {
    const FAULT: Refusal = Refusal::Malformed("Sec-WebSocket-Key is not 16 bytes in base64");
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
    let key = keys
        .next()
        .ok_or(FAULT)?
        .to_str()
        .map_err(|_| FAULT)?
        .trim();
    let decoded = BASE64_STANDARD.decode(key).map_err(|_| FAULT)?;
    if decoded.len() != 16 || keys.next().is_some() {
        return Err(FAULT);
    }
    HeaderValue::from_str(&accept_for(key)).map_err(|_| FAULT)
}

/// What has to be answered to `key` (RFC 6455 section 4.2.2).
pub(crate) fn accept_for(key: &str) -> String {
    let mut digest = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key.as_bytes());
    digest.update(GUID);
    BASE64_STANDARD.encode(digest.finish())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const KEY: (&str, &str) = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    const VERSION: (&str, &str) = ("sec-websocket-version", "13");

    fn head(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn the_handshake_of_the_rfc_is_answered_as_in_the_rfc() {
        assert_eq!(accept_for(KEY.1), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn the_app_gets_a_key_of_ours_and_no_extension() {
        let offer = ("sec-websocket-extensions", "permessage-deflate");
        let mut asked = head(&[KEY, VERSION, offer, ("sec-websocket-protocol", "a, b")]);
        let handshake = Handshake::begin(&mut asked, false).unwrap();
        assert!(!asked.contains_key("sec-websocket-extensions"));
        assert_ne!(asked["sec-websocket-key"], KEY.1);
        assert_eq!(asked["sec-websocket-protocol"], "a, b");
        let offers: Vec<&[u8]> = handshake.offers().collect();
        assert_eq!(offers, [&b"permessage-deflate"[..]]);
        let theirs = accept_for(asked["sec-websocket-key"].to_str().unwrap());
        let mut answer = head(&[("sec-websocket-accept", &theirs), ("set-cookie", "a=b")]);
        handshake.finish(&mut answer).unwrap();
        assert_eq!(
            answer["sec-websocket-accept"],
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
        assert_eq!(answer["set-cookie"], "a=b");
    }

    #[test]
    fn a_client_without_version_13_or_a_key_is_refused() {
        for (fields, status) in [
            (&[KEY][..], 426),
            (&[KEY, ("sec-websocket-version", "8")], 426),
            (&[KEY, VERSION, VERSION], 426),
            (&[VERSION], 400),
            (&[VERSION, KEY, KEY], 400),
            (&[VERSION, ("sec-websocket-key", "c2hvcnQ=")], 400),
            (
                &[VERSION, ("sec-websocket-key", "not base64 at all!!!")],
                400,
            ),
        ] {
            let refusal = Handshake::begin(&mut head(fields), false).unwrap_err();
            assert_eq!(refusal.status(), status, "{fields:?}");
        }
        assert!(Handshake::begin(&mut head(&[VERSION]), true).is_ok());
    }

    #[test]
    fn an_app_that_answers_something_else_is_not_believed() {
        let mut asked = head(&[KEY, VERSION, ("sec-websocket-protocol", "chat, v2")]);
        let handshake = Handshake::begin(&mut asked, false).unwrap();
        let theirs = accept_for(asked["sec-websocket-key"].to_str().unwrap());
        let accept = ("sec-websocket-accept", theirs.as_str());
        for bad in [
            &[][..],
            &[("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")],
            &[accept, accept],
            &[accept, ("sec-websocket-extensions", "permessage-deflate")],
            &[accept, ("sec-websocket-protocol", "v1")],
            &[accept, ("sec-websocket-protocol", "Chat")],
            &[
                accept,
                ("sec-websocket-protocol", "chat"),
                ("sec-websocket-protocol", "v2"),
            ],
        ] {
            assert!(handshake.finish(&mut head(bad)).is_err(), "{bad:?}");
        }
        let good = [accept, ("sec-websocket-protocol", "v2")];
        assert_eq!(handshake.finish(&mut head(&good)), Ok(()));
    }
}
