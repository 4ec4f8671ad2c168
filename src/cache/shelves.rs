//! What lies in the store and how it hangs together: pages of objects, their variants, tags, and
//! the order in which things are given up. One owner changes it at a time; nothing here locks.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU32;

use bytes::Bytes;

use super::key::Url;
use super::object::{Object, ObjectId};
use super::purges::Purges;
use super::queue::Queue;
use super::reuse::Digest;
use super::store::{Entry, Gauges, Store};
use super::weight;
use crate::codec::Coding;

#[derive(Debug, Default)]
pub(super) struct Shelves {
    /// Oldest first, at most [`Store::MOST_PER_URL`].
    pub(super) pages: HashMap<Url, Vec<ObjectId>>,
    pub(super) objects: HashMap<ObjectId, Box<Slot>>,
    pub(super) tags: HashMap<Box<str>, HashSet<ObjectId>>,
    pub(super) reused: HashMap<Digest, Bytes>,
    pub(super) queue: Queue<Item>,
    pub(super) purges: Purges,
    pub(super) bytes: Counts,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) entry: Entry,
    pub(super) weight: usize,
    /// Names its key.
    pub(super) fingerprint: u64,
    pub(super) variants: [Option<Variant>; 4],
}

#[derive(Debug)]
pub(super) struct Variant {
    pub(super) bytes: Bytes,
    pub(super) dense: bool,
    /// Since it was made.
    pub(super) uses: AtomicU32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Item {
    Object(ObjectId),
    Variant(ObjectId, Coding),
    Reused(Digest),
}

/// Weights by coding, plain ones last.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts([usize; 5]);

/// What is to be freed once the lock is gone.
#[derive(Debug, Default)]
pub(super) struct Trash {
    pub(super) slots: Vec<Slot>,
    pub(super) bytes: Vec<Bytes>,
}

impl Entry {
    pub(super) fn weight(&self) -> usize {
        self.object.weight() + self.selector.weight() + weight::allocation(self.url.as_str().len())
    }
}

impl Shelves {
    /// Takes away what has the same key, and the oldest of a URL that has too many.
    pub(super) fn make_place(&mut self, entry: &Entry, fingerprint: u64, trash: &mut Trash) {
        let ids = self.pages.get(&entry.url).cloned().unwrap_or_default();
        let same = ids.iter().copied().find(|id| {
            self.objects.get(id).is_some_and(|slot| {
                slot.entry.route == entry.route && slot.entry.selector == entry.selector
            })
        });
        if same.is_some() {
            self.queue.welcome(fingerprint);
        }
        let surplus = (ids.len() >= Store::MOST_PER_URL).then(|| ids[0]);
        if let Some(id) = same.or(surplus) {
            self.forget(id, trash);
        }
    }

    pub(super) fn make_room(&mut self, weight: usize, capacity: usize, trash: &mut Trash) {
        while self.queue.weight() + weight > capacity {
            match self.queue.evict() {
                Some(Item::Object(id)) => self.forget(id, trash),
                Some(Item::Variant(id, coding)) => self.drop_variant(id, coding, trash),
                Some(Item::Reused(digest)) => self.drop_reused(&digest, trash),
                None => return,
            }
        }
    }

    pub(super) fn add(&mut self, entry: Entry, weight: usize, fingerprint: u64) {
        let id = entry.object.id();
        self.pages.entry(entry.url.clone()).or_default().push(id);
        self.index(&entry.object);
        self.bytes.add(None, weight);
        self.queue.insert(Item::Object(id), weight, fingerprint);
        let slot = Slot {
            entry,
            weight,
            fingerprint,
            variants: [None, None, None, None],
        };
        self.objects.insert(id, Box::new(slot));
    }

    fn index(&mut self, object: &Object) {
        for tag in object.tags().iter() {
            self.tags.entry(tag.into()).or_default().insert(object.id());
        }
    }

    fn unindex(&mut self, object: &Object) {
        for tag in object.tags().iter() {
            if let Some(ids) = self.tags.get_mut(tag) {
                ids.remove(&object.id());
                if ids.is_empty() {
                    self.tags.remove(tag);
                }
            }
        }
    }

