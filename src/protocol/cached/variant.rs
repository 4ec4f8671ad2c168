//! The coded forms of a copy: each made once, on the first request that wants it, by a task of its
//! own, so that a client that leaves ends it for nobody.
//!
//! Who comes while it is made waits for `pool.max_wait` and gets plain then. That plain bytes are as
//! good is kept too: as an empty variant, which no coder makes.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use super::{Copies, Site};
use crate::body::{Keep, Ledger};
use crate::cache::flight::{Join, Lead, Waited};
use crate::cache::object::{Object, ObjectId};
use crate::codec::{self, CodecError, Coding, Encoder, Recipe, Step, cost, sample};
use crate::config::settings::Policy;
use crate::policy::{Reason, under};
use crate::protocol::http::{LONGEST_JOB, Tools};
use crate::telemetry::{Kind, RouteMetrics};
use crate::work::{CpuClock, Lane, Pool};

/// The copy's bytes in this coding; or why plain ones are sent.
pub(super) async fn coded(
    tools: &Tools,
    site: &Site,
    object: &Arc<Object>,
    recipe: Recipe,
    (ledger, tier_left): (&mut Ledger, Duration),
) -> Result<Bytes, Reason> {
    let copies = &tools.copies;
    let coding = recipe.coding;
    if let Some(bytes) = copies.store.variant(object.id(), coding) {
        return worth(bytes);
    }
    let key = (object.id(), coding);
    let mut joined = match copies.encodes.join(&key, Instant::now()) {
        Join::Lead(lead) => Waited::Lead(lead),
        Join::Alone => Waited::Alone,
        Join::Wait(wait) => {
            let began = Instant::now();
            let waited = wait.ended(tools.max_wait + copies.patience()).await;
            ledger.waited(began.elapsed());
            waited
        }
    };
    if matches!(joined, Waited::Landed) {
        if let Some(bytes) = copies.store.variant(object.id(), coding) {
            return worth(bytes);
        }
        // It was made and given up again: memory is short.
        joined = Waited::Alone;
    }
    let Waited::Lead(lead) = joined else {
        return Err(Reason::Pressure);
    };
    // It may have landed between the look and the joining.
    if let Some(bytes) = copies.store.variant(object.id(), coding) {
        lead.landed();
        return worth(bytes);
    }
    let making = Making {
        copies: Arc::clone(copies),
        metrics: Arc::clone(&site.metrics),
        pool: tools.pool.clone(),
        object: Arc::clone(object),
        recipe,
        lead,
    };
    if making.is_inline(tools.inline) {
        return making.here();
    }
    if let Some(bytes) = copies
        .bring_coded(object.id(), coding, false, tier_left)
        .await
    {
        making.lead.landed();
        return worth(bytes);
    }
    let Some(recipe) = under(recipe, tools.pool.pressure().expected_wait, tools.max_wait) else {
        making.lead.alone();
        return Err(Reason::Pressure);
    };
    let making = Making { recipe, ..making };
    tokio::spawn(making.away())
        .await
        .unwrap_or(Err(Reason::Pressure))
}

fn worth(bytes: Bytes) -> Result<Bytes, Reason> {
    if bytes.is_empty() {
        Err(Reason::Incompressible)
    } else {
        Ok(bytes)
    }
}

/// One variant under way.
struct Making {
    copies: Arc<Copies>,
    metrics: Arc<RouteMetrics>,
    pool: Pool,
    object: Arc<Object>,
    recipe: Recipe,
    lead: Lead<(ObjectId, Coding)>,
}

impl Making {
    fn is_inline(&self, most: usize) -> bool {
        let size = self.object.body().len();
        size <= most && cost::is_inline_whole(self.recipe, size)
    }

    /// Where it stands: cheaper than a hand-over.
    fn here(self) -> Result<Bytes, Reason> {
        let body = self.object.body().clone();
        self.metrics.encode_run(Kind::Http, self.recipe.coding);
        let clock = CpuClock::start();
        let output = codec::whole(self.recipe, std::slice::from_ref(&body), body.len(), 0);
        let cpu = clock.elapsed();
        match output {
            Ok(bytes) => self.keep(bytes, cpu),
            Err(_) => self.failed(),
        }
    }

    /// In the pool: in one shot, or in slices where that would take too long.
    async fn away(self) -> Result<Bytes, Reason> {
        let body = self.object.body().clone();
        if sample::looks_incompressible(std::slice::from_ref(&body)) {
            return self.plain();
        }
        let recipe = self.recipe.fitted(Some(body.len() as u64));
        let estimate = cost::whole_estimate(recipe, body.len());
        self.metrics.encode_run(Kind::Http, recipe.coding);
        if estimate > LONGEST_JOB {
            return self.sliced(body).await;
        }
        let lane = if estimate <= cost::SLICE {
            Lane::Short
        } else {
            Lane::Bulk
        };
        let job = move || codec::whole(recipe, std::slice::from_ref(&body), body.len(), 0);
        match self.pool.run(lane, estimate, job).await {
            Ok(done) => match done.value {
                Ok(bytes) => self.keep(bytes, done.cpu),
                Err(_) => self.failed(),
            },
            Err(_) => self.failed(),
        }
    }

