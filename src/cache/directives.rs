//! Cache-Control (RFC 9111 section 5.2) and CDN-Cache-Control (RFC 9213), read once a head.
//!
//! What restricts counts however badly it is written; what permits has to be well formed.

use http::header::{CACHE_CONTROL, EXPIRES, HeaderMap, HeaderName, PRAGMA};

use crate::head::list;

/// A directive's delta-seconds (RFC 9111 section 1.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delta {
    /// The directive is not there.
    #[default]
    Absent,
    /// Seconds; what is larger than 2^31 is 2^31.
    Seconds(u32),
    /// No number, or two that differ (section 4.2.1): stale.
    Unreadable,
}

impl Delta {
    /// Section 1.2.2: "a cache MUST consider the value to be 2147483648" where it overflows.
    const LARGEST: u32 = 1 << 31;

    /// 1*DIGIT and nothing else.
    pub(super) fn parse(digits: &[u8]) -> Self {
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Self::Unreadable;
        }
        let value = digits.iter().fold(0_u32, |value, digit| {
            let value = value.saturating_mul(10);
            value.saturating_add(u32::from(digit - b'0'))
        });
        Self::Seconds(value.min(Self::LARGEST))
    }

    /// One more occurrence of the same directive.
    fn add(&mut self, further: Self) {
        *self = match *self {
            Self::Absent => further,
            same if same == further => same,
            _ => Self::Unreadable,
        };
    }

    /// The seconds, where they are readable.
    #[must_use]
    pub const fn seconds(self) -> Option<u32> {
        match self {
            Self::Seconds(seconds) => Some(seconds),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

/// What `no-cache` and `private` speak of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Extent {
    /// Nothing: the directive is not there.
    #[default]
    Nothing,
    /// These fields (the qualified form, sections 5.2.2.4 and 5.2.2.7).
    Fields(Vec<HeaderName>),
    /// The whole response.
    Response,
}

impl Extent {
    /// A quoted list of field names; any other argument makes the directive speak of everything.
    fn of(argument: Option<&[u8]>) -> Self {
        let fields = argument.and_then(|argument| {
            let quoted = argument.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
            let names = list::split(quoted).map(|name| HeaderName::from_bytes(name).ok());
            names.collect::<Option<Vec<_>>>()
        });
        match fields {
            Some(fields) if !fields.is_empty() => Self::Fields(fields),
            _ => Self::Response,
        }
    }

    fn add(&mut self, further: Self) {
        *self = match (std::mem::take(self), further) {
            (Self::Nothing, other) | (other, Self::Nothing) => other,
            (Self::Fields(mut fields), Self::Fields(more)) => {
                fields.extend(more);
                Self::Fields(fields)
            }
            _ => Self::Response,
        };
    }
}

/// What a response says to caches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResponseDirectives {
    /// They come from CDN-Cache-Control: Cache-Control and Expires do not count (RFC 9213 section 2.2).
    pub targeted: bool,
    /// Section 5.2.2.5.
    pub no_store: bool,
    /// Section 5.2.2.4.
    pub no_cache: Extent,
    /// Section 5.2.2.7.
    pub private: Extent,
    /// Section 5.2.2.9.
    pub public: bool,
    /// Section 5.2.2.2.
    pub must_revalidate: bool,
    /// Section 5.2.2.8.
    pub proxy_revalidate: bool,
    /// Section 5.2.2.3.
    pub must_understand: bool,
    /// Section 5.2.2.1.
    pub max_age: Delta,
    /// Section 5.2.2.10.
    pub s_maxage: Delta,
    /// RFC 5861 section 3.
    pub stale_while_revalidate: Delta,
    /// RFC 5861 section 4.
    pub stale_if_error: Delta,
}

const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");

impl ResponseDirectives {
    /// Reads the field that counts for us.
    #[must_use]
    pub fn read(headers: &HeaderMap) -> Self {
        Self::targeted(headers).unwrap_or_else(|| Self::untargeted(headers))
    }

    /// RFC 9213 section 2.1: a structured Dictionary that is not empty; all else is as if absent.
    fn targeted(headers: &HeaderMap) -> Option<Self> {
        if !headers.contains_key(CDN_CACHE_CONTROL) {
            return None;
        }
        let lines = headers.get_all(CDN_CACHE_CONTROL).iter();
        let text = lines.map(|line| line.as_bytes()).collect::<Vec<_>>();
        let dictionary: sfv::Dictionary = sfv::Parser::new(&text.join(&b", "[..])).parse().ok()?;
        if dictionary.is_empty() {
            return None;
        }
        let mut found = Self {
            targeted: true,
            ..Self::default()
        };
        for (name, entry) in &dictionary {
            found.structured(name.as_str(), entry);
        }
        Some(found)
    }

    /// Directives whose value has another type than theirs are ignored (RFC 9213 section 2.1).
    fn structured(&mut self, name: &str, entry: &sfv::ListEntry) {
        let sfv::ListEntry::Item(item) = entry else {
            return;
        };
        if let Some(delta) = self.delta(name.as_bytes()) {
            let seconds = item.bare_item.as_integer().map(i64::from);
            if let Some(Ok(seconds)) = seconds.map(u64::try_from) {
                *delta = Delta::parse(seconds.to_string().as_bytes());
            }
        } else if item.bare_item.as_boolean() == Some(true) {
            self.take(name.as_bytes(), None);
        } else if let Some(text) = item.bare_item.as_string() {
            let quoted = format!("\"{}\"", text.as_str());
            self.take(name.as_bytes(), Some(quoted.as_bytes()));
        }
    }

