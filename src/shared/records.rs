//! What is put into the second tier and taken out of it; runs on the tier's thread.
//!
//! No more is read than an honest entry has: a range of the value is asked for, not the value.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderMap;
use redis::RedisError;

use super::journal::{Stamp, Verdict};
use super::link::{Link, Live};
use super::places::{self, JOURNAL};
use crate::cache::freshness::Freshness;
use crate::cache::key::{Selector, Url};
use crate::cache::store::Entry;
use crate::cache::wire::{self, Coded, Fork, Record, WireError};
use crate::codec::Coding;
use crate::telemetry::SharedOutcome as Outcome;

/// Bytes of a fork.
const LONGEST_FORK: usize = 64 * 1024;
/// A fork lives at least so long: what it leads to may be kept again and again.
const FORK: Duration = Duration::from_secs(24 * 60 * 60);
/// Nothing is kept longer.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Why there is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Slow,
    Failed,
    Refused,
    Foreign,
    Corrupt,
    Large,
    Purged,
}

/// What a task works with.
pub(super) struct Work {
    link: Arc<Link>,
    live: Arc<Live>,
    /// Bytes of a record.
    most: usize,
}

/// What is looked for.
pub(super) struct Wanted {
    pub(super) url: Url,
    pub(super) route: Arc<str>,
    pub(super) request: HeaderMap,
}

impl Work {
    pub(super) const fn new(link: Arc<Link>, live: Arc<Live>, most: usize) -> Self {
        Self { link, live, most }
    }

    /// What lies at a place, if anything does.
    async fn record(&self, place: &str, most: usize) -> Result<Option<Record>, Fault> {
        let mut read = redis::cmd("GETRANGE");
        read.arg(place).arg(0).arg(most);
        let bytes: Vec<u8> = read.query_async(&mut self.live.reads.clone()).await?;
        self.decoded(&bytes, most)
    }

    fn decoded(&self, bytes: &[u8], most: usize) -> Result<Option<Record>, Fault> {
        if bytes.is_empty() {
            return Ok(None);
        }
        Ok(Some(wire::decode(bytes, most)?))
    }

    /// What lies at a URL's page, what the journal shows, and when the URL was purged last.
    async fn page(&self, wanted: &Wanted) -> Result<(Option<Record>, Stamp, u64), Fault> {
        let page = places::page(&wanted.url, &wanted.route);
        let slot = places::slot(&wanted.url);
        let mut both = redis::pipe();
        both.cmd("HMGET")
            .arg(JOURNAL)
            .arg(&["clock", "first", "listed", &slot]);
        both.cmd("GETRANGE").arg(page).arg(0).arg(self.most);
        let (shown, bytes): (Vec<Option<u64>>, Vec<u8>) =
            both.query_async(&mut self.live.reads.clone()).await?;
        let [clock, first, listed, purged] = shown[..] else {
            return Err(Fault::Refused);
        };
        let Some(clock) = clock else {
            // The journal is lost: it is read again on a new connection.
            self.link.give_up();
            return Err(Fault::Purged);
        };
        self.link.journal().saw(clock);
        let stamp = Stamp {
            clock: Some(clock),
            first: first.unwrap_or(u64::MAX),
            listed: listed.unwrap_or(0),
            forgotten: 0,
        };
        Ok((self.decoded(&bytes, self.most)?, stamp, purged.unwrap_or(0)))
    }

    /// Whether a purge means what was found.
    async fn check(
        &self,
        entry: &Entry,
        asked: u64,
        stamp: Stamp,
        purged: u64,
    ) -> Result<(), Fault> {
        let about = (&entry.url, entry.object.tags());
        let journal = self.link.journal();
        let mut verdict = journal.judge(&stamp, purged, asked, about);
        if verdict == Verdict::Behind {
            let mut connection = self.live.reads.clone();
            self.link.read_journal(&mut connection).await?;
            verdict = journal.judge(&stamp, purged, asked, about);
        }
        match verdict {
            Verdict::Good => Ok(()),
            Verdict::Purged | Verdict::Behind => Err(Fault::Purged),
        }
    }
}

/// Finds the response that a request selects.
pub(super) async fn find(work: Work, wanted: Wanted) -> Result<Option<Entry>, Fault> {
    let _place = work.link.incoming(work.most).await.ok_or(Fault::Large)?;
    let (record, stamp, purged) = work.page(&wanted).await?;
    let record = match record {
        Some(Record::Fork(fork)) => {
            let selector = Selector::by(fork.names.clone(), &wanted.request);
            let Some(selector) = selector else {
                return Ok(None);
            };
            let leaf = places::leaf(&wanted.url, &wanted.route, &fork, &selector);
            work.record(&leaf, work.most).await?
        }
        other => other,
    };
    let (entry, asked) = match record {
        None => return Ok(None),
        Some(Record::Entry { entry, asked }) => (entry, asked),
        Some(Record::Fork(_) | Record::Coded(_)) => return Err(Fault::Foreign),
    };
    let (names, _) = entry.selector.parts();
    let selects = Selector::by(names.to_vec(), &wanted.request).as_ref() == Some(&entry.selector);
    if entry.url != wanted.url || entry.route != wanted.route || !selects {
        return Err(Fault::Foreign);
    }
    work.check(&entry, asked, stamp, purged).await?;
    Ok(Some(entry))
}

