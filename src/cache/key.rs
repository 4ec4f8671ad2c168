//! What a copy is found by: the URL (scheme, authority, path, query), the route that answered, and
//! the request fields that Vary names (RFC 9111 sections 2 and 4.1).
//!
//! Accept-Encoding is never part of it: codings are variants of one object. The method is not
//! either, for only answers to GET are kept. The path is the one that the app saw, byte by byte: two
//! spellings that the app may tell apart are two keys.

use std::borrow::Cow;
use std::sync::Arc;

use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE, HeaderMap, HeaderName, VARY};

use crate::config::settings::QueryKey;
use crate::head::{authority::Authority, list};

/// Where a request was sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin<'a> {
    /// Whether the client came over TLS, or a proxy that we trust says so.
    pub https: bool,
    /// Normalised: [`Authority::parse`] makes it.
    pub authority: Authority<'a>,
}

/// A URL as a key; cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Url(Arc<str>);

impl Url {
    /// The key of a request target; `query` is what follows the `?`.
    #[must_use]
    pub fn new(origin: &Origin<'_>, path: &str, query: Option<&str>, rule: &QueryKey) -> Self {
        let (scheme, usual) = if origin.https {
            ("https://", 443)
        } else {
            ("http://", 80)
        };
        let mut text = String::with_capacity(
            scheme.len() + origin.authority.host.len() + path.len() + 8 + query.map_or(0, str::len),
        );
        text.push_str(scheme);
        text.push_str(&origin.authority.host);
        if let Some(port) = origin.authority.port.filter(|&port| port != usual) {
            text.push(':');
            text.push_str(itoa::Buffer::new().format(port));
        }
        if !path.starts_with('/') {
            text.push('/');
        }
        text.push_str(path);
        if let Some(query) = query.and_then(|query| counted(query, rule)) {
            text.push('?');
            text.push_str(&query);
        }
        Self(text.into())
    }

    /// Reads an absolute `http` or `https` URL, as a purge names it.
    #[must_use]
    pub fn parse(text: &str, rule: &QueryKey) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let https = scheme.eq_ignore_ascii_case("https");
        if !(https || scheme.eq_ignore_ascii_case("http")) {
            return None;
        }
        let rest = rest.split('#').next()?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let authority = Authority::parse(&rest[..end])?;
        let (path, query) = match rest[end..].split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&rest[end..], None),
        };
        Some(Self::new(&Origin { https, authority }, path, query, rule))
    }

    /// Scheme, authority, path and the part of the query that counts.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A key that was written down by [`Self::as_str`].
    pub(super) fn from_key(text: &str) -> Self {
        Self(text.into())
    }
}

/// The part of a query that is in the key.
fn counted<'a>(query: &'a str, rule: &QueryKey) -> Option<Cow<'a, str>> {
    match rule {
        QueryKey::All => Some(Cow::Borrowed(query)),
        QueryKey::None => None,
        // Some applications also split at `;`, and would see a parameter that we do not.
        QueryKey::Names(_) if query.contains(';') => Some(Cow::Borrowed(query)),
        QueryKey::Names(names) => {
            let parameters = query
                .split('&')
                .filter(|parameter| is_named(parameter, names));
            let kept = parameters.collect::<Vec<_>>().join("&");
            (!kept.is_empty()).then_some(Cow::Owned(kept))
        }
    }
}

/// Whether an application could take it for one of these: escapes, `+`, and `name[]` are read.
fn is_named(parameter: &str, names: &[String]) -> bool {
    let name = parameter.split('=').next().unwrap_or_default();
    let spaced = name.replace('+', " ");
    let decoded = percent_encoding::percent_decode_str(&spaced).collect::<Vec<u8>>();
    let plain = decoded
        .split(|&byte| byte == b'[')
        .next()
        .unwrap_or_default();
    names
        .iter()
        .any(|known| known.as_bytes() == decoded || known.as_bytes() == plain)
}

/// The request fields that select a stored response, with the values that it was stored under.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Selector {
    names: Box<[HeaderName]>,
    values: Box<[u8]>,
}

