//! An HTTP answer on its way from the app to a client: planned, gathered, coded.
//!
//! Everything that may turn an answer plain is decided before its head is sent: the policy on the
//! head, the bytes of the first block, the pressure on the pool. After that a fault aborts.

use std::iter::successors;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::response::Parts;
use http::{HeaderMap, Method, Response, Version};
use tokio::time::Sleep;

use super::cached::{Copies, Keeping};
use super::failure::{Failure, Kind};
use super::reuse::Reuse;
use super::websocket::House;
use crate::body::{
    AppBody, Body, Budget, EncodeBody, EncodeSettings, Gathered, Guarded, Lease, Ledger, Plain,
    Source, Workshop, gather,
};
use crate::codec::{self, Recipe, cost, sample};
use crate::config::settings::{Compress, Policy};
use crate::head::media::MediaType;
use crate::head::transform;
use crate::policy::{self, Asked, Plan, Question, Reason};
use crate::telemetry::{self, CacheResult, RouteMetrics};
use crate::work::{CpuClock, Lane, Pool};

/// What of a long body is looked at before its head is sent.
const FIRST_BLOCK: usize = 64 * 1024;

/// The longest that one job of the pool may take: whole bodies that would take longer are streamed.
/// 1.1 MB at br 4 are just within it: sixteen such streams by turns cost 1.6 times as much CPU.
pub(super) const LONGEST_JOB: Duration = Duration::from_millis(12);

/// What exchanges compute with.
#[derive(Debug, Clone)]
pub struct Tools {
    /// The threads that compress.
    pub pool: Pool,
    /// What all answers together may hold while they are gathered.
    pub budget: Budget,
    /// `pool.inline`.
    pub inline: usize,
    /// `pool.max_wait`.
    pub max_wait: Duration,
    /// Where copies and reused forms are.
    pub copies: Arc<Copies>,
    /// What WebSocket connections share.
    pub websockets: Arc<House>,
}

impl Tools {
    /// What the messages of a call on this route are worked on with.
    #[must_use]
    pub fn workshop(&self, metrics: &Arc<RouteMetrics>) -> Workshop {
        Workshop {
            pool: self.pool.clone(),
            budget: self.budget.clone(),
            inline: self.inline,
            max_wait: self.max_wait,
            metrics: Arc::clone(metrics),
        }
    }
}

/// An answer whose head came from the app, hop-by-hop fields already removed.
pub struct FromApp {
    /// Its head.
    pub head: Parts,
    /// Its body.
    pub incoming: AppBody,
    /// What it occupies.
    pub lease: Option<Lease>,
    /// When the exchange is overdue.
    pub deadline: Option<Pin<Box<Sleep>>>,
    /// Keeps what it is coded to.
    pub keeping: Option<Keeping>,
}

/// What the client will get.
struct Coded {
    source: Source,
    coding: Option<codec::Coding>,
    length: Option<u64>,
    reason: Reason,
}

/// Makes the client's answer of the app's.
///
/// # Errors
/// The app's body failed before anything was sent.
pub async fn respond(
    tools: &Tools,
    policy: &Policy,
    asked: &Asked,
    from: FromApp,
    mut ledger: Box<Ledger>,
) -> Result<Response<Body>, (Failure, Box<Ledger>)> {
    let FromApp {
        mut head,
        incoming,
        lease,
        deadline,
        keeping,
    } = from;
    let compress = &policy.compress;
    ledger.status = head.status;
    let length = incoming.size_hint().exact();
    let verdict = policy::plan(&Question {
        compress,
        asked,
        status: head.status,
        head: &head.headers,
        length: if asked.method == Method::HEAD {
            stated_length(&head.headers)
        } else {
            length
        },
    });
    let coded = match verdict.plan {
        Plan::Pass(reason) => Coded::plain(
            Plain {
                rest: Some(incoming),
                ..Plain::default()
            },
            reason,
        ),
        Plan::Encode(recipe) if asked.method == Method::HEAD => Coded {
            source: Source::Empty,
            coding: Some(recipe.coding),
            length: None,
            reason: Reason::Compressed,
        },
        Plan::Encode(recipe) => {
            let mut job = Job {
                tools,
                compress,
                reuse: Reuse::of(tools, policy, &ledger),
                keeping,
                asked,
                recipe,
                length,
            };
            match job.code(incoming, &head.headers, &mut ledger).await {
                Ok(coded) => coded,
                Err(failure) => return Err((failure, ledger)),
            }
        }
    };
    ledger.reason = coded.reason.word();
    ledger.coding = coded.coding;
    if coded.reason == Reason::AlreadyCoded {
        ledger.metrics.app_compressed(telemetry::Kind::Http);
    }
    match coded.coding {
        Some(coding) => transform::coded(&mut head.headers, coding, coded.length),
        None if verdict.vary => transform::plain_variant(&mut head.headers),
        None => transform::untouched(&mut head.headers),
    }
    let body = Guarded::new(coded.source, ledger, lease, deadline);
    Ok(Response::from_parts(head, Body::Guarded(Box::new(body))))
}

