//! What all routes share of the cache, what a route brings along, and what a purge takes away.

use std::sync::Arc;

use crate::body::Budget;
use crate::cache::flight::{FetchKey, Flights};
use crate::cache::key::Url;
use crate::cache::object::ObjectId;
use crate::cache::reuse::Names;
use crate::cache::store::{Meant, Store};
use crate::codec::Coding;
use crate::config::settings::{Policy, QueryKey};
use crate::shared::Tier;
use crate::telemetry::RouteMetrics;
use crate::upstream::Upstream;

/// What is kept, and the work under way for it. One for all routes; a reload keeps it.
#[derive(Debug)]
pub struct Copies {
    /// The copies.
    pub store: Arc<Store>,
    /// The second tier, which other instances use too.
    pub shared: Option<Tier>,
    /// Names bodies whose coded form is reused.
    pub names: Names,
    pub(super) fetches: Flights<FetchKey>,
    pub(super) encodes: Flights<(ObjectId, Coding)>,
    /// Questions to the second tier.
    pub(super) brought: Flights<FetchKey>,
    /// What all fetches together may read ahead of their clients.
    pub(super) filling: Budget,
}

impl Copies {
    /// Keeps in `store`, and in `shared`; fetches under way may hold a quarter of `memory` bytes beside it.
    #[must_use]
    pub fn new(store: Arc<Store>, shared: Option<Tier>, names: Names, memory: u64) -> Self {
        Self {
            store,
            shared,
            names,
            brought: Flights::default(),
            fetches: Flights::default(),
            encodes: Flights::default(),
            filling: Budget::new(memory / 4),
        }
    }
}

/// What a purge may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// One URL, in each form that a route's `cache.query` gives it.
    Url(String),
    /// All URLs that start so.
    Prefix(String),
    /// All answers that the app gave this tag.
    Tag(String),
}

impl Purge {
    /// What it means in keys. `None`: no absolute URL.
    #[must_use]
    pub fn meant(&self, queries: &[QueryKey]) -> Option<Vec<Meant>> {
        match self {
            Self::Tag(tag) => Some(vec![Meant::Tag(tag.as_str().into())]),
            Self::Prefix(prefix) => {
                let prefix = Url::parse(prefix, &QueryKey::All)?;
                Some(vec![Meant::Prefix(prefix)])
            }
            Self::Url(url) => {
                let mut forms = vec![Url::parse(url, &QueryKey::All)?];
                for query in queries {
                    let form = Url::parse(url, query)?;
                    if !forms.contains(&form) {
                        forms.push(form);
                    }
                }
                Some(forms.into_iter().map(Meant::Url).collect())
            }
        }
    }
}

impl Copies {
    /// Forgets what is meant, in all codings, and counts the objects of this instance; others have
    /// been told when this ends, or are told as soon as the second tier is reached.
    pub async fn purge(&self, meant: Vec<Meant>) -> usize {
        let purged = meant.iter().map(|meant| self.store.purge(meant)).sum();
        if let Some(tier) = &self.shared {
            tier.purge(meant).await;
        }
        purged
    }
}

/// A route, as far as its copies care; cheap to clone.
#[derive(Clone)]
pub struct Site {
    /// Its name, which is part of the key.
    pub name: Arc<str>,
    /// How its exchanges are treated.
    pub policy: Arc<Policy>,
    /// Whom it asks.
    pub upstream: Arc<Upstream>,
    /// What it counts in.
    pub metrics: Arc<RouteMetrics>,
}
