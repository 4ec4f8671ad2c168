//! Which route a request takes: the first that matches, top to bottom.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method};

use super::facts::Facts;
use super::per_client::PerClient;
use crate::config::settings::{self, HeaderPattern, HostPattern, Match, PathPattern, Policy};
use crate::head::path;
use crate::protocol::cached::Site;
use crate::telemetry::RouteMetrics;
use crate::upstream::Upstream;

/// All routes, in order.
pub struct Router {
    routes: Vec<Arc<Route>>,
}

/// A route, ready to serve.
pub struct Route {
    /// What it matches.
    pub matches: Match,
    /// How its exchanges are treated.
    pub policy: Arc<Policy>,
    /// Where they go.
    pub upstream: Arc<Upstream>,
    /// What its copies need of it.
    pub site: Site,
    /// How long the app may take to its head.
    pub head_timeout: Duration,
    /// What they are counted in.
    pub metrics: Arc<RouteMetrics>,
    running: AtomicUsize,
    per_client: Option<PerClient>,
}

/// What of a request a route looks at.
pub struct Seen<'a> {
    /// Its connection.
    pub facts: &'a Facts,
    /// Its method.
    pub method: &'a Method,
    /// Lower case, without a port.
    pub host: &'a str,
    /// Normalised: no encoding, no `//`, no dot segments fool the comparison.
    pub path: &'a str,
    /// Its fields.
    pub headers: &'a HeaderMap,
}

/// One exchange among those that a route runs at once.
pub struct Running(Arc<Route>);

impl Router {
    /// Matches `routes` in this order.
    #[must_use]
    pub fn new(routes: Vec<Arc<Route>>) -> Self {
        Self { routes }
    }

    /// The first that matches.
    #[must_use]
    pub fn find(&self, seen: &Seen<'_>) -> Option<&Arc<Route>> {
        self.routes
            .iter()
            .find(|route| matches(&route.matches, seen))
    }
}

impl Route {
    /// Serves `route` with these parts.
    #[must_use]
    pub fn new(
        route: &settings::Route,
        upstream: Arc<Upstream>,
        head_timeout: Duration,
        metrics: Arc<RouteMetrics>,
    ) -> Self {
        let policy = Arc::new(route.policy.clone());
        let site = Site {
            name: route.name.as_str().into(),
            policy: Arc::clone(&policy),
            upstream: Arc::clone(&upstream),
            metrics: Arc::clone(&metrics),
        };
        let per_client = PerClient::new(&policy.limits);
        Self {
            matches: route.matches.clone(),
            policy,
            upstream,
            site,
            head_timeout,
            metrics,
            running: AtomicUsize::new(0),
            per_client,
        }
    }

    /// Takes one of `limits.concurrent_requests` places; none is left: `None`.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Option<Running> {
        let most = self.policy.limits.concurrent_requests;
        let before = self.running.fetch_add(1, Ordering::Relaxed);
        let running = Running(Arc::clone(self));
        (most == 0 || before < most).then_some(running)
    }
}

impl Route {
    /// Counts a request of this client address, absent on unix sockets; an error says in how many
    /// seconds it may ask again.
    ///
    /// # Errors
    /// `limits.per_client` is reached.
    pub fn admit(&self, address: Option<IpAddr>) -> Result<(), u64> {
        match (&self.per_client, address) {
            (Some(per_client), Some(address)) => per_client.admit(address),
            _ => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn matches(wanted: &Match, seen: &Seen<'_>) -> bool {
    any(&wanted.hosts, |host| host_matches(host, seen.host))
        && wanted
            .path
            .as_ref()
            .is_none_or(|path| path_matches(path, seen.path))
        && any(&wanted.methods, |method| method == seen.method)
        && wanted.headers.iter().all(|(name, pattern)| {
            let mut values = seen.headers.get_all(name).iter();
            match pattern {
                HeaderPattern::Present => values.next().is_some(),
                HeaderPattern::Exact(value) => values.any(|field| field == value.as_str()),
            }
        })
        && any(&wanted.clients, |net| {
            seen.facts.client.ip().is_some_and(|ip| net.contains(&ip))
        })
        && any(&wanted.listeners, |listener| {
            *listener == seen.facts.listening.address
        })
}

/// An absent condition holds for everything.
fn any<T>(wanted: &[T], holds: impl Fn(&T) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(holds)
}

fn host_matches(pattern: &HostPattern, host: &str) -> bool {
    match pattern {
        HostPattern::Exact(name) => name == host,
        HostPattern::Suffix(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
    }
}

fn path_matches(pattern: &PathPattern, path: &str) -> bool {
    match pattern {
        PathPattern::Exact(exact) => path::is(path, exact),
        PathPattern::Prefix(prefix) => path::within(path, prefix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_on_segment_borders() {
        let api = PathPattern::Prefix("/api".into());
        assert!(path_matches(&api, "/api"));
        assert!(path_matches(&api, "/api/users"));
        assert!(!path_matches(&api, "/apix"));
        let slash = PathPattern::Prefix("/ws/".into());
        assert!(path_matches(&slash, "/ws/ticks"));
        assert!(!path_matches(&slash, "/ws"));
        assert!(path_matches(&PathPattern::Prefix("/".into()), "/anything"));
    }

    #[test]
    fn exact_paths_match_nothing_else() {
        let exact = PathPattern::Exact("/exact".into());
        assert!(path_matches(&exact, "/exact"));
        assert!(!path_matches(&exact, "/exact/"));
        assert!(!path_matches(&exact, "/exactly"));
    }

    #[test]
    fn a_wildcard_host_is_not_its_own_parent() {
        let wildcard = HostPattern::Suffix(".example.org".into());
        assert!(host_matches(&wildcard, "a.example.org"));
        assert!(host_matches(&wildcard, "a.b.example.org"));
        assert!(!host_matches(&wildcard, "example.org"));
        assert!(!host_matches(&wildcard, ".example.org"));
        assert!(!host_matches(&wildcard, "badexample.org"));
    }
}
