//! The connection to the second tier, for as long as the process lives.
//!
//! While it is there, it is used; once it fails, or the tier was too slow several times in a row,
//! it is given up, said once, and tried again later. Until then nobody asks, and nobody waits.
//! Purges arrive on it; after a pause those that were missed are caught up with.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisResult, Value};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use super::address::Address;
use super::journal::{self, Journal, LISTED, OPEN, Stamp, TELL, Told};
use super::places::{CHANNEL, JOURNAL, PURGES, slot};
use super::records::Fault;
use crate::cache::store::{Meant, Store};
use crate::telemetry::{SharedMetrics, SharedOperation as Operation, SharedOutcome as Outcome};

/// So many failures in a row, and it is given up.
const MOST_FAILURES: u32 = 5;
/// Before the first new attempt; then twice as long each time.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// For one attempt.
const CONNECT: Duration = Duration::from_secs(5);
/// Purges that wait to be told, or are told again to a tier that lost its data.
const REMEMBERED: usize = 1024;

/// The connection, or what there is until there is one.
pub(super) struct Link {
    address: Address,
    timeout: Duration,
    store: Arc<Store>,
    metrics: SharedMetrics,
    /// Names this process in what it tells.
    id: u64,
    live: ArcSwapOption<Live>,
    journal: Journal,
    incoming: Places,
    outgoing: Places,
    failures: AtomicU32,
    trouble: Notify,
    purges: Mutex<Purges>,
}

/// A connection in use. What is large and waited for by nobody goes its own way.
pub(super) struct Live {
    pub(super) reads: MultiplexedConnection,
    pub(super) writes: MultiplexedConnection,
}

/// Bounds the bytes that are on their way.
struct Places {
    free: Arc<Semaphore>,
    most: u32,
}

#[derive(Default)]
struct Purges {
    /// What the clock showed after the last purge that was done here.
    done: Option<u64>,
    /// Not yet told.
    untold: VecDeque<Meant>,
    told: VecDeque<Meant>,
}

/// Ends when the connection does.
struct Session {
    pushes: mpsc::UnboundedReceiver<PushInfo>,
}

impl Link {
    pub(super) fn new(
        address: Address,
        timeout: Duration,
        most: u64,
        store: Arc<Store>,
        metrics: SharedMetrics,
    ) -> Self {
        Self {
            address,
            timeout,
            store,
            metrics,
            id: fastrand::u64(..),
            live: ArcSwapOption::empty(),
            journal: Journal::default(),
            incoming: Places::new(most),
            outgoing: Places::new(most),
            failures: AtomicU32::new(0),
            trouble: Notify::new(),
            purges: Mutex::default(),
        }
    }

    pub(super) fn live(&self) -> Option<Arc<Live>> {
        self.live.load_full()
    }

    pub(super) const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// A place for something of that size on its way here; `None`: larger than all places.
    pub(super) async fn incoming(&self, size: usize) -> Option<OwnedSemaphorePermit> {
        let count = self.incoming.count(size)?;
        let free = Arc::clone(&self.incoming.free);
        free.acquire_many_owned(count).await.ok()
    }

    /// The same the other way, if it is free now.
    pub(super) fn outgoing(&self, size: usize) -> Option<OwnedSemaphorePermit> {
        let count = self.outgoing.count(size)?;
        let free = Arc::clone(&self.outgoing.free);
        free.try_acquire_many_owned(count).ok()
    }

    /// Counts, and gives the connection up after too many failures in a row.
    pub(super) fn count(&self, operation: Operation, outcome: Outcome) {
        self.metrics.count(operation, outcome);
        match outcome {
            Outcome::Slow | Outcome::Failed => {
                if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_FAILURES {
                    self.give_up();
                }
            }
            Outcome::Busy => {}
            _ => self.failures.store(0, Ordering::Relaxed),
        }
    }

    /// From now on nobody asks; it is connected anew.
    pub(super) fn give_up(&self) {
        if self.live.swap(None).is_some() {
            self.trouble.notify_one();
        }
    }

