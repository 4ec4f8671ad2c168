//! The memory of the cache: objects by URL, route and Vary, their coded variants, and coded forms
//! of bodies that may not be kept as objects, all within `cache.memory`.
//!
//! Not `moka`, which inserts first and evicts later: with four threads storing bodies of 64 KiB into
//! 256 MiB its peak was measured at 1.29 times the capacity. Here room is made before anything goes
//! in, under one lock; a hit takes that lock shared, and what is given up is freed outside of it.
//! Bytes of an evicted object that is still being sent live on until that is done.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http::HeaderMap;
use parking_lot::RwLock;
use prometheus_client::metrics::gauge::Gauge;

use super::densify::Candidate;
use super::key::{Selector, Url};
use super::object::{Object, ObjectId, exact};
use super::purges::Purge;
use super::reuse::Digest;
use super::shelves::{Item, Shelves, Trash, Variant, coded_weight};
use crate::codec::Coding;
use crate::telemetry::Metrics;

pub use super::purges::{Meant, Moment};

/// `thinwire_cache_bytes` by coding; `Default` makes gauges that nobody sees.
#[derive(Debug, Clone, Default)]
pub struct Gauges {
    /// Objects as the app sent them, with heads and keys.
    pub identity: Gauge,
    /// gzip.
    pub gzip: Gauge,
    /// deflate.
    pub deflate: Gauge,
    /// br.
    pub brotli: Gauge,
    /// zstd.
    pub zstd: Gauge,
}

impl Gauges {
    /// The registered ones.
    #[must_use]
    pub fn of(metrics: &Metrics) -> Self {
        Self {
            identity: metrics.cache_bytes(None),
            gzip: metrics.cache_bytes(Some(Coding::Gzip)),
            deflate: metrics.cache_bytes(Some(Coding::Deflate)),
            brotli: metrics.cache_bytes(Some(Coding::Brotli)),
            zstd: metrics.cache_bytes(Some(Coding::Zstd)),
        }
    }
}

/// What a request finds.
#[derive(Debug, Clone)]
pub enum Found {
    /// The response that it selects; fresh or not.
    Object(Arc<Object>),
    /// The URL is known, under other values of the fields that Vary names.
    VaryMiss,
    /// Nothing is known of the URL.
    UriMiss,
}

/// A response and what it is to be found by.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its key.
    pub url: Url,
    /// The name of the route that answered: routes may lead one URL to different apps.
    pub route: Arc<str>,
    /// What Vary makes of the request.
    pub selector: Selector,
    /// What is stored.
    pub object: Arc<Object>,
}

/// Objects, variants and reused forms within one bound.
#[derive(Debug)]
pub struct Store {
    shelves: RwLock<Shelves>,
    capacity: usize,
    gauges: Gauges,
    hasher: RandomState,
}

impl Store {
    /// More stored responses of one URL push out its oldest: Vary on a field that anybody can fill
    /// must not fill the memory.
    pub const MOST_PER_URL: usize = 64;

    /// A store of at most so many bytes.
    #[must_use]
    pub fn new(memory: u64, gauges: Gauges) -> Self {
        Self {
            shelves: RwLock::new(Shelves::default()),
            capacity: usize::try_from(memory).unwrap_or(usize::MAX),
            gauges,
            hasher: RandomState::new(),
        }
    }

    /// The newest stored response that this request selects (RFC 9111 section 4.1).
    ///
    /// `request` is the head as the app would get it, before conditions are put in.
    #[must_use]
    pub fn find(&self, url: &Url, route: &str, request: &HeaderMap) -> Found {
        let shelves = self.shelves.read();
        let Some(page) = shelves.pages.get(url) else {
            return Found::UriMiss;
        };
        let mut selecting: Option<Selector> = None;
        let mut known = false;
        for id in page.iter().rev() {
            let Some(slot) = shelves.objects.get(id) else {
                continue;
            };
            if *slot.entry.route != *route {
                continue;
            }
            known = true;
            if slot.entry.selector.is_selected(&mut selecting, request) {
                shelves.queue.touch(&Item::Object(*id));
                return Found::Object(Arc::clone(&slot.entry.object));
            }
        }
        if known {
            Found::VaryMiss
        } else {
            Found::UriMiss
        }
    }

