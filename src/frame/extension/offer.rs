//! One member of Sec-WebSocket-Extensions (RFC 6455 section 9.1):
//! `token *( ";" token [ "=" ( token / quoted-string ) ] )`.

use super::{MOST_BITS, NAME};

pub(super) const SERVER_FORGETS: &str = "server_no_context_takeover";
pub(super) const CLIENT_FORGETS: &str = "client_no_context_takeover";
pub(super) const SERVER_BITS: &str = "server_max_window_bits";
pub(super) const CLIENT_BITS: &str = "client_max_window_bits";

/// A valid offer of permessage-deflate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Offer {
    /// We shall have no history.
    pub(super) server_forgets: bool,
    /// The client will have none.
    pub(super) client_forgets: bool,
    /// Our window is to be at most this.
    pub(super) server_bits: Option<u8>,
    /// The client lets us choose its window, up to this.
    pub(super) client_bits: Option<u8>,
}

impl Offer {
    /// Names are case-sensitive, as for all servers in use. `None`: another extension, or an offer
    /// to decline (RFC 7692 section 7.1): unknown or repeated parameters, values where none may be,
    /// none where one must be, or one that is not 8 to 15 in plain digits.
    pub(super) fn parse(member: &[u8]) -> Option<Self> {
        let mut parts = Parts(Some(member));
        if parts.next()?.trim_ascii() != NAME.as_bytes() {
            return None;
        }
        let mut offer = Self::default();
        for part in parts {
            offer.add(part)?;
        }
        Some(offer)
    }

    fn add(&mut self, part: &[u8]) -> Option<()> {
        let (name, value) = match part.iter().position(|&byte| byte == b'=') {
            Some(at) => (&part[..at], Some(part[at + 1..].trim_ascii())),
            None => (part, None),
        };
        match (std::str::from_utf8(name.trim_ascii()).ok()?, value) {
            (SERVER_FORGETS, None) => once(&mut self.server_forgets),
            (CLIENT_FORGETS, None) => once(&mut self.client_forgets),
            (SERVER_BITS, Some(value)) => set(&mut self.server_bits, bits(value)?),
            (CLIENT_BITS, Some(value)) => set(&mut self.client_bits, bits(value)?),
            // "Any window that you like."
            (CLIENT_BITS, None) => set(&mut self.client_bits, MOST_BITS),
            _ => None,
        }
    }
}

fn once(flag: &mut bool) -> Option<()> {
    (!std::mem::replace(flag, true)).then_some(())
}

fn set(slot: &mut Option<u8>, bits: u8) -> Option<()> {
    slot.replace(bits).is_none().then_some(())
}

/// A token, or a quoted string that holds one: 8 to 15, without leading zero.
fn bits(value: &[u8]) -> Option<u8> {
    let mut digits = Vec::with_capacity(2);
    if let Some(quoted) = value.strip_prefix(b"\"") {
        let mut inner = quoted.strip_suffix(b"\"")?.iter();
        while let Some(&byte) = inner.next() {
            digits.push(if byte == b'\\' { *inner.next()? } else { byte });
        }
    } else {
        digits.extend_from_slice(value);
    }
    match digits[..] {
        [byte @ b'8'..=b'9'] => Some(byte - b'0'),
        [b'1', byte @ b'0'..=b'5'] => Some(10 + byte - b'0'),
        _ => None,
    }
}

/// The pieces between semicolons outside quotes.
struct Parts<'a>(Option<&'a [u8]>);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0?;
        let (mut quoted, mut escaped) = (false, false);
        let end = rest.iter().position(|&byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ => {}
            }
            byte == b';' && !quoted
        });
        let end = end.unwrap_or(rest.len());
        self.0 = rest.get(end + 1..);
        Some(&rest[..end])
    }
}
