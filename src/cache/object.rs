//! A stored response: its head, its bytes as the app sent them, and until when they are fresh.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, HeaderMap};
use http::{HeaderValue, StatusCode};

use super::freshness::Freshness;
use super::tags::Tags;
use super::{kept, weight};

/// Names the bytes of one fetch in this process: variants hang on it, so that those of an older
/// fetch can never be sent for a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(u64);

impl ObjectId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A stored response.
#[derive(Debug, Clone)]
pub struct Object {
    id: ObjectId,
    status: StatusCode,
    head: HeaderMap,
    body: Bytes,
    freshness: Freshness,
    tags: Tags,
}

impl Object {
    /// What is kept of an answer whose head came at that time; `None` where its tags are out of bounds.
    ///
    /// The body is copied into one allocation of exactly its length: a slice of a read buffer would
    /// hold all of that buffer.
    #[must_use]
    pub fn new(
        status: StatusCode,
        response: &HeaderMap,
        answered: SystemTime,
        body: &[Bytes],
        freshness: Freshness,
    ) -> Option<Self> {
        Some(Self {
            id: ObjectId::next(),
            status,
            tags: Tags::read(response)?,
            head: kept::head(response, answered),
            body: exact(body),
            freshness,
        })
    }

    /// The same bytes, and so the same variants, under the head that a validation made of it.
    #[must_use]
    pub fn validated(&self, head: HeaderMap, freshness: Freshness) -> Option<Self> {
        Some(Self {
            tags: Tags::read(&head)?,
            head,
            body: self.body.clone(),
            freshness,
            ..*self
        })
    }

    /// The same, to be validated before its next use.
    #[must_use]
    pub fn ended(&self) -> Self {
        Self {
            freshness: self.freshness.ended(),
            ..self.clone()
        }
    }

    /// Names its bytes.
    #[must_use]
    pub const fn id(&self) -> ObjectId {
        self.id
    }

    /// Of the answer.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The kept fields: end-to-end, without Age and Set-Cookie.
    #[must_use]
    pub const fn head(&self) -> &HeaderMap {
        &self.head
    }

    /// The bytes as the app sent them; cloning shares them.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// How it may be used.
    #[must_use]
    pub const fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    /// What it is purged by.
    #[must_use]
    pub const fn tags(&self) -> &Tags {
        &self.tags
    }

    /// The coding that the app applied, if any: it is kept so, and only for who accepts it.
    #[must_use]
    pub fn content_encoding(&self) -> Option<&HeaderValue> {
        self.head.get(CONTENT_ENCODING)
    }

    pub(super) fn weight(&self) -> usize {
        weight::ENTRY
            + size_of::<Self>()
            + weight::head(&self.head)
            + weight::allocation(self.body.len())
            + self.tags.weight()
    }

    /// One that came from outside this process.
    pub(super) fn foreign(
        status: StatusCode,
        head: HeaderMap,
        body: Bytes,
        freshness: Freshness,
    ) -> Option<Self> {
        Some(Self {
            id: ObjectId::next(),
            status,
            tags: Tags::read(&head)?,
            head,
            body,
            freshness,
        })
    }
}

/// All parts in one allocation without slack.
#[must_use]
pub fn exact(parts: &[Bytes]) -> Bytes {
    match parts {
        [] => Bytes::new(),
        [one] => Bytes::copy_from_slice(one),
        parts => {
            let length = parts.iter().map(Bytes::len).sum();
            let mut whole = Vec::with_capacity(length);
            for part in parts {
                whole.extend_from_slice(part);
            }
            Bytes::from(whole)
        }
    }
}
