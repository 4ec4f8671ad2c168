//! permessage-deflate (RFC 7692 section 7.1): offers read, the first acceptable one answered.
//!
//! An offer that cannot be taken is passed over, never a fault of the handshake. Nothing stands in
//! the answer that RFC 7692 does not allow after that very offer, and what we do obeys it.

mod offer;

use std::fmt::Write as _;

use http::HeaderValue;

use crate::head::list;
use offer::Offer;

/// The extension's name.
pub const NAME: &str = "permessage-deflate";

/// The largest window, and the one that is meant where none is said.
const MOST_BITS: u8 = 15;

/// What we would agree to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The largest window, both ways: 9..=15.
    pub bits: u8,
    /// History across messages, both ways.
    pub takeover: bool,
}

/// What holds on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// Our window is at most 2^this: 8..=15.
    pub server_bits: u8,
    /// The client's is.
    pub client_bits: u8,
    /// Our messages may refer to earlier ones.
    pub server_takeover: bool,
    /// The client's may.
    pub client_takeover: bool,
}

/// An offer that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// What holds from now on.
    pub agreed: Agreed,
    /// The value of Sec-WebSocket-Extensions in the answer.
    pub answer: HeaderValue,
}

/// Takes the first acceptable offer in the lines of Sec-WebSocket-Extensions; `None`: there is none,
/// and the answer goes without the field.
///
/// A client that does not let us bound its window (Firefox and Safari do not) is told to forget its
/// history after each message: else each of its connections could make us keep 32 KiB.
pub fn agree<'a>(lines: impl IntoIterator<Item = &'a [u8]>, terms: Terms) -> Option<Agreement> {
    lines
        .into_iter()
        .flat_map(list::quoted)
        .find_map(Offer::parse)
        .map(|offer| taken(offer, terms))
}

fn taken(offer: Offer, terms: Terms) -> Agreement {
    let (bits, most) = (terms.bits.clamp(9, MOST_BITS), MOST_BITS);
    let agreed = Agreed {
        server_bits: offer.server_bits.unwrap_or(most).min(bits),
        client_bits: offer.client_bits.map_or(most, |offered| offered.min(bits)),
        server_takeover: terms.takeover && !offer.server_forgets,
        client_takeover: terms.takeover && !offer.client_forgets && offer.client_bits.is_some(),
    };
    Agreement {
        agreed,
        answer: answer(offer, agreed),
    }
}

fn answer(offer: Offer, agreed: Agreed) -> HeaderValue {
    let mut text = NAME.to_owned();
    for (said, name) in [
        (!agreed.server_takeover, offer::SERVER_FORGETS),
        (!agreed.client_takeover, offer::CLIENT_FORGETS),
    ] {
        if said {
            text.push_str("; ");
            text.push_str(name);
        }
    }
    // A smaller window may be told unasked (section 7.1.2.1): the client's inflater can be smaller.
    let told = offer.server_bits.is_some() || agreed.server_bits < MOST_BITS;
    // This one may not (section 7.1.2.2).
    let bound = offer.client_bits.is_some();
    for (said, name, bits) in [
        (told, offer::SERVER_BITS, agreed.server_bits),
        (bound, offer::CLIENT_BITS, agreed.client_bits),
    ] {
        if said {
            let _ = write!(text, "; {name}={bits}");
        }
    }
    HeaderValue::from_maybe_shared(text).unwrap_or(HeaderValue::from_static(NAME))
}

#[cfg(test)]
mod tests;
