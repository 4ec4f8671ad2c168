//! Cache-Status (RFC 9211): what the cache did, for who debugs.

use std::fmt;

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::freshness::Unstorable;

/// The field.
pub const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// What the cache did for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// Answered from here (section 2.1).
    Hit {
        /// Seconds until the copy is stale, negative where it is (section 2.4).
        ttl: i64,
    },
    /// The app was asked (section 2.2).
    Forward {
        /// Why.
        why: Why,
        /// What the app answered, where the client gets something else (section 2.3).
        status: Option<StatusCode>,
        /// What became of the answer.
        then: Then,
        /// It was asked by another request for the same (section 2.6).
        collapsed: bool,
    },
}

/// The tokens of section 2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The cache is not used here.
    Bypass,
    /// Only answers to GET are kept.
    Method,
    /// Nothing is known of the URL.
    UriMiss,
    /// The URL is known, not for what Vary names.
    VaryMiss,
    /// The client's Cache-Control wants it asked.
    Request,
    /// The copy is stale.
    Stale,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Not yet known, or nothing to say.
    Silent,
    /// It is kept (section 2.5).
    Stored {
        /// Seconds until it is stale.
        ttl: i64,
    },
    /// It is not kept (`detail`, section 2.8).
    Unstorable(Unstorable),
}

impl fmt::Display for Handling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("thinwire")?;
        match *self {
            Self::Hit { ttl } => write!(f, "; hit; ttl={ttl}"),
            Self::Forward {
                why,
                status,
                then,
                collapsed,
            } => {
                write!(f, "; fwd={}", why.token())?;
                if let Some(status) = status {
                    write!(f, "; fwd-status={}", status.as_u16())?;
                }
                match then {
                    Then::Silent => {}
                    Then::Stored { ttl } => write!(f, "; stored; ttl={ttl}")?,
                    Then::Unstorable(why) => write!(f, "; detail=\"{why}\"")?,
                }
                if collapsed {
                    f.write_str("; collapsed")?;
                }
                Ok(())
            }
        }
    }
}

impl Handling {
    /// Adds our member behind those of caches nearer to the app (section 2).
    pub fn append(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::try_from(self.to_string()) {
            headers.append(CACHE_STATUS, value);
        }
    }
}

impl Why {
    const fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Request => "request",
            Self::Stale => "stale",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_items_with_the_parameters_of_rfc_9211() {
        let forward = |why, status, then, collapsed| Handling::Forward {
            why,
            status,
            then,
            collapsed,
        };
        for (handling, expected) in [
            (Handling::Hit { ttl: 30 }, "thinwire; hit; ttl=30"),
            (Handling::Hit { ttl: -5 }, "thinwire; hit; ttl=-5"),
            (
                forward(Why::UriMiss, None, Then::Stored { ttl: 60 }, false),
                "thinwire; fwd=uri-miss; stored; ttl=60",
            ),
            (
                forward(
                    Why::Stale,
                    Some(StatusCode::NOT_MODIFIED),
                    Then::Silent,
                    false,
                ),
                "thinwire; fwd=stale; fwd-status=304",
            ),
            (
                forward(Why::VaryMiss, None, Then::Silent, true),
                "thinwire; fwd=vary-miss; collapsed",
            ),
            (
                forward(
                    Why::Request,
                    None,
                    Then::Unstorable(Unstorable::SetCookie),
                    false,
                ),
                "thinwire; fwd=request; detail=\"set-cookie\"",
            ),
            (
                forward(Why::Method, None, Then::Silent, false),
                "thinwire; fwd=method",
            ),
            (
                forward(Why::Bypass, None, Then::Silent, false),
                "thinwire; fwd=bypass",
            ),
        ] {
            assert_eq!(handling.to_string(), expected);
            let list: Result<sfv::List, _> = sfv::Parser::new(expected).parse();
            assert!(list.is_ok(), "{expected}");
        }
    }

    #[test]
    fn ours_stands_behind_what_is_there() {
        let mut headers = HeaderMap::new();
        headers.append(CACHE_STATUS, HeaderValue::from_static("Origin; hit"));
        Handling::Hit { ttl: 1 }.append(&mut headers);
        let lines: Vec<_> = headers.get_all(CACHE_STATUS).iter().collect();
        assert_eq!(lines, ["Origin; hit", "thinwire; hit; ttl=1"]);
    }
}
