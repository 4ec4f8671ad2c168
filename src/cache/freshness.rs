//! May it be stored (RFC 9111 section 3), for how long is it fresh (4.2), may it be used (4)?
//!
//! Judged once, when a response is stored; what a request needs then is a comparison of two times.
//! The `http-cache-semantics` crate was looked at and not taken: it splits Cache-Control inside
//! quoted strings, knows directives in lower case only, merges 304s by first lines, drops fields
//! that a 304 brings anew, has no CDN-Cache-Control, and clones the head for each question.

use std::time::{Duration, SystemTime};

use http::header::{
    AGE, AUTHORIZATION, COOKIE, DATE, ETAG, EXPIRES, HeaderMap, LAST_MODIFIED, SET_COOKIE,
};
use http::{HeaderName, Method, StatusCode};

use super::directives::{Delta, Extent, RequestDirectives, ResponseDirectives};
use crate::config::settings::Cache;

/// A request and its answer, as far as storing depends on them.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// Of the request that the app got.
    pub method: &'a Method,
    /// The head of that request.
    pub request: &'a HeaderMap,
    /// Of the answer.
    pub status: StatusCode,
    /// The head of the answer.
    pub response: &'a HeaderMap,
    /// When the request was sent.
    pub asked: SystemTime,
    /// When the head of the answer came.
    pub answered: SystemTime,
}

/// Why an answer is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unstorable {
    /// Only answers to GET are kept.
    #[error("method")]
    Method,
    /// Interim, partial, or about a range or a validation.
    #[error("status")]
    Status,
    /// Section 5.2.2.3: must-understand, and the status is none that is understood.
    #[error("must-understand")]
    MustUnderstand,
    /// Sections 5.2.1.5 and 5.2.2.5, in the request or the answer.
    #[error("no-store")]
    NoStore,
    /// Section 5.2.2.7.
    #[error("private")]
    Private,
    /// Section 3.5.
    #[error("authorization")]
    Authorization,
    /// It was made for one user (section 7.3).
    #[error("set-cookie")]
    SetCookie,
    /// Section 3: nothing says that it may be kept.
    #[error("not cacheable")]
    Silent,
    /// It would be stale from the start, with nothing to validate it by.
    #[error("stale")]
    Useless,
    /// Section 4.1: `*`, or more than a key holds.
    #[error("vary")]
    Vary,
    /// Longer than `cache.max_object`.
    #[error("size")]
    Size,
    /// It could not be purged by its tags: they are too many or too long.
    #[error("tags")]
    Tags,
    /// Only the end of its connection says where it ends: it may be cut off (section 3.3).
    #[error("framing")]
    Framing,
    /// It is a stream of events, which has no end to wait for.
    #[error("stream")]
    Stream,
}

/// How a stored response may be used, as times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// When its age was 0 (section 4.2.3).
    pub born: SystemTime,
    /// Section 4.2.1.
    pub lifetime: Duration,
    /// `no-cache`: asked about each time (section 5.2.2.4).
    pub validate: bool,
    /// `max-stale` of a request does not count (section 4.2.4).
    pub strict: bool,
    /// RFC 5861 section 3, counted from the end of the lifetime.
    pub while_revalidate: Duration,
    /// RFC 5861 section 4, counted from the end of the lifetime.
    pub if_error: Duration,
    /// Requests with Authorization may have it (section 3.5).
    pub authorized: bool,
}

/// What a stored response is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// Sent as it is.
    Fresh,
    /// Sent although stale: the client takes it so (`max-stale`).
    Stale,
    /// Sent although stale, while the app is asked about it (RFC 5861 section 3).
    StaleWhileRevalidate,
    /// The app is asked before it is used.
    Validate,
}

/// Whether and how the answer may be stored.
///
/// The Vary part of the decision is [`super::key::Selector`]'s.
///
/// # Errors
/// The first reason against it.
pub fn judge(exchange: Exchange<'_>, policy: &Cache) -> Result<Freshness, Unstorable> {
    let said = ResponseDirectives::read(exchange.response);
    storable(exchange, &said)?;
    let date = date(exchange.response, DATE).unwrap_or(exchange.answered);
    let (lifetime, strict) = lifetime(exchange, &said, date, policy);
    let validate = said.no_cache == Extent::Response;
    let forbidden = said.forbids_stale();
    // Nobody said that it may be shared, and the request says who asked: cache deception lives on
    // paths like `/account.css` that an operator's rule takes for a style sheet.
    let personal = !said.is_explicit(exchange.response) && exchange.request.contains_key(COOKIE);
    let lifetime = if personal { Duration::ZERO } else { lifetime };
    // RFC 5861's directives beside s-maxage are what the app says about this very staleness; the
    // operator's defaults are not.
    let allowance = |delta: Delta, default: Duration| match delta {
        _ if forbidden => Duration::ZERO,
        Delta::Seconds(seconds) => Duration::from_secs(seconds.into()),
        Delta::Unreadable => Duration::ZERO,
        Delta::Absent if strict || personal => Duration::ZERO,
        Delta::Absent => default,
    };
    let freshness = Freshness {
        born: born(exchange, date),
        lifetime,
        validate,
        strict: strict || forbidden,
        while_revalidate: allowance(said.stale_while_revalidate, policy.stale_while_revalidate),
        if_error: allowance(said.stale_if_error, policy.stale_if_error),
        authorized: said.allows_authorization(),
    };
    freshness.useful(exchange.response)
}

