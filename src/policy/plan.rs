//! The plan for one answer, made from its head: pass or encode, and why.
//!
//! The gates stand in a fixed order; the first that is closed gives the reason:
//!
//! | gate | closed for | reason |
//! |---|---|---|
//! | 1 | a route that is off; an app that said so (`Thinwire-Compress: off`, or `Content-Encoding: identity` or `none`) | disabled |
//! | 2 | 101, and 2xx to CONNECT | upgrade |
//! | 3 | other 1xx, 204, 205, 304 | status |
//! | 4 | 206, or any Content-Range | range |
//! | 5 | CONNECT | method |
//! | 6 | any other Content-Encoding | already_coded |
//! | 7 | types not in `types`, in `except_types`, unsaid, or with a compression of their own (gRPC, Connect streams) | type |
//! | 8 | no-transform in the answer or the request, where it is honoured | no_transform |
//! | 9 | requests from other sites, where they are answered plain | cross_site |
//! | 10 | HTTP/1.0 and a body longer than what is coded whole | version |
//! | 11 | an empty body; one below `min_size`, unless the client refuses plain | min_size |
//! | 12 | a client that takes none of the codings, or likes plain better | not_accepted |
//!
//! Vary is added exactly where some Accept-Encoding would have opened the gates: not behind gates 1
//! to 10 nor for an empty body, but for each answer that comes to gates 11 and 12. That includes
//! small ones, since `identity;q=0` gets them coded. A 304 has the Vary of the 200 that it stands
//! for (RFC 9110 section 15.4.5), as far as its own head tells.
//!
//! What a cross-site request gets depends on Sec-Fetch-Site, Origin and Referer. They are not put
//! into Vary: the plain answer may go to anyone, and the coded one only reaches another site's
//! request through a cache, whose bytes that request had no part in.

use http::header::{CONTENT_RANGE, HeaderMap};
use http::{Method, StatusCode, Version};

use super::{Asked, Reason};
use crate::codec::Recipe;
use crate::config::settings::Compress;
use crate::head::media::MediaType;
use crate::head::{cache_control, transform};

/// All that a plan depends on.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Of the route.
    pub compress: &'a Compress,
    /// The request.
    pub asked: &'a Asked,
    /// Of the answer.
    pub status: StatusCode,
    /// The answer's head as the app sent it.
    pub head: &'a HeaderMap,
    /// Bytes of the plain body, where they are known: of a body that was read, else what
    /// Content-Length says (for HEAD too).
    pub length: Option<u64>,
}

/// What happens to the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// It goes out as it came.
    Pass(Reason),
    /// It is coded by this recipe. To HTTP/1.0 only with its length: else pass, [`Reason::Version`].
    Encode(Recipe),
}

/// A plan, and what the head has to admit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// What happens to the body.
    pub plan: Plan,
    /// Another Accept-Encoding could have got another answer: Vary says so.
    pub vary: bool,
}

/// Decides on an answer. HEAD gets the verdict of a GET whose body has not been seen.
///
/// Cheap and without effects: asked again once the body's length is known, it gives the final word.
#[must_use]
pub fn plan(question: &Question<'_>) -> Verdict {
    let closed = disabled(question)
        .or_else(|| by_status(question))
        .or_else(|| by_kind(question))
        .or_else(|| empty(question));
    match closed {
        Some(reason) => Verdict {
            plan: Plan::Pass(reason),
            vary: stands_for_a_variant(question),
        },
        None => Verdict {
            plan: negotiated(question),
            vary: true,
        },
    }
}

/// Gate 1.
fn disabled(question: &Question<'_>) -> Option<Reason> {
    let off = !question.compress.enabled || transform::app_opted_out(question.head);
    off.then_some(Reason::Disabled)
}

/// Gates 2 to 4.
fn by_status(question: &Question<'_>) -> Option<Reason> {
    let status = question.status;
    let tunnel = question.asked.method == Method::CONNECT && status.is_success();
    match status {
        StatusCode::SWITCHING_PROTOCOLS => Some(Reason::Upgrade),
        _ if tunnel => Some(Reason::Upgrade),
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED => {
            Some(Reason::Status)
        }
        _ if status.is_informational() => Some(Reason::Status),
        StatusCode::PARTIAL_CONTENT => Some(Reason::Range),
        _ => question
            .head
            .contains_key(CONTENT_RANGE)
            .then_some(Reason::Range),
    }
}

/// Gates 5 to 10.
fn by_kind(question: &Question<'_>) -> Option<Reason> {
    let Question {
        compress,
        asked,
        head,
        ..
    } = question;
    if asked.method == Method::CONNECT {
        return Some(Reason::Method);
    }
    if transform::is_coded(head) {
        return Some(Reason::AlreadyCoded);
    }
    if !is_compressed_type(compress, head) {
        return Some(Reason::Type);
    }
    let forbidden = compress.honor_no_transform && cache_control::no_transform(head);
    if asked.no_transform || forbidden {
        return Some(Reason::NoTransform);
    }
    if asked.cross_site {
        return Some(Reason::CrossSite);
    }
    let too_long = question
        .length
        .is_some_and(|length| length > compress.whole_bytes);
    (too_long && asked.version <= Version::HTTP_10).then_some(Reason::Version)
}

/// The part of gate 11 that nobody passes.
fn empty(question: &Question<'_>) -> Option<Reason> {
    (question.length == Some(0)).then_some(Reason::MinSize)
}

/// The rest of gate 11, and gate 12: where Accept-Encoding has its say.
fn negotiated(question: &Question<'_>) -> Plan {
    let compress = question.compress;
    let accepts = &question.asked.accepts;
    let small = question
        .length
        .is_some_and(|length| length < compress.min_size);
    if small && !accepts.refuses_identity() {
        return Plan::Pass(Reason::MinSize);
    }
    match accepts.choose(&compress.encodings) {
        Some(coding) => Plan::Encode(Recipe::new(coding, compress.levels.of(coding))),
        None => Plan::Pass(Reason::NotAccepted),
    }
}

/// A 304 to a request whose 200 would have been negotiated.
fn stands_for_a_variant(question: &Question<'_>) -> bool {
    question.status == StatusCode::NOT_MODIFIED
        && disabled(question).is_none()
        && by_kind(question).is_none()
}

fn is_compressed_type(compress: &Compress, head: &HeaderMap) -> bool {
    let Some(media) = MediaType::of(head) else {
        return false;
    };
    !media.is_never_coded()
        && compress.types.iter().any(|pattern| pattern.covers(media))
        && !compress
            .except_types
            .iter()
            .any(|pattern| pattern.covers(media))
}

#[cfg(test)]
mod case;
#[cfg(test)]
mod tests;
