//! The running configuration, as exchanges see it, and what all exchanges share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;

use super::route::{Route, Router};
use crate::config::settings::QueryKey;
use crate::config::{Settings, settings};
use crate::protocol::http::Tools;
use crate::telemetry::{Metrics, RouteMetrics, Sink};
use crate::upstream::{BuildError, Upstream};

/// One configuration; a request loads it once and keeps it to its end.
pub struct Snapshot {
    /// As written.
    pub settings: Settings,
    /// Its upstreams, in the file's order.
    pub upstreams: Vec<Arc<Upstream>>,
    /// Its routes, ready to be matched.
    pub router: Router,
    /// How the routes that keep copies put queries into their keys, each way once.
    pub queries: Arc<[QueryKey]>,
}

/// What outlives configurations.
pub struct Shared {
    /// The running configuration.
    pub snapshot: ArcSwap<Snapshot>,
    /// What exchanges compute with.
    pub tools: Tools,
    /// Access lines.
    pub sink: Sink,
    /// Everything that is counted.
    pub metrics: Metrics,
    /// The handles of what ends before a route is known.
    pub unrouted: Arc<RouteMetrics>,
    draining: AtomicBool,
}

impl Snapshot {
    /// Makes `settings` ready to serve. Upstreams that did not change since `before` keep their
    /// connections. `demo` is where the built-in application listens.
    ///
    /// # Errors
    /// An upstream's TLS files cannot be used.
    pub fn build(
        settings: Settings,
        before: Option<&Self>,
        demo: Option<SocketAddr>,
        metrics: &Metrics,
    ) -> Result<Self, BuildError> {
        let kept = |wanted: &settings::Upstream| {
            let before = before?;
            let at = before
                .settings
                .upstreams
                .iter()
                .position(|upstream| upstream == wanted)?;
            before.upstreams.get(at).map(Arc::clone)
        };
        let named = |name: &str| {
            let mut before = before?.upstreams.iter();
            before.find(|upstream| **upstream.name() == *name)
        };
        let upstreams = settings
            .upstreams
            .iter()
            .map(|wanted| {
                if let Some(upstream) = kept(wanted) {
                    return Ok(upstream);
                }
                let known = named(&wanted.name).map(Arc::as_ref);
                let metrics = |server: &str| metrics.server(&wanted.name, server);
                Upstream::new(wanted, known, demo, metrics).map(Arc::new)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let routes = settings.routes.iter().map(|route| {
            let upstream = Arc::clone(&upstreams[route.upstream]);
            let timeout = settings.upstreams[route.upstream].response_head_timeout;
            Arc::new(Route::new(
                route,
                upstream,
                timeout,
                metrics.route(&route.name),
            ))
        });
        let router = Router::new(routes.collect());
        let mut queries = Vec::new();
        let caches = settings.routes.iter().map(|route| &route.policy.cache);
        for cache in caches.filter(|cache| cache.enabled) {
            if !queries.contains(&cache.query) {
                queries.push(cache.query.clone());
            }
        }
        Ok(Self {
            settings,
            upstreams,
            router,
            queries: queries.into(),
        })
    }

    /// Begins the checks of its upstreams, on the runtime that this is called on.
    pub fn watch(&self) {
        for upstream in &self.upstreams {
            upstream.watch();
        }
    }
}

impl Shared {
    /// Starts with `snapshot`.
    #[must_use]
    pub fn new(snapshot: Snapshot, tools: Tools, sink: Sink, metrics: Metrics) -> Self {
        let unrouted = metrics.route("-");
        Self {
            snapshot: ArcSwap::from_pointee(snapshot),
            tools,
            sink,
            metrics,
            unrouted,
            draining: AtomicBool::new(false),
        }
    }

    /// From now on connections are not kept, and WebSockets are asked to leave.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.tools.websockets.drain();
    }

    /// Whether the process is on its way out.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