    /// Connects again and again, for ever.
    pub(super) async fn run(&self) {
        let mut pause = SHORTEST_PAUSE;
        let mut silent = false;
        loop {
            let began = Instant::now();
            let ended = match timeout(CONNECT, self.connect()).await {
                Ok(Ok(session)) => {
                    tracing::info!("the shared cache at {} is used", self.address);
                    silent = false;
                    self.listen(session).await;
                    "it failed, or was too slow several times in a row".to_owned()
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it does not answer".to_owned(),
            };
            self.live.store(None);
            self.metrics.reached.set(0);
            if !silent {
                let address = &self.address;
                tracing::warn!("the shared cache at {address} is not used for now: {ended}");
            }
            silent = true;
            if began.elapsed() > LONGEST_PAUSE {
                pause = SHORTEST_PAUSE;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn connect(&self) -> RedisResult<Session> {
        let (sender, pushes) = mpsc::unbounded_channel();
        // Nobody waits so long: waiting has its own, shorter limit.
        let patience = (self.timeout * 10).max(Duration::from_secs(1));
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(patience));
        let mut reads = self.open(config.clone().set_push_sender(sender)).await?;
        let writes = self.open(config).await?;
        reads.subscribe(CHANNEL).await?;
        self.catch_up(&mut reads).await?;
        self.failures.store(0, Ordering::Relaxed);
        // What was told while nobody asked is no trouble of this connection.
        self.live.store(Some(Arc::new(Live { reads, writes })));
        self.metrics.reached.set(1);
        let untold = std::mem::take(&mut self.purges.lock().untold);
        self.publish(untold.into(), true).await;
        Ok(Session { pushes })
    }

    async fn open(&self, config: AsyncConnectionConfig) -> RedisResult<MultiplexedConnection> {
        let stream = self.address.stream().await?;
        let login = self.address.login();
        let (connection, driver) =
            MultiplexedConnection::new_with_config(login, stream, config).await?;
        // It ends with the last handle of the connection, or with its stream.
        tokio::spawn(driver);
        Ok(connection)
    }

    /// Purges what others purge, until the connection ends.
    async fn listen(&self, mut session: Session) {
        loop {
            tokio::select! {
                push = session.pushes.recv() => match push {
                    Some(push) if push.kind == PushKind::Message => self.heard(&push),
                    Some(push) if push.kind != PushKind::Disconnection => {}
                    _ => return,
                },
                () = self.trouble.notified() => {
                    if self.live.load().is_none() {
                        return;
                    }
                }
            }
        }
    }

    fn heard(&self, push: &PushInfo) {
        let Some(Value::BulkString(text)) = push.data.get(1) else {
            return;
        };
        let Some(told) = journal::read(text) else {
            return self.metrics.count(Operation::Purge, Outcome::Foreign);
        };
        self.journal.saw(told.at);
        if told.from != self.id {
            self.store.purge(&told.meant);
        }
        self.purges.lock().done = Some(told.at);
    }

    /// Reads the journal, and purges here what was purged while nobody listened.
    async fn catch_up(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let before = (self.purges.lock().done, self.journal.first());
        let (stamp, list) = self.read_journal(connection).await?;
        if let (Some(mut done), first) = before {
            if first != stamp.first {
                // It lost its data, and with them perhaps what another has not heard yet.
                let mut purges = self.purges.lock();
                let told = std::mem::take(&mut purges.told);
                purges.untold.extend(told);
                done = stamp.first;
            }
            if stamp.clock > Some(done) {
                self.purge_since(connection, done, &list).await?;
            }
        }
        self.purges.lock().done = stamp.clock;
        Ok(())
    }

    async fn purge_since(
        &self,
        connection: &mut MultiplexedConnection,
        done: u64,
        list: &[Told],
    ) -> RedisResult<()> {
        let fields: std::collections::HashMap<String, u64> = redis::cmd("HGETALL")
            .arg(JOURNAL)
            .query_async(connection)
            .await?;
        self.store
            .purge_where(|url| fields.get(&slot(url)).is_some_and(|&at| at > done));
        for told in list.iter().filter(|told| told.at > done) {
            self.store.purge(&told.meant);
        }
        Ok(())
    }

    /// Reads the clock and the list; starts the clock where there is none.
    pub(super) async fn read_journal(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<(Stamp, Vec<Told>)> {
        let mut open = redis::cmd("EVAL");
        open.arg(OPEN).arg(1).arg(JOURNAL).arg(time_of_day());
        let (clock, first, listed, forgotten): (u64, u64, Option<u64>, Option<u64>) =
            open.query_async(connection).await?;
        let list: Vec<Vec<u8>> = redis::cmd("LRANGE")
            .arg(PURGES)
            .arg(0)
            .arg(-1)
            .query_async(connection)
            .await?;
        let list: Vec<_> = list.iter().filter_map(|text| journal::read(text)).collect();
        let stamp = Stamp {
            clock: Some(clock),
            first,
            listed: listed.unwrap_or(0),
            forgotten: forgotten.unwrap_or(0),
        };
        self.journal.load(stamp, &list);
        Ok((stamp, list))
    }

    /// Tells all others. What cannot be told is told later, where it `matters`.
    pub(super) async fn publish(&self, purges: Vec<Meant>, matters: bool) {
        for meant in purges {
            let outcome = match self.tell(&meant).await {
                Ok(()) => Outcome::Kept,
                Err(fault) => fault.outcome(),
            };
            self.count(Operation::Purge, outcome);
            if matters {
                let mut purges = self.purges.lock();
                let queue = if outcome == Outcome::Kept {
                    &mut purges.told
                } else {
                    &mut purges.untold
                };
                if queue.len() == REMEMBERED {
                    queue.pop_front();
                }
                queue.push_back(meant);
            }
        }
    }

    async fn tell(&self, meant: &Meant) -> Result<(), Fault> {
        let live = self.live().ok_or(Fault::Failed)?;
        let field = match meant {
            Meant::Url(url) => slot(url),
            Meant::Prefix(_) | Meant::Tag(_) => String::new(),
        };
        let mut tell = redis::cmd("EVAL");
        tell.arg(TELL)
            .arg(2)
            .arg(JOURNAL)
            .arg(PURGES)
            .arg(time_of_day());
        tell.arg(field)
            .arg(journal::tell(self.id, meant))
            .arg(CHANNEL)
            .arg(LISTED);
        let now: u64 = tell.query_async(&mut live.reads.clone()).await?;
        self.journal.saw(now);
        Ok(())
    }
}

impl Places {
    fn new(bytes: u64) -> Self {
        let most = u32::try_from(bytes / 1024).unwrap_or(u32::MAX).max(1);
        let most = most.min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        Self {
            free: Arc::new(Semaphore::new(most as usize)),
            most,
        }
    }

    fn count(&self, size: usize) -> Option<u32> {
        let count = u32::try_from(size.div_ceil(1024)).ok()?;
        (count <= self.most).then_some(count)
    }
}

/// In microseconds: ahead of each clock that was started before.
fn time_of_day() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(time.unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
}