    async fn sliced(self, body: Bytes) -> Result<Bytes, Reason> {
        let recipe = self.recipe.streaming(Some(body.len() as u64));
        match slices(&self.pool, recipe, body).await {
            Some((bytes, cpu)) => self.keep(bytes, cpu),
            None => self.failed(),
        }
    }

    fn keep(self, bytes: Bytes, cpu: Duration) -> Result<Bytes, Reason> {
        let (size, coding) = (self.object.body().len(), self.recipe.coding);
        self.metrics
            .encoded(Kind::Http, coding, size as u64, bytes.len() as u64, cpu);
        if bytes.len() >= size {
            return self.plain();
        }
        let coded = std::slice::from_ref(&bytes);
        let kept = (self.copies).keep_coded(self.object.id(), coding, coded, false);
        self.lead.landed();
        Ok(kept.unwrap_or(bytes))
    }

    /// Plain is as good: nobody has to find that out again.
    fn plain(self) -> Result<Bytes, Reason> {
        let (object, coding) = (self.object.id(), self.recipe.coding);
        // Where it cannot be kept it is found out again.
        let _ = self.copies.keep_coded(object, coding, &[], true);
        self.lead.landed();
        Err(Reason::Incompressible)
    }

    fn failed(self) -> Result<Bytes, Reason> {
        self.lead.alone();
        Err(Reason::Pressure)
    }
}

/// Encodes a long body slice by slice on the bulk lane. `None`: the pool or the encoder gave up.
async fn slices(pool: &Pool, recipe: Recipe, body: Bytes) -> Option<(Bytes, Duration)> {
    let mut encoder = Encoder::new(recipe).ok()?;
    let mut output = BytesMut::new();
    let mut cpu = Duration::ZERO;
    let most = cost::slice_bytes(recipe, cost::BULK_SLICE).max(1);
    let mut rest = body;
    loop {
        let slice = rest.split_to(most.min(rest.len()));
        let last = rest.is_empty();
        let estimate = cost::stream_estimate(recipe, slice.len());
        let errand = pool.run_more(Lane::Bulk, estimate, move || {
            let step = if last { Step::Finish } else { Step::Continue };
            let coded = encoder.encode(&slice, step, &mut output);
            (coded, encoder, output)
        });
        let done = errand.await.ok()?;
        cpu += done.cpu;
        let coded: Result<(), CodecError>;
        (coded, encoder, output) = done.value;
        coded.ok()?;
        if last {
            return Some((output.freeze(), cpu));
        }
    }
}

/// Keeps what an answer is coded to on its way, as a variant of the copy that it becomes.
pub struct Keeping {
    copies: Arc<Copies>,
    landed: Arc<OnceLock<Arc<Object>>>,
    most: usize,
}

impl Keeping {
    /// `None` where coded forms differ from answer to answer.
    pub(super) fn new(
        copies: Arc<Copies>,
        landed: Arc<OnceLock<Arc<Object>>>,
        policy: &Policy,
    ) -> Option<Self> {
        let most = usize::try_from(policy.cache.max_object).unwrap_or(usize::MAX);
        (policy.compress.breach_pad == 0).then_some(Self {
            copies,
            landed,
            most,
        })
    }

    /// All of it at once.
    pub fn whole(&self, coding: Coding, coded: &Bytes) {
        self.put(coding, std::slice::from_ref(coded));
    }

    /// Piece by piece.
    #[must_use]
    pub fn pieces(self, coding: Coding) -> Box<dyn Keep> {
        Box::new(Pieces {
            keeping: self,
            coding,
            pieces: Vec::new(),
            size: 0,
        })
    }

    fn put(&self, coding: Coding, pieces: &[Bytes]) {
        if let Some(object) = self.landed.get()
            && self.copies.store.variant(object.id(), coding).is_none()
        {
            // Where it cannot be kept it is made again.
            let _ = self.copies.keep_coded(object.id(), coding, pieces, false);
        }
    }
}

struct Pieces {
    keeping: Keeping,
    coding: Coding,
    pieces: Vec<Bytes>,
    size: usize,
}

impl Keep for Pieces {
    fn take(&mut self, piece: &Bytes) {
        self.size += piece.len();
        if self.size <= self.keeping.most {
            self.pieces.push(piece.clone());
        } else {
            self.pieces = Vec::new();
        }
    }

    fn complete(self: Box<Self>) {
        if self.size <= self.keeping.most {
            self.keeping.put(self.coding, &self.pieces);
        }
    }
}
