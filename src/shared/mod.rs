//! Reaches the second tier of the cache, Redis or Valkey, so that many instances fetch and compress
//! once: what one of them keeps, the others find, and what one of them purges, all forget.
//!
//! Memory stays the first tier. Everything here is done by a thread of its own, which also reads
//! and checks what comes (that takes a hash over all of it): a network thread only waits for it, and
//! never longer than `cache.shared.timeout`. Without the tier all goes on without it.
//!
//! It must never be trusted more than the network: what comes from there is checked, compared with
//! what was asked for, and held against all purges. It holds nothing that may not be shared, and no
//! reused forms, whose names are this process's secret.

mod address;
mod journal;
mod link;
mod places;
mod records;

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::cache::key::Url;
use crate::cache::store::{Entry, Meant, Store};
use crate::cache::wire::Coded;
use crate::codec::Coding;
use crate::config::settings::SharedCache;
use crate::telemetry::{SharedMetrics, SharedOperation as Operation, SharedOutcome as Outcome};
use address::Address;
use link::Link;
use records::{Fault, Work};

pub use address::AddressError;

/// Bodies up to this are coded again in less time than asking takes.
const SMALL: usize = 8 * 1024;

/// Room for heads and keys beside a body.
const HEADS: usize = 256 * 1024;

/// Why the tier cannot be used at all; that it does not answer is no such reason.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its address, or TLS.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The system gives no thread or event loop.
    #[error("the system refuses what is needed")]
    System(#[from] io::Error),
}

/// What the tier's clock showed, by which it knows whether a purge came later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked(u64);

/// The second tier; cheap to clone.
#[derive(Clone)]
pub struct Tier {
    link: Arc<Link>,
    runtime: Handle,
    timeout: Duration,
}

impl fmt::Debug for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tier").finish_non_exhaustive()
    }
}

/// What is looked for.
pub struct Sought<'a> {
    /// Its key.
    pub url: &'a Url,
    /// The name of its route.
    pub route: &'a Arc<str>,
    /// The request, as the app would get it.
    pub request: &'a HeaderMap,
    /// Bytes of the body, at most.
    pub most: u64,
}

impl Tier {
    /// Starts its thread, which connects and stays connected. What others purge is purged in
    /// `store`; what is on its way to or from the tier takes an eighth of `memory` bytes each.
    ///
    /// # Errors
    /// The address cannot be used, or the system refuses a thread.
    pub fn start(
        settings: &SharedCache,
        memory: u64,
        store: Arc<Store>,
        metrics: SharedMetrics,
    ) -> Result<Self, StartError> {
        let address = Address::parse(&settings.url)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let link = Arc::new(Link::new(
            address,
            settings.timeout,
            memory / 8,
            store,
            metrics,
        ));
        let running = Arc::clone(&link);
        std::thread::Builder::new()
            .name("thinwire-shared".to_owned())
            .spawn(move || runtime.block_on(running.run()))?;
        Ok(Self {
            link,
            runtime: handle,
            timeout: settings.timeout,
        })
    }

    /// The longest that anything here takes.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// To be taken before the app is asked, and given to [`Self::keep`] with its answer. `None`
    /// while the tier is not reached.
    #[must_use]
    pub fn now(&self) -> Option<Asked> {
        self.link.live()?;
        self.link.journal().clock().map(Asked)
    }

    /// The stored response that a request selects, as another instance kept it.
    pub async fn find(&self, sought: Sought<'_>, within: Duration) -> Option<Entry> {
        let live = self.link.live()?;
        let most = usize::try_from(sought.most).unwrap_or(usize::MAX / 2) + HEADS;
        let work = Work::new(Arc::clone(&self.link), live, most);
        let wanted = records::Wanted {
            url: sought.url.clone(),
            route: Arc::clone(sought.route),
            request: sought.request.clone(),
        };
        self.wait(Operation::Find, within, records::find(work, wanted))
            .await
    }