/// Keeps a response; false: it would be stale at once.
pub(super) async fn keep(work: Work, entry: Entry, asked: u64) -> Result<bool, Fault> {
    let Some(life) = life(entry.object.freshness()) else {
        return Ok(false);
    };
    let page = places::page(&entry.url, &entry.route);
    let (names, _) = entry.selector.parts();
    let names = names.to_vec();
    let mut write = redis::pipe();
    if names.is_empty() {
        set(&mut write, &page, &Record::Entry { entry, asked }, life);
    } else {
        let fork = match work.record(&page, LONGEST_FORK).await {
            Ok(Some(Record::Fork(fork))) if fork.names == names => fork,
            _ => Fork {
                names,
                generation: fastrand::u64(..),
            },
        };
        let leaf = places::leaf(&entry.url, &entry.route, &fork, &entry.selector);
        set(&mut write, &leaf, &Record::Entry { entry, asked }, life);
        set(&mut write, &page, &Record::Fork(fork), life.max(FORK));
    }
    let () = write.query_async(&mut work.live.writes.clone()).await?;
    Ok(true)
}

/// Finds a coded form.
pub(super) async fn coded(
    work: Work,
    entry: Entry,
    coding: Coding,
) -> Result<Option<Coded>, Fault> {
    let _place = work.link.incoming(work.most).await.ok_or(Fault::Large)?;
    let of = places::bytes_of(&entry);
    match work.record(&places::coded(&of, coding), work.most).await? {
        None => Ok(None),
        Some(Record::Coded(coded)) if coded.of == of && coded.coding == coding => Ok(Some(coded)),
        Some(_) => Err(Fault::Foreign),
    }
}

/// Keeps a coded form; false: what it belongs to would be stale at once.
pub(super) async fn keep_coded(
    work: Work,
    entry: Entry,
    coding: Coding,
    bytes: Bytes,
    dense: bool,
) -> Result<bool, Fault> {
    let Some(life) = life(entry.object.freshness()) else {
        return Ok(false);
    };
    let of = places::bytes_of(&entry);
    let coded = Coded {
        of,
        coding,
        dense,
        bytes,
    };
    let mut write = redis::pipe();
    set(
        &mut write,
        &places::coded(&of, coding),
        &Record::Coded(coded),
        life,
    );
    let () = write.query_async(&mut work.live.writes.clone()).await?;
    Ok(true)
}

fn set(pipe: &mut redis::Pipeline, place: &str, record: &Record, life: Duration) {
    let bytes = wire::encode(record);
    let millis = u64::try_from(life.as_millis()).unwrap_or(u64::MAX).max(1);
    pipe.cmd("SET")
        .arg(place)
        .arg(&bytes[..])
        .arg("PX")
        .arg(millis)
        .ignore();
}

/// How long something is of use: while it is fresh, and while it may stand in after that.
fn life(freshness: &Freshness) -> Option<Duration> {
    let left = u64::try_from(freshness.ttl(SystemTime::now())).ok()?;
    let stale = freshness.while_revalidate.max(freshness.if_error);
    let fresh = left > 0 && !freshness.validate;
    fresh.then(|| Duration::from_secs(left).saturating_add(stale).min(LONGEST))
}

impl Fault {
    pub(super) const fn outcome(self) -> Outcome {
        match self {
            Self::Slow => Outcome::Slow,
            Self::Failed => Outcome::Failed,
            Self::Refused => Outcome::Refused,
            Self::Foreign => Outcome::Foreign,
            Self::Corrupt => Outcome::Corrupt,
            Self::Large => Outcome::Large,
            Self::Purged => Outcome::Purged,
        }
    }
}

impl From<RedisError> for Fault {
    fn from(error: RedisError) -> Self {
        if error.is_timeout() {
            return Self::Slow;
        }
        if error.is_io_error() {
            return Self::Failed;
        }
        let said = error.into_server_errors();
        let mut said = said.iter().flat_map(|said| said.iter());
        if said.any(|(_, error)| error.code() == "WRONGTYPE") {
            Self::Foreign
        } else {
            Self::Refused
        }
    }
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Foreign => Self::Foreign,
            WireError::Corrupt | WireError::Malformed => Self::Corrupt,
            WireError::TooLarge => Self::Large,
        }
    }
}
