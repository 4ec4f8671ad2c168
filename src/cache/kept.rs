//! Which fields of a head are kept (RFC 9111 section 3.1), and how a validation changes them
//! (sections 3.2, 4.3.4 and 4.3.5).
//!
//! A head is kept in memory of its own: a field value is a slice of the buffer that it was read
//! into, which may be a hundred times as large.

use std::time::SystemTime;

use bytes::Bytes;
use http::header::{
    AGE, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, HeaderMap,
    HeaderName, HeaderValue, LAST_MODIFIED, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SET_COOKIE,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY,
};

use super::directives::ResponseDirectives;
use super::key::Selector;
use crate::head::{etag::EntityTag, list};

/// Never kept: they belong to a connection, to one client, or are made anew.
const UNKEPT: [HeaderName; 12] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    HeaderName::from_static("proxy-authentication-info"),
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    SET_COOKIE,
    AGE,
];

/// They describe the bytes that are kept, so what comes without bytes does not change them
/// (section 3.2): old bytes never get another coding.
const OF_THE_BYTES: [HeaderName; 8] = [
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    ETAG,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("digest"),
];

/// A head that came without bytes, and does not belong to those that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what was validated is not what is kept")]
pub struct Mismatch;

/// The fields to keep of an answer that came at that time, in one allocation of their own.
#[must_use]
pub fn head(response: &HeaderMap, answered: SystemTime) -> HeaderMap {
    // RFC 9110 section 6.6.1: what is cached without a Date gets one.
    let now = date(answered);
    let added = now.as_ref().filter(|_| !response.contains_key(DATE));
    let fields = fields_to_keep(response).chain(added.map(|now| (&DATE, now)));
    own(&fields.collect::<Vec<_>>())
}

fn fields_to_keep(response: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    let said = ResponseDirectives::read(response);
    response.iter().filter(move |(name, _)| {
        let listed = || said.unkept().any(|field| field == *name);
        !UNKEPT.contains(name) && !in_connection(response, name) && !listed()
    })
}

/// The kept head after a 304 (section 4.3.4): new fields replace old ones of their name, others stay.
///
/// # Errors
/// Where its validators are not those of the kept response, or it would be selected by other
/// request fields: then it is not updated, and the app has to be asked without conditions.
pub fn not_modified(
    kept: &HeaderMap,
    response: &HeaderMap,
    answered: SystemTime,
) -> Result<HeaderMap, Mismatch> {
    let same_selection = !response.contains_key(VARY) || Selector::same_fields(kept, response);
    if !(validates(kept, response) && same_selection) {
        return Err(Mismatch);
    }
    Ok(merged(kept, response, answered))
}

/// The kept head after a 200 to HEAD (section 4.3.5).
///
/// # Errors
/// Where validators or the length differ: the kept response is to be considered stale.
pub fn freshened(
    kept: &HeaderMap,
    response: &HeaderMap,
    answered: SystemTime,
) -> Result<HeaderMap, Mismatch> {
    let unless_differs = |name: HeaderName| {
        let new = response.get(&name);
        new.is_none() || new == kept.get(&name)
    };
    if ![ETAG, LAST_MODIFIED, CONTENT_LENGTH, CONTENT_ENCODING]
        .into_iter()
        .all(unless_differs)
    {
        return Err(Mismatch);
    }
    not_modified(kept, response, answered)
}

/// A strong tag has to be the same, a weak one to match weakly, and without tags the dates count.
fn validates(kept: &HeaderMap, response: &HeaderMap) -> bool {
    match (response.get(ETAG), kept.get(ETAG)) {
        (Some(new), Some(old)) => {
            let weak = |value: &HeaderValue| EntityTag::parse(value.as_bytes()).map(|tag| tag.weak);
            match (weak(new), weak(old)) {
                (Some(true), Some(_)) => opaque(new) == opaque(old),
                _ => new == old,
            }
        }
        (Some(_), None) => false,
        (None, _) => match (response.get(LAST_MODIFIED), kept.get(LAST_MODIFIED)) {
            (Some(new), Some(old)) => new == old,
            _ => true,
        },
    }
}

fn opaque(value: &HeaderValue) -> Option<&[u8]> {
    EntityTag::parse(value.as_bytes()).map(|tag| tag.opaque)
}

fn merged(kept: &HeaderMap, response: &HeaderMap, answered: SystemTime) -> HeaderMap {
    let new = head(response, answered);
    let replaced = |name: &HeaderName| new.contains_key(name) && !OF_THE_BYTES.contains(name);
    let old_fields = kept.iter().filter(|(name, _)| !replaced(name));
    let new_fields = new.iter().filter(|(name, _)| replaced(name));
    let merged = own(&old_fields.chain(new_fields).collect::<Vec<_>>());
    // The new directives may list fields that were kept until now.
    head(&merged, answered)
}

fn date(at: SystemTime) -> Option<HeaderValue> {
    // The formatter knows no years beyond 9999, nor before 1970.
    let year_10000 = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(253_402_300_800);
    let formattable = at >= SystemTime::UNIX_EPOCH && at < year_10000;
    formattable.then(|| HeaderValue::try_from(httpdate::fmt_http_date(at)).ok())?
}

fn in_connection(headers: &HeaderMap, name: &HeaderName) -> bool {
    list::tokens(headers, CONNECTION)
        .any(|token| token.eq_ignore_ascii_case(name.as_str().as_bytes()))
}

/// Copies the values into one buffer that they share.
fn own(fields: &[(&HeaderName, &HeaderValue)]) -> HeaderMap {
    let text: Vec<_> = fields.iter().map(|(_, value)| value.as_bytes()).collect();
    let mut text = Bytes::from(text.concat());
    let mut owned = HeaderMap::with_capacity(fields.len());
    for (name, value) in fields {
        let bytes = text.split_to(value.len());
        if let Ok(copy) = HeaderValue::from_maybe_shared(bytes) {
            owned.append(*name, copy);
        }
    }
    owned
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
