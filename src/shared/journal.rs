//! What was purged, as far as it is known here, and the words in which purges are told.
//!
//! The tier has a clock that each purge moves on. What is kept there carries what the clock showed
//! before the app was asked; it may be used if no purge since then means it. A URL's last purge
//! stands in one of many fields, which are read with each record; purges of prefixes and tags are
//! listed, and here is a copy of that list. Where the journal is lost, its clock starts at the time
//! of day, ahead of all that it showed before: what was kept until then is not used.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::cache::key::Url;
use crate::cache::store::Meant;
use crate::cache::tags::Tags;
use crate::config::settings::QueryKey;

/// Starts the clock where there is none: KEYS journal; ARGV the time in microseconds.
pub(super) const OPEN: &str = "\
if redis.call('HSETNX', KEYS[1], 'clock', ARGV[1]) == 1 then \
  redis.call('HSET', KEYS[1], 'first', ARGV[1]) \
end \
return redis.call('HMGET', KEYS[1], 'clock', 'first', 'listed', 'forgotten')";

/// Purges, and tells it: KEYS journal, list; ARGV time, the URL's field or nothing, text, channel,
/// how long the list may be. Returns the new clock.
pub(super) const TELL: &str = "\
if redis.call('HSETNX', KEYS[1], 'clock', ARGV[1]) == 1 then \
  redis.call('HSET', KEYS[1], 'first', ARGV[1]) \
end \
local now = string.format('%.0f', redis.call('HINCRBY', KEYS[1], 'clock', 1)) \
local text = now .. ' ' .. ARGV[3] \
if ARGV[2] ~= '' then \
  redis.call('HSET', KEYS[1], ARGV[2], now) \
else \
  redis.call('RPUSH', KEYS[2], text) \
  redis.call('HSET', KEYS[1], 'listed', now) \
  if redis.call('LLEN', KEYS[2]) > tonumber(ARGV[5]) then \
    local oldest = redis.call('LPOP', KEYS[2]) \
    redis.call('HSET', KEYS[1], 'forgotten', string.match(oldest, '^%d+')) \
  end \
end \
redis.call('PUBLISH', ARGV[4], text) \
return now";

/// Purges that are listed.
pub(super) const LISTED: usize = 1024;

/// What the journal shows along with a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Absent: the journal is lost.
    pub(super) clock: Option<u64>,
    /// Where the clock started.
    pub(super) first: u64,
    /// The last purge of many.
    pub(super) listed: u64,
    /// The last purge of many that is not listed any more.
    pub(super) forgotten: u64,
}

/// Whether a record may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Good,
    /// A purge since it was asked for means it, or may.
    Purged,
    /// The copy of the list is older than the record.
    Behind,
}

/// A purge as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// What the clock showed after it.
    pub(super) at: u64,
    /// Who tells.
    pub(super) from: u64,
    pub(super) meant: Meant,
}