    /// The same object under another head.
    pub(super) fn replace(&mut self, entry: Entry, weight: usize, trash: &mut Trash) -> bool {
        let id = entry.object.id();
        let Some(mut slot) = self.objects.remove(&id) else {
            return false;
        };
        self.unindex(&slot.entry.object);
        self.index(&entry.object);
        self.bytes.remove(None, slot.weight);
        self.bytes.add(None, weight);
        self.queue.reweigh(&Item::Object(id), weight);
        let variants = std::mem::take(&mut slot.variants);
        let fingerprint = slot.fingerprint;
        trash.slots.push(*slot);
        let slot = Slot {
            entry,
            weight,
            fingerprint,
            variants,
        };
        self.objects.insert(id, Box::new(slot));
        true
    }

    pub(super) fn forget_all(&mut self, ids: &[ObjectId], trash: &mut Trash) -> usize {
        for &id in ids {
            self.forget(id, trash);
        }
        ids.len()
    }

    /// An object and all that hangs on it.
    pub(super) fn forget(&mut self, id: ObjectId, trash: &mut Trash) {
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
            self.drop_variant(id, coding, trash);
        }
        self.queue.remove(&Item::Object(id));
        let Some(slot) = self.objects.remove(&id) else {
            return;
        };
        self.bytes.remove(None, slot.weight);
        self.unindex(&slot.entry.object);
        if let Some(page) = self.pages.get_mut(&slot.entry.url) {
            page.retain(|&other| other != id);
            if page.is_empty() {
                self.pages.remove(&slot.entry.url);
            }
        }
        trash.slots.push(*slot);
    }

    pub(super) fn drop_variant(&mut self, id: ObjectId, coding: Coding, trash: &mut Trash) {
        self.queue.remove(&Item::Variant(id, coding));
        let slot = self.objects.get_mut(&id);
        if let Some(variant) = slot.and_then(|slot| slot.variants[coding as usize].take()) {
            let weight = coded_weight(&variant.bytes);
            self.bytes.remove(Some(coding), weight);
            trash.bytes.push(variant.bytes);
        }
    }

    pub(super) fn drop_reused(&mut self, digest: &Digest, trash: &mut Trash) {
        self.queue.remove(&Item::Reused(*digest));
        if let Some(bytes) = self.reused.remove(digest) {
            let weight = coded_weight(&bytes);
            self.bytes.remove(Some(digest.coding()), weight);
            trash.bytes.push(bytes);
        }
    }

    /// Gives back tables that many small things left behind.
    pub(super) fn tidy(&mut self) {
        fn fit<K: Eq + std::hash::Hash, V>(table: &mut HashMap<K, V>) {
            if table.capacity() > 4 * table.len() + 512 {
                table.shrink_to(2 * table.len());
            }
        }
        fit(&mut self.pages);
        fit(&mut self.objects);
        fit(&mut self.tags);
        fit(&mut self.reused);
    }
}

/// A variant or a reused form, with what the tables know of it.
pub(super) fn coded_weight(bytes: &Bytes) -> usize {
    weight::ENTRY + weight::allocation(bytes.len())
}

impl Counts {
    fn of(&mut self, coding: Option<Coding>) -> &mut usize {
        &mut self.0[coding.map_or(4, |coding| coding as usize)]
    }

    pub(super) fn add(&mut self, coding: Option<Coding>, weight: usize) {
        *self.of(coding) += weight;
    }

    fn remove(&mut self, coding: Option<Coding>, weight: usize) {
        *self.of(coding) -= weight;
    }

    pub(super) fn show(&mut self, gauges: &Gauges) {
        for (gauge, coding) in [
            (&gauges.identity, None),
            (&gauges.gzip, Some(Coding::Gzip)),
            (&gauges.deflate, Some(Coding::Deflate)),
            (&gauges.brotli, Some(Coding::Brotli)),
            (&gauges.zstd, Some(Coding::Zstd)),
        ] {
            gauge.set(i64::try_from(*self.of(coding)).unwrap_or(i64::MAX));
        }
    }
}