/// The same for a kept response that a 304, or a 200 to HEAD, validated: `kept` is its head as
/// [`super::kept`] merged it, `exchange` the validation with the status that is kept.
///
/// # Errors
/// The answer now says that it may not be stored. Where the request had Authorization, that is no
/// word about the kept response.
pub fn judge_validated(
    exchange: Exchange<'_>,
    kept: &HeaderMap,
    policy: &Cache,
) -> Result<Freshness, Unstorable> {
    let mut response = kept.clone();
    for age in exchange.response.get_all(AGE) {
        response.append(AGE, age.clone());
    }
    let exchange = Exchange {
        method: &Method::GET,
        response: &response,
        ..exchange
    };
    judge(exchange, policy)
}

/// Section 3, in its order.
fn storable(exchange: Exchange<'_>, said: &ResponseDirectives) -> Result<(), Unstorable> {
    let Exchange { status, .. } = exchange;
    if exchange.method != Method::GET {
        return Err(Unstorable::Method);
    }
    // Partial content is not combined (section 3.3), so it is not kept.
    if status.is_informational() || matches!(status.as_u16(), 206 | 304 | 416) {
        return Err(Unstorable::Status);
    }
    if said.must_understand && !understood(status) {
        return Err(Unstorable::MustUnderstand);
    }
    let stores_nothing = said.no_store && !said.must_understand;
    if stores_nothing || RequestDirectives::read(exchange.request).no_store {
        return Err(Unstorable::NoStore);
    }
    if said.private == Extent::Response {
        return Err(Unstorable::Private);
    }
    if exchange.request.contains_key(AUTHORIZATION) && !said.allows_authorization() {
        return Err(Unstorable::Authorization);
    }
    let cookie = exchange.response.contains_key(SET_COOKIE);
    if cookie && !said.unkept().any(|field| field == SET_COOKIE) {
        return Err(Unstorable::SetCookie);
    }
    if said.is_explicit(exchange.response) || by_default(status) {
        Ok(())
    } else {
        Err(Unstorable::Silent)
    }
}

