//! Where a server is: its addresses, asked for again every few seconds while it is in use.
//!
//! A request waits for the resolver only when nothing recent is known.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::time::Instant;

/// Older answers are asked for again, beside the request that uses them.
const STALE: Duration = Duration::from_secs(5);

/// Still older ones, of a server that nobody asked for a while, are not used before asking again.
const OUTDATED: Duration = Duration::from_secs(60);

type Lookup = Box<dyn Fn(Arc<str>, u16) -> Answering + Send + Sync>;
type Answering = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// The addresses of one host and port.
pub(super) struct Resolver {
    host: Arc<str>,
    port: u16,
    lookup: Lookup,
    known: ArcSwapOption<Known>,
    asking: AtomicBool,
    turn: AtomicUsize,
}

struct Known {
    addresses: Vec<SocketAddr>,
    /// Absent: an address was configured, which does not age.
    since: Option<Instant>,
}

impl Resolver {
    /// A name, or an address without brackets, which is never looked up.
    pub(super) fn new(host: &str, port: u16) -> Self {
        // getaddrinfo on the runtime's blocking threads, so that /etc/hosts and search domains hold.
        let lookup: Lookup = Box::new(|host, port| {
            Box::pin(async move { Ok(tokio::net::lookup_host((&*host, port)).await?.collect()) })
        });
        Self::with_lookup(host, port, lookup)
    }

    fn with_lookup(host: &str, port: u16, lookup: Lookup) -> Self {
        let fixed = host.parse::<IpAddr>().ok().map(|ip| {
            Arc::new(Known {
                addresses: vec![SocketAddr::new(ip, port)],
                since: None,
            })
        });
        Self {
            host: host.into(),
            port,
            lookup,
            known: ArcSwapOption::new(fixed),
            asking: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
        }
    }

    pub(super) fn host(&self) -> &Arc<str> {
        &self.host
    }

    /// All addresses, each time beginning with another one. At least one.
    ///
    /// # Errors
    /// The resolver's, when nothing was ever known.
    pub(super) async fn addresses(self: &Arc<Self>) -> io::Result<Vec<SocketAddr>> {
        let known = match self.known.load_full() {
            Some(known) => match known.age() {
                age if age < STALE => known,
                age if age < OUTDATED => {
                    self.refresh();
                    known
                }
                _ => self.ask().await.unwrap_or(known),
            },
            None => self.ask().await?,
        };
        let mut addresses = known.addresses.clone();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % addresses.len();
        addresses.rotate_left(turn);
        Ok(addresses)
    }

    /// Asks in the background, unless that is under way.
    fn refresh(self: &Arc<Self>) {
        if self.asking.swap(true, Ordering::AcqRel) {
            return;
        }
        let asking = Asking(Arc::clone(self));
        tokio::spawn(async move {
            if let Err(error) = asking.0.ask().await {
                tracing::warn!(host = %asking.0.host, %error, "the name does not resolve any more; its last addresses stay");
            }
        });
    }

    async fn ask(&self) -> io::Result<Arc<Known>> {
        let addresses = (self.lookup)(Arc::clone(&self.host), self.port).await?;
        if addresses.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the name has no address",
            ));
        }
        let known = Arc::new(Known {
            addresses,
            since: Some(Instant::now()),
        });
        self.known.store(Some(Arc::clone(&known)));
        Ok(known)
    }
}

/// Clears the flag also when its runtime goes away.
struct Asking(Arc<Resolver>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking.store(false, Ordering::Release);
    }
}

impl Known {
    fn age(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    type Answers = mpsc::UnboundedSender<io::Result<Vec<SocketAddr>>>;

    /// A resolver whose questions wait until the test answers.
    fn scripted() -> (Arc<Resolver>, Answers) {
        let (answers, asked) = mpsc::unbounded_channel();
        let asked = Arc::new(tokio::sync::Mutex::new(asked));
        let lookup: Lookup = Box::new(move |_, _| {
            let asked = Arc::clone(&asked);
            Box::pin(async move { asked.lock().await.recv().await.unwrap() })
        });
        (Arc::new(Resolver::with_lookup("app", 80, lookup)), answers)
    }

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, last], 80))
    }

    #[tokio::test]
    async fn an_address_is_not_looked_up() {
        let resolver = Arc::new(Resolver::new("::1", 80));
        assert_eq!(
            resolver.addresses().await.unwrap(),
            ["[::1]:80".parse().unwrap()]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn all_addresses_take_turns() {
        let (resolver, answers) = scripted();
        answers.send(Ok(vec![address(1), address(2)])).unwrap();
        assert_eq!(
            resolver.addresses().await.unwrap(),
            [address(1), address(2)]
        );
        assert_eq!(
            resolver.addresses().await.unwrap(),
            [address(2), address(1)]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_stale_answer_serves_while_the_name_is_asked_again() {
        let (resolver, answers) = scripted();
        answers.send(Ok(vec![address(1)])).unwrap();
        resolver.addresses().await.unwrap();
        tokio::time::advance(STALE).await;
        // Nobody answered yet: the request goes on all the same.
        assert_eq!(resolver.addresses().await.unwrap(), [address(1)]);
        answers.send(Ok(vec![address(2)])).unwrap();
        while resolver.addresses().await.unwrap() != [address(2)] {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_refresh_keeps_what_was_known() {
        let (resolver, answers) = scripted();
        answers.send(Ok(vec![address(1)])).unwrap();
        resolver.addresses().await.unwrap();
        tokio::time::advance(OUTDATED).await;
        answers.send(Err(io::Error::other("down"))).unwrap();
        assert_eq!(resolver.addresses().await.unwrap(), [address(1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_outdated_answer_is_not_used_before_asking() {
        let (resolver, answers) = scripted();
        answers.send(Ok(vec![address(1)])).unwrap();
        resolver.addresses().await.unwrap();
        tokio::time::advance(OUTDATED).await;
        answers.send(Ok(vec![address(2)])).unwrap();
        assert_eq!(resolver.addresses().await.unwrap(), [address(2)]);
    }

    #[tokio::test]
    async fn a_name_without_addresses_is_an_error() {
        let (resolver, answers) = scripted();
        answers.send(Ok(Vec::new())).unwrap();
        assert_eq!(
            resolver.addresses().await.unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