    /// Lets others find a response, for as long as it is fresh.
    pub fn keep(&self, entry: Entry, asked: Asked) {
        let Some(live) = self.link.live() else {
            return;
        };
        let most = entry.object.body().len() + HEADS;
        let work = Work::new(Arc::clone(&self.link), live, most);
        self.leave(Operation::Keep, most, records::keep(work, entry, asked.0));
    }

    /// A coded form of an object's bytes; where `dense`, only one that is as dense as it gets.
    pub async fn coded(
        &self,
        entry: &Entry,
        coding: Coding,
        dense: bool,
        within: Duration,
    ) -> Option<Coded> {
        let size = entry.object.body().len();
        let live = self.link.live().filter(|_| size > SMALL)?;
        let work = Work::new(Arc::clone(&self.link), live, size + HEADS);
        let found = records::coded(work, entry.clone(), coding);
        let coded = self.wait(Operation::FindCoded, within, found).await?;
        (coded.dense || !dense).then_some(coded)
    }

    /// Lets others find a coded form; no bytes: plain ones are as good.
    pub fn keep_coded(&self, entry: Entry, coding: Coding, bytes: bytes::Bytes, dense: bool) {
        let size = entry.object.body().len();
        let Some(live) = self.link.live().filter(|_| size > SMALL) else {
            return;
        };
        let most = size + bytes.len();
        let work = Work::new(Arc::clone(&self.link), live, most);
        let kept = records::keep_coded(work, entry, coding, bytes, dense);
        self.leave(Operation::KeepCoded, most, kept);
    }

    /// Tells all others what an operator purged; waits until that is said, at most the timeout.
    /// What cannot be said now is said once the tier is reached again.
    pub async fn purge(&self, purges: Vec<Meant>) {
        let link = Arc::clone(&self.link);
        let task = self
            .runtime
            .spawn(async move { link.publish(purges, true).await });
        // Slower: it is on its way.
        let _ = timeout(self.timeout, task).await;
    }

    /// Tells others what a request made invalid, if the tier is reached.
    pub fn invalidate(&self, purges: Vec<Meant>) {
        if purges.is_empty() || self.link.live().is_none() {
            return;
        }
        let link = Arc::clone(&self.link);
        self.runtime
            .spawn(async move { link.publish(purges, false).await });
    }

    /// Waits for work of the tier's thread, and gives it up after `within`.
    async fn wait<T: Send + 'static>(
        &self,
        operation: Operation,
        within: Duration,
        work: impl Future<Output = Result<Option<T>, Fault>> + Send + 'static,
    ) -> Option<T> {
        let task = self.runtime.spawn(work);
        let _ended = Ended(task.abort_handle());
        let done = match timeout(within.min(self.timeout), task).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(Fault::Failed),
            Err(_) => Err(Fault::Slow),
        };
        let outcome = match &done {
            Ok(Some(_)) => Outcome::Hit,
            Ok(None) => Outcome::Miss,
            Err(fault) => fault.outcome(),
        };
        self.link.count(operation, outcome);
        done.ok().flatten()
    }

    /// Has the tier's thread do something that nobody waits for, if there is room for it.
    fn leave(
        &self,
        operation: Operation,
        size: usize,
        work: impl Future<Output = Result<bool, Fault>> + Send + 'static,
    ) {
        let Some(place) = self.link.outgoing(size) else {
            return self.link.count(operation, Outcome::Busy);
        };
        let link = Arc::clone(&self.link);
        self.runtime.spawn(async move {
            let outcome = match work.await {
                Ok(true) => Outcome::Kept,
                Ok(false) => Outcome::Unfit,
                Err(fault) => fault.outcome(),
            };
            drop(place);
            link.count(operation, outcome);
        });
    }
}

/// Ends a task of the tier's thread once nobody waits for it.
struct Ended(AbortHandle);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.abort();
    }
}