    /// What this request would be stored under if the answer varies as the newest one of its URL
    /// did; `None` where nothing is known. Those who wait for one fetch should agree in it.
    #[must_use]
    pub fn expected(&self, url: &Url, route: &str, request: &HeaderMap) -> Option<Selector> {
        let shelves = self.shelves.read();
        let ids = shelves.pages.get(url)?.iter().rev();
        let slots = ids.filter_map(|id| shelves.objects.get(id));
        let newest = slots.into_iter().find(|slot| *slot.entry.route == *route)?;
        Some(newest.entry.selector.of(request))
    }

    /// To be taken before the app is asked, and given to [`Self::insert`] with its answer.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.shelves.read().purges.now()
    }

    /// Stores a response in the place of one with the same key; `false` where it is too large for
    /// this memory, or a purge that means it came after `asked`.
    pub fn insert(&self, entry: Entry, asked: Moment) -> bool {
        let weight = entry.weight();
        let fingerprint =
            (self.hasher).hash_one((entry.url.as_str(), &*entry.route, &entry.selector));
        self.change(|shelves, trash| {
            let object = &entry.object;
            if weight > self.capacity / 2
                || shelves.purges.meant_since(asked, &entry.url, object.tags())
            {
                return false;
            }
            shelves.make_place(&entry, fingerprint, trash);
            shelves.make_room(weight, self.capacity, trash);
            shelves.add(entry, weight, fingerprint);
            true
        })
    }

    /// Puts what a validation made of an object in its place; variants stay, for the bytes are the
    /// same. `false` where the object is gone.
    pub fn refresh(&self, validated: Arc<Object>) -> bool {
        self.change(|shelves, trash| {
            let id = validated.id();
            let Some(slot) = shelves.objects.get(&id) else {
                return false;
            };
            let entry = Entry {
                object: validated,
                ..slot.entry.clone()
            };
            let weight = entry.weight();
            if weight > self.capacity / 2 {
                shelves.forget(id, trash);
                return false;
            }
            shelves.make_room(weight.saturating_sub(slot.weight), self.capacity, trash);
            shelves.replace(entry, weight, trash)
        })
    }

    /// The coded form of an object's bytes.
    #[must_use]
    pub fn variant(&self, object: ObjectId, coding: Coding) -> Option<Bytes> {
        let shelves = self.shelves.read();
        let variant = shelves.objects.get(&object)?.variants[coding as usize].as_ref()?;
        variant.uses.fetch_add(1, Ordering::Relaxed);
        shelves.queue.touch(&Item::Variant(object, coding));
        Some(variant.bytes.clone())
    }

    /// Keeps a coded form, in the place of an older one, and returns the kept bytes: an allocation
    /// of exactly their length. `None` where the object is gone or the memory too small.
    pub fn put_variant(
        &self,
        object: ObjectId,
        coding: Coding,
        parts: &[Bytes],
        dense: bool,
    ) -> Option<Bytes> {
        let bytes = exact(parts);
        let weight = coded_weight(&bytes);
        let item = Item::Variant(object, coding);
        self.change(|shelves, trash| {
            shelves.drop_variant(object, coding, trash);
            if weight > self.capacity / 2 || !shelves.objects.contains_key(&object) {
                return None;
            }
            shelves.make_room(weight, self.capacity, trash);
            // Making room may have taken the object itself.
            let slot = shelves.objects.get_mut(&object)?;
            slot.variants[coding as usize] = Some(Variant {
                bytes: bytes.clone(),
                dense,
                uses: AtomicU32::new(0),
            });
            // Of the key and not of these bytes, so that it is known after the next fetch.
            let fingerprint = self.hasher.hash_one((slot.fingerprint, coding));
            shelves.queue.insert(item, weight, fingerprint);
            shelves.bytes.add(Some(coding), weight);
            Some(bytes)
        })
    }

    /// The coded form of bytes that were coded before (see [`super::reuse`]).
    #[must_use]
    pub fn reused(&self, digest: &Digest) -> Option<Bytes> {
        let shelves = self.shelves.read();
        let bytes = shelves.reused.get(digest)?;
        shelves.queue.touch(&Item::Reused(*digest));
        Some(bytes.clone())
    }

    /// Keeps a coded form for [`Self::reused`], in an allocation of its own.
    pub fn put_reused(&self, digest: Digest, parts: &[Bytes]) {
        let bytes = exact(parts);
        let weight = coded_weight(&bytes);
        let item = Item::Reused(digest);
        let fingerprint = self.hasher.hash_one(item);
        self.change(|shelves, trash| {
            shelves.drop_reused(&digest, trash);
            if weight > self.capacity / 2 {
                return;
            }
            shelves.make_room(weight, self.capacity, trash);
            shelves.reused.insert(digest, bytes);
            shelves.queue.insert(item, weight, fingerprint);
            shelves.bytes.add(Some(digest.coding()), weight);
        });
    }

    /// Forgets what is meant, and returns how many objects that were.
    pub fn purge(&self, meant: &Meant) -> usize {
        match meant {
            Meant::Url(url) => self.purge_url(url),
            Meant::Prefix(prefix) => self.purge_prefix(prefix),
            Meant::Tag(tag) => self.purge_tag(tag),
        }
    }

    /// Forgets all whose URL satisfies, and stores nothing that was asked for before. Looks at
    /// every URL there is.
    pub fn purge_where(&self, meant: impl Fn(&Url) -> bool) -> usize {
        self.change(|shelves, trash| {
            shelves.purges.add_unknown();
            let pages = shelves.pages.iter().filter(|(url, _)| meant(url));
            let ids: Vec<_> = pages.flat_map(|(_, page)| page).copied().collect();
            shelves.forget_all(&ids, trash)
        })
    }

    /// An object with its key, if it is still there.
    #[must_use]
    pub fn entry(&self, object: ObjectId) -> Option<Entry> {
        let shelves = self.shelves.read();
        shelves.objects.get(&object).map(|slot| slot.entry.clone())
    }

    /// Forgets all that is stored under a URL, and returns how many objects that were. Also what an
    /// unsafe request invalidates (RFC 9111 section 4.4).
    pub fn purge_url(&self, url: &Url) -> usize {
        self.change(|shelves, trash| {
            shelves.purges.add_url(url);
            let ids = shelves.pages.get(url).cloned().unwrap_or_default();
            shelves.forget_all(&ids, trash)
        })
    }

    /// Forgets all whose URL starts so. Looks at every URL there is.
    pub fn purge_prefix(&self, prefix: &Url) -> usize {
        self.change(|shelves, trash| {
            shelves.purges.add(Purge::Prefix(prefix.as_str().into()));
            let pages = shelves.pages.iter();
            let below = pages.filter(|(url, _)| url.as_str().starts_with(prefix.as_str()));
            let ids: Vec<_> = below.flat_map(|(_, page)| page).copied().collect();
            shelves.forget_all(&ids, trash)
        })
    }

    /// Forgets all that carries this tag.
    pub fn purge_tag(&self, tag: &str) -> usize {
        self.change(|shelves, trash| {
            shelves.purges.add(Purge::Tag(tag.into()));
            let ids = shelves.tags.get(tag).into_iter().flatten();
            let ids: Vec<_> = ids.copied().collect();
            shelves.forget_all(&ids, trash)
        })
    }

    /// Forgets one object, if it is still there.
    pub fn forget(&self, object: ObjectId) {
        self.change(|shelves, trash| shelves.forget(object, trash));
    }

    /// The variants that could be made denser, each with how often it was sent since it was made.
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        let shelves = self.shelves.read();
        let mut found = Vec::new();
        for slot in shelves.objects.values() {
            for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
                let Some(variant) = &slot.variants[coding as usize] else {
                    continue;
                };
                let uses = variant.uses.load(Ordering::Relaxed);
                if !variant.dense && uses > 0 {
                    found.push(Candidate {
                        object: slot.entry.object.id(),
                        route: Arc::clone(&slot.entry.route),
                        coding,
                        plain: slot.entry.object.body().clone(),
                        uses,
                        length: variant.bytes.len(),
                    });
                }
            }
        }
        found
    }

    /// Bytes that are counted now, never more than the memory.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.shelves.read().queue.weight()
    }

    /// Stored responses.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.shelves.read().objects.len()
    }

    fn change<R>(&self, work: impl FnOnce(&mut Shelves, &mut Trash) -> R) -> R {
        let mut trash = Trash::default();
        let mut shelves = self.shelves.write();
        let result = work(&mut shelves, &mut trash);
        shelves.tidy();
        shelves.bytes.show(&self.gauges);
        drop(shelves);
        drop(trash);
        result
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