/// RFC 9110 section 15.1: heuristically cacheable.
fn by_default(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

/// Statuses whose definition asks nothing of a cache beyond what is done here.
fn understood(status: StatusCode) -> bool {
    by_default(status) || matches!(status.as_u16(), 302 | 303 | 307 | 400 | 403 | 500..=504)
}

/// Section 4.2.1, and whether it came from `s-maxage` and so implies proxy-revalidate.
fn lifetime(
    exchange: Exchange<'_>,
    said: &ResponseDirectives,
    date: SystemTime,
    policy: &Cache,
) -> (Duration, bool) {
    let explicit = |delta: Delta| Duration::from_secs(delta.seconds().unwrap_or(0).into());
    if said.s_maxage != Delta::Absent {
        return (explicit(said.s_maxage), true);
    }
    if said.max_age != Delta::Absent {
        return (explicit(said.max_age), false);
    }
    if !said.targeted && exchange.response.contains_key(EXPIRES) {
        return (until_expires(exchange.response, date), false);
    }
    (unsaid(exchange, said, date, policy), false)
}

/// Section 5.3: an invalid date, "0" above all, is in the past; so are dates that differ.
fn until_expires(headers: &HeaderMap, date: SystemTime) -> Duration {
    let mut lines = headers.get_all(EXPIRES).iter();
    let first = lines.next();
    if lines.any(|line| Some(line) != first) {
        return Duration::ZERO;
    }
    let expires = first
        .and_then(|line| line.to_str().ok())
        .and_then(parse_date);
    expires.map_or(Duration::ZERO, |at| {
        at.duration_since(date).unwrap_or_default()
    })
}

/// The operator's word, else section 4.2.2: a tenth of what it had been unchanged, at most a day.
fn unsaid(
    exchange: Exchange<'_>,
    said: &ResponseDirectives,
    date: SystemTime,
    policy: &Cache,
) -> Duration {
    const AT_MOST: Duration = Duration::from_secs(24 * 60 * 60);
    if !(by_default(exchange.status) || said.public) || said.no_cache == Extent::Response {
        return Duration::ZERO;
    }
    if !policy.default_ttl.is_zero() {
        return policy.default_ttl;
    }
    let modified = self::date(exchange.response, LAST_MODIFIED);
    let unchanged = modified.and_then(|at| date.duration_since(at).ok());
    unchanged.map_or(Duration::ZERO, |unchanged| (unchanged / 10).min(AT_MOST))
}

/// Section 4.2.3: when the response was of age 0.
fn born(exchange: Exchange<'_>, date: SystemTime) -> SystemTime {
    let since = |from: SystemTime, to: SystemTime| to.duration_since(from).unwrap_or_default();
    // Dates are whole seconds; a part of one is no age.
    let apparent = Duration::from_secs(since(date, exchange.answered).as_secs());
    let delay = since(exchange.asked, exchange.answered);
    let age = age(exchange.response).saturating_add(delay);
    let initial = apparent.max(age);
    exchange
        .answered
        .checked_sub(initial)
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Section 5.1. What is no single number is taken for an infinite age: stale is never wrong, while
/// the "ignore it" that the RFC suggests would make it fresh.
fn age(headers: &HeaderMap) -> Duration {
    let mut lines = headers.get_all(AGE).iter();
    let seconds = match (lines.next(), lines.next()) {
        (None, _) => Some(0),
        (Some(line), None) => Delta::parse(line.as_bytes().trim_ascii()).seconds(),
        (Some(_), Some(_)) => None,
    };
    Duration::from_secs(seconds.unwrap_or(u32::MAX).into())
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    headers.get(name)?.to_str().ok().and_then(parse_date)
}

/// RFC 9110 section 5.6.7, all three formats.
fn parse_date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

impl Freshness {
    /// Its age (section 4.2.3); a clock that was set back makes none.
    #[must_use]
    pub fn age(&self, now: SystemTime) -> Duration {
        now.duration_since(self.born).unwrap_or_default()
    }

    /// Seconds until it is stale; negative afterwards: `ttl` of Cache-Status.
    #[must_use]
    pub fn ttl(&self, now: SystemTime) -> i64 {
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        seconds(self.lifetime).saturating_sub(seconds(self.age(now)))
    }

    /// What it is good for, for a request that says this (sections 4, 4.2.4, 5.2.1).
    #[must_use]
    pub fn usage(&self, asked: &RequestDirectives, authorized: bool, now: SystemTime) -> Usage {
        let age = self.age(now);
        let too_old = asked.max_age.is_some_and(|most| age > Self::seconds(most));
        if self.validate || asked.no_cache || too_old || (authorized && !self.authorized) {
            return Usage::Validate;
        }
        let needed = asked.min_fresh.map_or(Duration::ZERO, Self::seconds);
        if age.saturating_add(needed) < self.lifetime {
            return Usage::Fresh;
        }
        if asked.min_fresh.is_some() {
            return Usage::Validate;
        }
        let staleness = age.saturating_sub(self.lifetime);
        if !self.strict
            && asked
                .max_stale
                .is_some_and(|most| staleness <= Self::seconds(most))
        {
            return Usage::Stale;
        }
        // A client that names an age it takes, wants no staleness on top.
        if staleness < self.while_revalidate && asked.max_age.is_none() {
            return Usage::StaleWhileRevalidate;
        }
        Usage::Validate
    }

    /// Whether it may stand in for an app that failed or answered 500, 502, 503 or 504.
    #[must_use]
    pub fn stands_in(&self, asked: &RequestDirectives, authorized: bool, now: SystemTime) -> bool {
        let staleness = self.age(now).saturating_sub(self.lifetime);
        let allowed = !authorized || self.authorized;
        allowed && !self.validate && !asked.no_cache && staleness < self.if_error
    }

    /// The answer for which [`Self::stands_in`] is asked.
    #[must_use]
    pub fn is_error(status: StatusCode) -> bool {
        matches!(status.as_u16(), 500 | 502 | 503 | 504)
    }

    /// The same, stale from now on: an unsafe request or a HEAD said so (sections 4.3.5 and 4.4).
    #[must_use]
    pub fn ended(self) -> Self {
        Self {
            validate: true,
            ..self
        }
    }

    fn useful(self, headers: &HeaderMap) -> Result<Self, Unstorable> {
        let lives = !self.lifetime.is_zero() && !self.validate;
        let has_validator = headers.contains_key(ETAG) || headers.contains_key(LAST_MODIFIED);
        let spare = self.while_revalidate.max(self.if_error);
        if lives || has_validator || !spare.is_zero() {
            Ok(self)
        } else {
            Err(Unstorable::Useless)
        }
    }

    fn seconds(seconds: u32) -> Duration {
        Duration::from_secs(seconds.into())
    }
}

#[cfg(test)]
#[path = "freshness_tests.rs"]
mod tests;