/// The length that the head of an answer to HEAD states.
fn stated_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(http::header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// One answer that the policy wants coded.
struct Job<'a> {
    tools: &'a Tools,
    compress: &'a Compress,
    reuse: Option<Reuse>,
    keeping: Option<Keeping>,
    asked: &'a Asked,
    recipe: Recipe,
    length: Option<u64>,
}

impl Job<'_> {
    async fn code(
        &mut self,
        mut incoming: AppBody,
        headers: &HeaderMap,
        ledger: &mut Ledger,
    ) -> Result<Coded, Failure> {
        let gathered = self.gather(&mut incoming, headers).await?;
        if gathered.complete
            && (gathered.size as u64) < self.compress.min_size
            && self.may_be_plain()
            || gathered.complete && gathered.size == 0
        {
            return Ok(Coded::rest(gathered, incoming, Reason::MinSize));
        }
        if self.may_be_plain() && sample::looks_incompressible(&gathered.chunks) {
            return Ok(Coded::rest(gathered, incoming, Reason::Incompressible));
        }
        if let Some(coded) = self.reused(&gathered, ledger).await {
            return Ok(coded);
        }
        let Some(recipe) = self.affordable(&gathered) else {
            return Ok(Coded::rest(gathered, incoming, Reason::Pressure));
        };
        let fitted = recipe.fitted(Some(gathered.size as u64));
        if gathered.complete
            && gathered.trailers.is_none()
            && cost::whole_estimate(fitted, gathered.size) <= LONGEST_JOB
        {
            return Ok(self.whole(fitted, gathered, ledger).await);
        }
        if self.asked.version == Version::HTTP_10 {
            return Ok(Coded::rest(gathered, incoming, Reason::Version));
        }
        self.stream(recipe, gathered, incoming, ledger)
    }

    /// The form that the same bytes were coded to before: no codec runs.
    async fn reused(&mut self, gathered: &Gathered, ledger: &mut Ledger) -> Option<Coded> {
        if !gathered.complete || gathered.trailers.is_some() || self.keeping.is_some() {
            return None;
        }
        let (tools, recipe) = (self.tools, self.recipe);
        let reuse = self.reuse.as_mut()?;
        let bytes = reuse.find(tools, recipe, &gathered.chunks).await?;
        ledger.cache = Some(CacheResult::Reuse);
        ledger.plain(gathered.size);
        Some(Coded {
            length: Some(bytes.len() as u64),
            source: Source::Ready(bytes),
            coding: Some(self.recipe.coding),
            reason: Reason::Compressed,
        })
    }

    /// What the pool's pressure leaves of the recipe; what is done where it stands needs no pool.
    fn affordable(&self, gathered: &Gathered) -> Option<Recipe> {
        if gathered.complete && self.is_inline(self.recipe, gathered.size) {
            return Some(self.recipe);
        }
        let wait = self.tools.pool.pressure().expected_wait;
        let affordable = policy::under(self.recipe, wait, self.tools.max_wait);
        if affordable.is_none() && !self.may_be_plain() {
            return successors(Some(self.recipe), |recipe| recipe.cheaper()).last();
        }
        affordable
    }

    fn is_inline(&self, recipe: Recipe, size: usize) -> bool {
        size <= self.tools.inline && cost::is_inline_whole(recipe, size)
    }

    /// A client that refuses identity gets a coding also where it does not pay.
    fn may_be_plain(&self) -> bool {
        !self.asked.accepts.refuses_identity()
    }

    async fn gather(
        &self,
        incoming: &mut AppBody,
        headers: &HeaderMap,
    ) -> Result<Gathered, Failure> {
        if MediaType::of(headers).is_some_and(MediaType::is_stream) {
            return Ok(Gathered::default());
        }
        let whole = self.compress.whole_bytes;
        let most = match self.length {
            Some(length) if length > whole => (FIRST_BLOCK as u64).min(whole),
            _ => whole,
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        gather(incoming, most, self.compress.whole_wait, &self.tools.budget)
            .await
            .map_err(|error| {
                Failure::upstream(
                    Kind::BadGateway("the application's answer broke off"),
                    error,
                )
            })
    }

    /// One shot, with its exact length.
    async fn whole(&self, recipe: Recipe, gathered: Gathered, ledger: &mut Ledger) -> Coded {
        let pad = self.pad();
        let size = gathered.size;
        let estimate = cost::whole_estimate(recipe, size);
        ledger.encoding(recipe.coding);
        ledger.level = Some(recipe.effort);
        let (output, cpu) = if self.is_inline(recipe, size) {
            let clock = CpuClock::start();
            (
                codec::whole(recipe, &gathered.chunks, size, pad),
                clock.elapsed(),
            )
        } else {
            let lane = if estimate <= cost::SLICE {
                Lane::Short
            } else {
                Lane::Bulk
            };
            let chunks = gathered.chunks.clone();
            let job = move || codec::whole(recipe, &chunks, size, pad);
            match self.tools.pool.run(lane, estimate, job).await {
                Ok(done) => {
                    ledger.waited(done.waited);
                    (done.value, done.cpu)
                }
                // Full, or the job panicked: nothing was sent yet, so plain is still honest.
                Err(_) => return Coded::held(gathered, Reason::Pressure),
            }
        };
        match output {
            Ok(bytes) if bytes.len() < size || !self.may_be_plain() => {
                ledger.coded(size, bytes.len(), cpu);
                if let Some(keeping) = &self.keeping {
                    keeping.whole(recipe.coding, &bytes);
                } else if let Some(reuse) = &self.reuse {
                    reuse.keep(recipe, &bytes);
                }
                ledger.plain(size);
                drop(gathered);
                // Where the plain bytes were, the coded ones have room.
                let (bytes, _) = self.tools.budget.hold(bytes);
                Coded {
                    length: Some(bytes.len() as u64),
                    source: Source::Ready(bytes),
                    coding: Some(recipe.coding),
                    reason: Reason::Compressed,
                }
            }
            _ => Coded::held(gathered, Reason::Incompressible),
        }
    }

    fn stream(
        &mut self,
        recipe: Recipe,
        gathered: Gathered,
        incoming: AppBody,
        ledger: &mut Ledger,
    ) -> Result<Coded, Failure> {
        let settings = EncodeSettings {
            recipe: recipe.streaming(self.length),
            flush: self.compress.flush,
            inline: self.tools.inline,
            pad: self.pad(),
            pool: self.tools.pool.clone(),
        };
        ledger.encoding(recipe.coding);
        ledger.level = Some(settings.recipe.effort);
        let incoming = (!gathered.complete).then_some(incoming);
        let keeping = self.keeping.take().filter(|_| gathered.trailers.is_none());
        let reuse = self.reuse.as_ref().filter(|_| gathered.complete);
        let keep = match keeping {
            Some(keeping) => Some(keeping.pieces(recipe.coding)),
            None => reuse.and_then(|reuse| reuse.pieces(recipe)),
        };
        let body = EncodeBody::new(settings, gathered.chunks, incoming, gathered.trailers)
            .map(|body| body.kept(keep))
            .map_err(|error| Failure {
                source: Some(error.into()),
                ..Failure::proxy(Kind::Unavailable("no encoder"))
            })?;
        Ok(Coded {
            source: Source::Encoded(Box::new(body)),
            coding: Some(recipe.coding),
            length: None,
            reason: Reason::Compressed,
        })
    }

    /// Random bytes for this answer.
    fn pad(&self) -> usize {
        match self.compress.breach_pad {
            0 => 0,
            most => fastrand::usize(1..=usize::try_from(most).unwrap_or(usize::MAX)),
        }
    }
}

impl Coded {
    fn plain(plain: Plain, reason: Reason) -> Self {
        Self {
            source: Source::Plain(plain),
            coding: None,
            length: None,
            reason,
        }
    }

    /// Plain: all of it was read.
    fn held(gathered: Gathered, reason: Reason) -> Self {
        let held = gathered.chunks.into_iter();
        Self::plain(
            Plain {
                held,
                rest: None,
                trailers: gathered.trailers,
            },
            reason,
        )
    }

    /// Plain: what was read, then the rest.
    fn rest(gathered: Gathered, incoming: AppBody, reason: Reason) -> Self {
        if gathered.complete {
            return Self::held(gathered, reason);
        }
        let held = gathered.chunks.into_iter();
        Self::plain(
            Plain {
                held,
                rest: Some(incoming),
                trailers: None,
            },
            reason,
        )
    }
}