    fn untargeted(headers: &HeaderMap) -> Self {
        let mut found = Self::default();
        for line in headers.get_all(CACHE_CONTROL) {
            for directive in list::quoted(line.as_bytes()) {
                let (name, argument) = parts(directive);
                let seconds = argument.map_or(Delta::Unreadable, seconds);
                match found.delta(name) {
                    Some(delta) => delta.add(seconds),
                    None => found.take(name, argument),
                }
            }
        }
        // Section 5.4 gives it no meaning in responses; those who send it mean this one.
        if !headers.contains_key(CACHE_CONTROL) && pragma(headers) {
            found.no_cache = Extent::Response;
        }
        found
    }

    fn delta(&mut self, name: &[u8]) -> Option<&mut Delta> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match () {
            () if is("max-age") => Some(&mut self.max_age),
            () if is("s-maxage") => Some(&mut self.s_maxage),
            () if is("stale-while-revalidate") => Some(&mut self.stale_while_revalidate),
            () if is("stale-if-error") => Some(&mut self.stale_if_error),
            () => None,
        }
    }

    fn take(&mut self, name: &[u8], argument: Option<&[u8]>) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match () {
            () if is("no-store") => self.no_store = true,
            () if is("no-cache") => self.no_cache.add(Extent::of(argument)),
            () if is("private") => self.private.add(Extent::of(argument)),
            () if is("must-revalidate") => self.must_revalidate = true,
            () if is("proxy-revalidate") => self.proxy_revalidate = true,
            () if is("must-understand") => self.must_understand = true,
            () if is("public") => self.public = argument.is_none(),
            () => {}
        }
    }

    /// Section 3: whether it says by itself that it may be stored by a shared cache.
    #[must_use]
    pub fn is_explicit(&self, headers: &HeaderMap) -> bool {
        self.public
            || self.max_age != Delta::Absent
            || self.s_maxage != Delta::Absent
            || (!self.targeted && headers.contains_key(EXPIRES))
    }

    /// The fields that may not be kept, by the qualified forms of `no-cache` and `private`.
    pub fn unkept(&self) -> impl Iterator<Item = &HeaderName> {
        [&self.no_cache, &self.private]
            .into_iter()
            .flat_map(|extent| match extent {
                Extent::Fields(fields) => fields.as_slice(),
                Extent::Nothing | Extent::Response => &[],
            })
    }

    /// Section 3.5: what lets a shared cache keep the answer to a request with Authorization.
    #[must_use]
    pub fn allows_authorization(&self) -> bool {
        self.public || self.must_revalidate || self.s_maxage != Delta::Absent
    }

    /// Section 4.2.4: what forbids the use of a stale response, whatever the client says.
    #[must_use]
    pub fn forbids_stale(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate || self.no_cache == Extent::Response
    }
}

/// What a request says to caches (section 5.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestDirectives {
    /// Section 5.2.1.4, and `Pragma: no-cache` where there is no Cache-Control (section 5.4).
    pub no_cache: bool,
    /// Section 5.2.1.5.
    pub no_store: bool,
    /// Section 5.2.1.7: 504 where no copy can be used.
    pub only_if_cached: bool,
    /// Section 5.2.1.1, in seconds.
    pub max_age: Option<u32>,
    /// Section 5.2.1.3, in seconds.
    pub min_fresh: Option<u32>,
    /// Section 5.2.1.2, in seconds; without an argument any age will do.
    pub max_stale: Option<u32>,
}

impl RequestDirectives {
    /// Reads a request's head; what cannot be read is as if absent.
    #[must_use]
    pub fn read(headers: &HeaderMap) -> Self {
        let mut found = Self::default();
        for line in headers.get_all(CACHE_CONTROL) {
            for directive in list::quoted(line.as_bytes()) {
                let (name, argument) = parts(directive);
                found.take(name, argument);
            }
        }
        if !headers.contains_key(CACHE_CONTROL) {
            found.no_cache = pragma(headers);
        }
        found
    }

    fn take(&mut self, name: &[u8], argument: Option<&[u8]>) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let value = argument.and_then(|argument| seconds(argument).seconds());
        match () {
            () if is("no-cache") => self.no_cache = true,
            () if is("no-store") => self.no_store = true,
            () if is("only-if-cached") => self.only_if_cached = true,
            // Of several the most restrictive counts (section 4.2.1).
            () if is("max-age") => self.max_age = least(self.max_age, value),
            () if is("min-fresh") => self.min_fresh = self.min_fresh.max(value),
            () if is("max-stale") => {
                let any = argument.is_none().then_some(u32::MAX);
                self.max_stale = least(self.max_stale, value.or(any));
            }
            () => {}
        }
    }
}

fn least(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Name and argument; a name with blanks before the `=` keeps its meaning, its argument does not.
fn parts(directive: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(equals) = memchr::memchr(b'=', directive) else {
        return (directive, None);
    };
    let (name, argument) = (&directive[..equals], &directive[equals + 1..]);
    let trimmed = name.trim_ascii_end();
    let argument = if trimmed.len() == name.len() {
        argument
    } else {
        b" "
    };
    (trimmed, Some(argument))
}

/// Both forms are read (section 5.2): `60` and `"60"`.
fn seconds(argument: &[u8]) -> Delta {
    let quoted = argument.strip_prefix(b"\"");
    let digits = quoted.and_then(|rest| rest.strip_suffix(b"\""));
    Delta::parse(digits.unwrap_or(argument))
}

fn pragma(headers: &HeaderMap) -> bool {
    list::tokens(headers, PRAGMA).any(|token| token.eq_ignore_ascii_case(b"no-cache"))
}

#[cfg(test)]
#[path = "directives_tests.rs"]
mod tests;
