//! Same bytes, same work: an answer whose plain bytes were coded before gets that coded form, also
//! where nothing may be kept by HTTP's rules. The app was asked, so nothing can be stale.
//!
//! Never with padding, whose length has to differ each time, and never across routes that hide
//! what they compress.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::cached::Copies;
use super::http::Tools;
use crate::body::{Keep, Ledger};
use crate::cache::reuse::{Digest, Form, Naming};
use crate::codec::Recipe;
use crate::config::settings::{CrossSite, Policy};
use crate::work::Lane;

/// Bytes that are hashed on a network thread: a hand-over costs no less. The rest takes about a
/// nanosecond a byte, in the pool.
const NAMED_HERE: usize = 32 * 1024;

/// The search for one answer's coded form.
pub(super) struct Reuse {
    copies: Arc<Copies>,
    only: Option<Box<str>>,
    naming: Option<Naming>,
}

impl Reuse {
    /// `None` where the route does not reuse.
    pub(super) fn of(tools: &Tools, policy: &Policy, ledger: &Ledger) -> Option<Self> {
        let compress = &policy.compress;
        if !policy.cache.reuse || compress.breach_pad > 0 {
            return None;
        }
        let guarded = compress.breach_cross_site == CrossSite::Plain;
        Some(Self {
            copies: Arc::clone(&tools.copies),
            only: guarded.then(|| ledger.metrics.name().into()),
            naming: None,
        })
    }

    /// Names the body, and looks for what it was coded to.
    pub(super) async fn find(
        &mut self,
        tools: &Tools,
        recipe: Recipe,
        body: &[Bytes],
    ) -> Option<Bytes> {
        let mut naming = self.copies.names.begin();
        let size: usize = body.iter().map(Bytes::len).sum();
        if size <= NAMED_HERE {
            body.iter().for_each(|piece| naming.update(piece));
        } else {
            let body = body.to_vec();
            let estimate = Duration::from_nanos(size as u64);
            let job = move || {
                body.iter().for_each(|piece| naming.update(piece));
                naming
            };
            // Too busy to name it: then it is coded, or not, as any other.
            naming = tools.pool.run(Lane::Short, estimate, job).await.ok()?.value;
        }
        let digest = naming.finish(self.form(recipe));
        self.naming = Some(naming);
        self.copies.store.reused(&digest)
    }

    /// Keeps what the body that was named is coded to.
    pub(super) fn keep(&self, recipe: Recipe, coded: &Bytes) {
        if let Some(naming) = &self.naming {
            let digest = naming.finish(self.form(recipe));
            self.copies
                .store
                .put_reused(digest, std::slice::from_ref(coded));
        }
    }

    /// The same, piece by piece, at the end.
    pub(super) fn pieces(&self, recipe: Recipe) -> Option<Box<dyn Keep>> {
        let digest = self.naming.as_ref()?.finish(self.form(recipe));
        Some(Box::new(Pieces {
            copies: Arc::clone(&self.copies),
            digest,
            pieces: Vec::new(),
        }))
    }

    fn form(&self, recipe: Recipe) -> Form<'_> {
        Form {
            coding: recipe.coding,
            effort: recipe.effort,
            only: self.only.as_deref(),
        }
    }
}

struct Pieces {
    copies: Arc<Copies>,
    digest: Digest,
    pieces: Vec<Bytes>,
}

impl Keep for Pieces {
    fn take(&mut self, piece: &Bytes) {
        self.pieces.push(piece.clone());
    }

    fn complete(self: Box<Self>) {
        self.copies.store.put_reused(self.digest, &self.pieces);
    }
}
