//! Makes variants that are asked for again as dense as they get, while nothing else wants the CPUs.
//!
//! The hottest come first. Between two slices it looks whether other work has come, and then gives
//! up what it has: it will be idle again. The tag of the coded form stays, as levels may change
//! under it.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::Copies;
use crate::cache::densify::{Candidate, densest, order};
use crate::codec::{self, Encoder, Recipe, Step, cost};
use crate::telemetry::{Kind, RouteMetrics};
use crate::work::{Lane, Pool};

/// How often it looks whether there is something to do.
const LOOK: Duration = Duration::from_secs(1);

/// How many it does before it looks again which are the hottest.
const BATCH: usize = 8;

/// The longest job that cannot be given up: gzip's densest engine takes bodies whole.
const LONGEST: Duration = Duration::from_millis(100);

/// Bytes between two looks; engines at these levels work in larger blocks anyway.
const SLICE: usize = 16 * 1024;

/// What the work is done with.
pub struct Densifier {
    /// Whose variants.
    pub copies: Arc<Copies>,
    /// The threads that compress.
    pub pool: Pool,
    /// What it is counted in; not a route's.
    pub metrics: Arc<RouteMetrics>,
    /// Whether the route of this name wants it.
    pub wants: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// How one attempt ended.
enum Attempt {
    Done,
    /// Other work came.
    GivenUp,
}

impl Densifier {
    /// Works until it is dropped.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(LOOK).await;
            if !self.pool.is_idle() {
                continue;
            }
            let mut candidates = self.copies.store.candidates();
            candidates.retain(|candidate| (self.wants)(&candidate.route));
            for candidate in order(candidates, BATCH) {
                if let Attempt::GivenUp = self.attempt(&candidate).await {
                    break;
                }
            }
        }
    }

    async fn attempt(&self, candidate: &Candidate) -> Attempt {
        if !self.pool.is_idle() {
            return Attempt::GivenUp;
        }
        let copies = &self.copies;
        let (object, patience) = (candidate.object, copies.patience());
        if let Some(bytes) = copies
            .bring_coded(object, candidate.coding, true, patience)
            .await
        {
            tracing::debug!(bytes = bytes.len(), "another instance made it denser");
            return Attempt::Done;
        }
        let (coding, plain) = (candidate.coding, candidate.plain.clone());
        let size = plain.len();
        let recipe = Recipe::new(coding, densest(coding)).fitted(Some(size as u64));
        let whole = matches!(coding, codec::Coding::Gzip | codec::Coding::Deflate);
        if whole && cost::whole_estimate(recipe, size) > LONGEST {
            self.settle(candidate, None);
            return Attempt::Done;
        }
        self.metrics.encode_run(Kind::Cache, coding);
        let coded = if whole {
            self.whole(recipe, plain).await
        } else {
            self.sliced(recipe, plain).await
        };
        let Some((bytes, cpu)) = coded else {
            return Attempt::GivenUp;
        };
        let sizes = [size, bytes.len()].map(|size| size as u64);
        self.metrics
            .encoded(Kind::Cache, coding, sizes[0], sizes[1], cpu);
        self.settle(
            candidate,
            Some(bytes).filter(|bytes| bytes.len() < candidate.length),
        );
        Attempt::Done
    }

    /// Keeps what is denser; what is not stays, and is not tried again.
    fn settle(&self, candidate: &Candidate, denser: Option<Bytes>) {
        let known = || (self.copies.store).variant(candidate.object, candidate.coding);
        if let Some(bytes) = denser.or_else(known) {
            // Where it is gone meanwhile there is nothing to do.
            let _ = (self.copies).keep_coded(candidate.object, candidate.coding, &[bytes], true);
        }
    }

    async fn whole(&self, recipe: Recipe, plain: Bytes) -> Option<(Bytes, Duration)> {
        let estimate = cost::whole_estimate(recipe, plain.len());
        let job = move || codec::whole(recipe, std::slice::from_ref(&plain), plain.len(), 0);
        let done = self.pool.run(Lane::Bulk, estimate, job).await.ok()?;
        Some((done.value.ok()?, done.cpu))
    }

    async fn sliced(&self, recipe: Recipe, mut rest: Bytes) -> Option<(Bytes, Duration)> {
        let mut encoder = Encoder::new(recipe).ok()?;
        let mut output = BytesMut::new();
        let mut cpu = Duration::ZERO;
        loop {
            let slice = rest.split_to(SLICE.min(rest.len()));
            let last = rest.is_empty();
            let estimate = cost::stream_estimate(recipe, slice.len());
            let job = move || {
                let step = if last { Step::Finish } else { Step::Continue };
                let coded = encoder.encode(&slice, step, &mut output);
                coded.map(|()| (encoder, output))
            };
            let done = self.pool.run(Lane::Bulk, estimate, job).await.ok()?;
            cpu += done.cpu;
            (encoder, output) = done.value.ok()?;
            if last {
                return Some((output.freeze(), cpu));
            }
            if !self.pool.is_idle() {
                return None;
            }
        }
    }
}