impl Selector {
    /// More fields than this in Vary make a response unstorable.
    pub const MOST_FIELDS: usize = 10;
    /// Bytes; longer selecting values make a response unstorable.
    pub const MOST_BYTES: usize = 4096;

    /// Reads Vary on all its lines; `request` is the head that the app got.
    ///
    /// `None` for `*` (section 4.1) and for more than the bounds.
    #[must_use]
    pub fn read(response: &HeaderMap, request: &HeaderMap) -> Option<Self> {
        let names = fields(response)?;
        let values = values(&names, request);
        (names.len() <= Self::MOST_FIELDS && values.len() <= Self::MOST_BYTES).then(|| Self {
            names: names.into(),
            values: values.into(),
        })
    }

    /// Whether this request selects what is stored under it. `last` carries what the request makes
    /// of the fields that were looked at before: mostly one set for all copies of a URL.
    pub(super) fn is_selected(&self, last: &mut Option<Self>, request: &HeaderMap) -> bool {
        if self.names.is_empty() {
            return true;
        }
        match last {
            Some(last) if last.names == self.names => last.values == self.values,
            _ => last.insert(self.of(request)).values == self.values,
        }
    }

    /// What this request would be stored under, if the answer varies by the same fields again.
    #[must_use]
    pub fn of(&self, request: &HeaderMap) -> Self {
        let values = values(&self.names, request).into();
        let names = self.names.clone();
        Self { names, values }
    }

    /// Whether two responses vary by the same fields.
    pub(super) fn same_fields(one: &HeaderMap, other: &HeaderMap) -> bool {
        fields(one) == fields(other)
    }

    /// What a request is kept under where answers vary by these fields; `None` beyond the bounds.
    #[must_use]
    pub fn by(names: Vec<HeaderName>, request: &HeaderMap) -> Option<Self> {
        let values = values(&names, request);
        Self::from_parts(names, &values)
    }

    /// The names and the encoded values, to be written down.
    #[must_use]
    pub fn parts(&self) -> (&[HeaderName], &[u8]) {
        (&self.names, &self.values)
    }

    /// The opposite of [`Self::parts`], within the bounds.
    pub(super) fn from_parts(names: Vec<HeaderName>, values: &[u8]) -> Option<Self> {
        let bounded = names.len() <= Self::MOST_FIELDS && values.len() <= Self::MOST_BYTES;
        bounded.then(|| Self {
            names: names.into(),
            values: values.into(),
        })
    }

    pub(super) fn weight(&self) -> usize {
        let of_names = self.names.iter().map(|name| name.as_str().len() + 64);
        of_names.sum::<usize>() + self.values.len()
    }
}

/// The selecting fields, sorted, each once; `None` where one is `*` or no field name.
fn fields(response: &HeaderMap) -> Option<Vec<HeaderName>> {
    let mut names = Vec::new();
    for token in list::tokens(response, VARY) {
        // `*` is a token too, so it has to be refused by itself.
        let name = HeaderName::from_bytes(token)
            .ok()
            .filter(|_| token != b"*")?;
        if name != ACCEPT_ENCODING && !names.contains(&name) {
            names.push(name);
        }
        if names.len() > Selector::MOST_FIELDS {
            break;
        }
    }
    names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    Some(names)
}

/// A byte for each field that says whether it is there, then its normalised value and a NUL, which
/// no value can hold.
fn values(names: &[HeaderName], request: &HeaderMap) -> Vec<u8> {
    let mut out = Vec::new();
    for name in names {
        if !request.contains_key(name) {
            out.push(0);
            continue;
        }
        out.push(1);
        let start = out.len();
        // Section 4.1: lines are combined, and blanks around commas mean nothing.
        for line in request.get_all(name) {
            for member in list::quoted(line.as_bytes()) {
                if out.len() > start {
                    out.push(b',');
                }
                out.extend_from_slice(member);
            }
        }
        // Language tags know no case (RFC 5646 section 2.1.1).
        if name == ACCEPT_LANGUAGE {
            out[start..].make_ascii_lowercase();
        }
        out.push(0);
    }
    out
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