/// The copy of the journal.
#[derive(Debug, Default)]
pub(super) struct Journal(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    stamp: Stamp,
    list: VecDeque<(u64, Meant)>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    from: u64,
    #[serde(flatten)]
    what: What,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum What {
    Url(String),
    Prefix(String),
    Tag(String),
}

impl Journal {
    /// What the clock showed last; `None` before the tier was reached.
    pub(super) fn clock(&self) -> Option<u64> {
        self.0.lock().stamp.clock
    }

    /// Where its clock started.
    pub(super) fn first(&self) -> u64 {
        self.0.lock().stamp.first
    }

    /// The clock was seen.
    pub(super) fn saw(&self, clock: u64) {
        let mut known = self.0.lock();
        known.stamp.clock = known.stamp.clock.max(Some(clock));
    }

    /// Takes over the list as it lies in the tier.
    pub(super) fn load(&self, mut stamp: Stamp, list: &[Told]) {
        // The list lies by itself, and may be lost by itself.
        if stamp.listed > stamp.forgotten && list.last().is_none_or(|last| last.at < stamp.listed) {
            stamp.forgotten = stamp.listed;
        }
        let list = list.iter().map(|told| (told.at, told.meant.clone()));
        *self.0.lock() = Known {
            stamp,
            list: list.collect(),
        };
    }

    /// Judges a record that came with this stamp, its URL last purged at `slot`.
    pub(super) fn judge(
        &self,
        stamp: &Stamp,
        slot: u64,
        asked: u64,
        (url, tags): (&Url, &Tags),
    ) -> Verdict {
        let known = self.0.lock();
        if stamp.first != known.stamp.first || stamp.listed > known.stamp.listed {
            return Verdict::Behind;
        }
        let mut since = known.list.iter().filter(|(at, _)| *at > asked);
        let purged = asked < stamp.first
            || slot > asked
            || known.stamp.forgotten > asked
            || since.any(|(_, meant)| meant.means(url, tags));
        if purged {
            Verdict::Purged
        } else {
            Verdict::Good
        }
    }
}

/// The text that others get; the tier puts the clock before it.
pub(super) fn tell(from: u64, meant: &Meant) -> String {
    let what = match meant {
        Meant::Url(url) => What::Url(url.as_str().to_owned()),
        Meant::Prefix(prefix) => What::Prefix(prefix.as_str().to_owned()),
        Meant::Tag(tag) => What::Tag(tag.clone().into()),
    };
    // Maps with text keys can always be written.
    serde_json::to_string(&Written { from, what }).unwrap_or_default()
}

/// Reads what another tells; `None` for what is no purge.
pub(super) fn read(text: &[u8]) -> Option<Told> {
    let (at, json) = std::str::from_utf8(text).ok()?.split_once(' ')?;
    let written: Written = serde_json::from_str(json).ok()?;
    let url = |text: String| Url::parse(&text, &QueryKey::All);
    let meant = match written.what {
        What::Url(text) => Meant::Url(url(text)?),
        What::Prefix(text) => Meant::Prefix(url(text)?),
        What::Tag(tag) => Meant::Tag(tag.into()),
    };
    Some(Told {
        at: at.parse().ok()?,
        from: written.from,
        meant,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};

    fn url(text: &str) -> Url {
        Url::parse(text, &QueryKey::All).expect("a URL")
    }

    fn stamp(clock: u64, listed: u64) -> Stamp {
        Stamp {
            clock: Some(clock),
            first: 100,
            listed,
            forgotten: 0,
        }
    }

    fn told(at: u64, meant: Meant) -> Told {
        Told { at, from: 1, meant }
    }

    fn tagged(tag: &'static str) -> Tags {
        let mut head = HeaderMap::new();
        head.insert("cache-tag", HeaderValue::from_static(tag));
        Tags::read(&head).expect("tags")
    }

    #[test]
    fn only_what_no_purge_since_means_is_good() {
        let journal = Journal::default();
        let list = [
            told(110, Meant::Prefix(url("http://a/x/"))),
            told(120, Meant::Tag("red".into())),
        ];
        let now = stamp(130, 120);
        journal.load(now, &list);
        let judge =
            |slot, asked, text, tag| journal.judge(&now, slot, asked, (&url(text), &tagged(tag)));
        assert_eq!(judge(0, 105, "http://a/y", "blue"), Verdict::Good);
        assert_eq!(
            judge(0, 99, "http://a/y", "blue"),
            Verdict::Purged,
            "before the clock"
        );
        assert_eq!(judge(106, 105, "http://a/y", "blue"), Verdict::Purged);
        assert_eq!(judge(105, 105, "http://a/y", "blue"), Verdict::Good);
        assert_eq!(judge(0, 105, "http://a/x/y", "blue"), Verdict::Purged);
        assert_eq!(judge(0, 110, "http://a/x/y", "blue"), Verdict::Good);
        assert_eq!(judge(0, 110, "http://a/y", "red"), Verdict::Purged);
        assert_eq!(judge(0, 120, "http://a/y", "red"), Verdict::Good);
    }

    #[test]
    fn what_is_newer_than_the_copy_is_not_judged_by_it() {
        let journal = Journal::default();
        let now = stamp(130, 120);
        let about = (&url("http://a/"), &Tags::default());
        assert_eq!(
            journal.judge(&now, 0, 130, about),
            Verdict::Behind,
            "never loaded"
        );
        journal.load(stamp(110, 0), &[]);
        assert_eq!(journal.judge(&now, 0, 130, about), Verdict::Behind);
        let anew = Stamp { first: 500, ..now };
        assert_eq!(
            journal.judge(&anew, 0, 600, about),
            Verdict::Behind,
            "another clock"
        );
    }

    #[test]
    fn where_the_list_is_lost_all_from_before_may_be_meant() {
        let journal = Journal::default();
        let now = stamp(130, 120);
        journal.load(now, &[]);
        let about = (&url("http://a/"), &Tags::default());
        assert_eq!(journal.judge(&now, 0, 119, about), Verdict::Purged);
        assert_eq!(journal.judge(&now, 0, 120, about), Verdict::Good);
    }

    #[test]
    fn purges_are_read_as_they_are_told() {
        for meant in [
            Meant::Url(url("https://h/p?q=1&r")),
            Meant::Prefix(url("http://h:8080/p/")),
            Meant::Tag("a \"tag\"".into()),
        ] {
            let text = format!("123 {}", tell(u64::MAX, &meant));
            let told = Told {
                at: 123,
                from: u64::MAX,
                meant,
            };
            assert_eq!(read(text.as_bytes()), Some(told), "{text}");
        }
        for other in [
            "",
            "1",
            "x {}",
            "1 {}",
            "1 {\"from\":1}",
            "1 {\"from\":1,\"url\":\"x\"}",
        ] {
            assert_eq!(read(other.as_bytes()), None, "{other}");
        }
    }
}
