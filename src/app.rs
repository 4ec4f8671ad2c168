//! Assembles: settings into a running proxy, reloads, and the way out.

mod memory;
mod notify;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::admin::{self, AdminHandle, Readiness};
use crate::body::Budget;
use crate::cache::reuse::{Names, NoRandomness};
use crate::cache::store::{Gauges, Store};
use crate::config::settings::{Address, CacheStore, Server};
use crate::config::{self, Settings};
use crate::demo;
use crate::protocol::cached::{Copies, Densifier};
use crate::protocol::http::Tools;
use crate::protocol::websocket;
use crate::proxy::{Shared, Snapshot};
use crate::server::{Inherited, Port, Threads};
use crate::shared::{self, Tier};
use crate::telemetry::{self, Metrics, Sink};
use crate::work::Pool;

/// How often the configuration is compared with its file.
const LOOK: Duration = Duration::from_secs(2);

/// Why the proxy does not start; exit status 1.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// As configured.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An upstream cannot be set up.
    #[error("an upstream cannot be set up")]
    Upstream(#[from] crate::upstream::BuildError),
    /// The system refuses a thread or a descriptor.
    #[error("the system refuses what is needed")]
    System(#[from] io::Error),
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    Randomness(#[from] NoRandomness),
    /// The second tier of the cache cannot be set up.
    #[error("the shared cache cannot be set up")]
    Shared(#[from] shared::StartError),
    /// Traces and metrics cannot be exported as the environment says.
    #[cfg(feature = "otel")]
    #[error("no export to a collector")]
    Export(#[from] telemetry::otlp::ExportError),
    /// Logging cannot be set up.
    #[error("logging cannot be set up")]
    Log(#[from] telemetry::LogError),
}

/// Runs the proxy in the foreground until it is told to stop.
#[must_use]
pub fn serve(settings: Settings, path: &Path) -> ExitCode {
    let served = App::start(settings, path).and_then(App::run);
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            // The log may be what failed: standard error is always there.
            eprintln!("thinwire: {error}{}", cause.unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

/// A running proxy.
struct App {
    path: PathBuf,
    shared: Arc<Shared>,
    threads: Threads,
    ports: HashMap<Address, Arc<Port>>,
    inherited: Inherited,
    demo: Option<SocketAddr>,
    admin: AdminHandle,
    readiness: Readiness,
    #[cfg(feature = "otel")]
    exporter: Option<telemetry::otlp::Exporter>,
}

impl App {
    fn start(settings: Settings, path: &Path) -> Result<Self, StartError> {
        let metrics = Metrics::new();
        let sink = Sink::install(&settings.log, &metrics)?;
        #[cfg(feature = "otel")]
        let exporter = telemetry::otlp::start(&metrics, &sink)?;
        let demo = if wants_demo(&settings) {
            Some(demo::start()?)
        } else {
            None
        };
        let settled = &settings.pool;
        let pool = Pool::start(
            settled.threads,
            settled.nice,
            settled.max_wait,
            metrics.pool(),
        )?;
        let inline = usize::try_from(settled.inline).unwrap_or(usize::MAX);
        let memory =
            websocket::Budget::new(settings.websocket_memory, metrics.websocket_context_bytes());
        let tools = Tools {
            websockets: websocket::House::new(pool.clone(), inline, settled.max_wait, memory),
            pool,
            budget: Budget::new(memory::held(settled.threads)),
            inline,
            max_wait: settled.max_wait,
            copies: copies(&settings.cache, &metrics)?,
        };
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        let snapshot = Snapshot::build(settings, None, demo, &metrics)?;
        let readiness = Readiness::default();
        let shared = Arc::new(Shared::new(snapshot, tools, sink, metrics));
        let running = shared.snapshot.load_full();
        let inherited = Inherited::from_env();
        let mut ports = Vec::new();
        for listen in &running.settings.listen {
            let port = Port::open(listen, &inherited).map_err(|source| StartError::Listen {
                address: listen.address.to_string(),
                source,
            })?;
            ports.push((listen.address.clone(), port));
        }
        let admin = start_admin(&shared, &running.settings, &readiness)?;
        let network = &running.settings.network;
        let threads = Threads::start(
            Arc::clone(&shared),
            network.threads,
            network.max_connections,
        )?;
        for (_, port) in &ports {
            threads.listen(port);
            tracing::info!("listening on {}", port.url());
        }
        tracing::info!("admin on http://{}", admin.address());
        warn_of_unused(&inherited, &running.settings);
        readiness.ready();
        if demo.is_some() {
            invite(&ports);
        }
        tracing::info!(
            network_threads = network.threads,
            pool_threads = running.settings.pool.threads,
            "ready"
        );
        let ports = ports.into_iter().collect();
        Ok(Self {
            path: path.to_owned(),
            shared,
            threads,
            ports,
            inherited,
            demo,
            admin,
            readiness,
            #[cfg(feature = "otel")]
            exporter,
        })
    }

    /// Signals and the configuration file steer the rest of its life.
    fn run(mut self) -> Result<(), StartError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            tokio::spawn(densifier(&self.shared).run());
            self.shared.snapshot.load().watch();
            let mut hangup = signal(SignalKind::hangup())?;
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            let mut look = tokio::time::interval(LOOK);
            let mut content = fingerprint(&self.path, &self.shared.snapshot.load().settings);
            // Not before signals are heard.
            notify::tell(notify::State::Ready);
            loop {
                tokio::select! {
                    _ = hangup.recv() => {
                        content = fingerprint(&self.path, &self.shared.snapshot.load().settings);
                        self.reload();
                    }
                    _ = look.tick() => {
                        let now = fingerprint(&self.path, &self.shared.snapshot.load().settings);
                        if now != content {
                            content = now;
                            self.reload();
                        }
                    }
                    _ = terminate.recv() => break,
                    _ = interrupt.recv() => break,
                }
            }
            tokio::select! {
                () = self.drain() => {
                    #[cfg(feature = "otel")]
                    if let Some(exporter) = self.exporter.take() {
                        exporter.finish();
                    }
                }
                _ = terminate.recv() => tracing::warn!("told twice: exiting at once"),
                _ = interrupt.recv() => tracing::warn!("told twice: exiting at once"),
            }
            self.shared.sink.flush();
            Ok(())
        })
    }

    /// All or nothing: a bad file changes nothing and is logged with its faults.
    fn reload(&mut self) {
        let settings = match config::load(&self.path) {
            Ok(settings) => settings,
            Err(faults) => {
                for fault in faults.list() {
                    tracing::error!("{fault}");
                }
                return tracing::error!("the configuration is bad; the running one stays");
            }
        };
        if let Err(error) = self.apply(settings) {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(cause, "{error}; the running configuration stays");
        }
    }

    fn apply(&mut self, settings: Settings) -> Result<(), StartError> {
        let before = self.shared.snapshot.load_full();
        warn_of_restarts(&before.settings, &settings);
        if self.demo.is_none() && wants_demo(&settings) {
            self.demo = Some(demo::start()?);
        }
        let metrics = &self.shared.metrics;
        let snapshot = Snapshot::build(settings, Some(&before), self.demo, metrics)?;
        let mut ports = HashMap::new();
        let mut updates = Vec::new();
        let mut opened = Vec::new();
        for listen in &snapshot.settings.listen {
            let fault = |source| StartError::Listen {
                address: listen.address.to_string(),
                source,
            };
            let port = if let Some(port) = self.ports.get(&listen.address) {
                updates.push((Arc::clone(port), Port::prepare(listen).map_err(fault)?));
                Arc::clone(port)
            } else {
                let port = Port::open(listen, &self.inherited).map_err(fault)?;
                opened.push(Arc::clone(&port));
                port
            };
            ports.insert(listen.address.clone(), port);
        }
        // Nothing can fail from here on.
        self.shared.sink.configure(&snapshot.settings.log);
        let websockets = &self.shared.tools.websockets;
        websockets.budget.limit(snapshot.settings.websocket_memory);
        snapshot.watch();
        self.shared.snapshot.store(Arc::new(snapshot));
        for (port, prepared) in updates {
            port.update(prepared);
        }
        for port in opened {
            self.threads.listen(&port);
            tracing::info!("listening on {}", port.url());
        }
        for (address, port) in &self.ports {
            if !ports.contains_key(address) {
                port.close();
                tracing::info!("no longer listening on {}", port.url());
            }
        }
        self.ports = ports;
        tracing::info!("configuration reloaded");
        Ok(())
    }

    async fn drain(&self) {
        let patience = self.shared.snapshot.load().settings.drain;
        // First, so that who sees `/ready` change gets no answer that promises to stay.
        self.threads.leave();
        self.readiness.draining();
        notify::tell(notify::State::Stopping);
        tracing::info!(?patience, "draining");
        for port in self.ports.values() {
            port.close();
        }
        if self.threads.drain(patience).await {
            tracing::info!("drained");
        } else {
            tracing::warn!("some exchanges did not finish in time");
        }
        self.admin.stop();
    }
}

/// Says what to try with the built-in application.
fn invite(ports: &[(Address, Arc<Port>)]) {
    let Some((_, port)) = ports
        .iter()
        .find(|(address, _)| matches!(address, Address::Tcp(_)))
    else {
        return;
    };
    let url = port.url();
    tracing::info!("the demo application is served; try: curl {url}/");
    tracing::info!("  curl -s -o /dev/null -D - -H 'accept-encoding: gzip' {url}/users");
    tracing::info!("  curl -sN --compressed {url}/events");
    tracing::info!("  curl -s --data-binary @README.md {url}/upload");
}

/// Makes popular copies denser, for the routes that want it.
fn densifier(shared: &Arc<Shared>) -> Densifier {
    let running = Arc::clone(shared);
    Densifier {
        copies: Arc::clone(&shared.tools.copies),
        pool: shared.tools.pool.clone(),
        metrics: shared.metrics.route("-"),
        wants: Box::new(move |name| {
            let snapshot = running.snapshot.load();
            let mut routes = snapshot.settings.routes.iter();
            routes.any(|route| route.name == name && route.policy.cache.densify)
        }),
    }
}

/// An empty store, before the second tier if there is one.
fn copies(settings: &CacheStore, metrics: &Metrics) -> Result<Arc<Copies>, StartError> {
    let memory = settings.memory;
    let store = Arc::new(Store::new(memory, Gauges::of(metrics)));
    let shared = match &settings.shared {
        Some(shared) => {
            let metrics = metrics.shared_cache();
            Some(Tier::start(shared, memory, Arc::clone(&store), metrics)?)
        }
        None => None,
    };
    Ok(Arc::new(Copies::new(store, shared, Names::new()?, memory)))
}

fn wants_demo(settings: &Settings) -> bool {
    settings
        .upstreams
        .iter()
        .any(|upstream| upstream.servers.contains(&Server::Demo))
}

fn start_admin(
    shared: &Arc<Shared>,
    settings: &Settings,
    readiness: &Readiness,
) -> Result<AdminHandle, StartError> {
    let address = settings.admin.address;
    let (for_config, for_metrics) = (Arc::clone(shared), Arc::clone(shared));
    let for_purge = Arc::clone(shared);
    admin::start(admin::AdminState {
        address,
        token: settings.admin.token.clone(),
        readiness: readiness.clone(),
        config: Box::new(move || for_config.snapshot.load().settings.to_json()),
        purge: Box::new(move |purge| {
            let queries = Arc::clone(&for_purge.snapshot.load().queries);
            let meant = purge.meant(&queries)?;
            let copies = Arc::clone(&for_purge.tools.copies);
            Some(Box::pin(async move { copies.purge(meant).await }))
        }),
        metrics: Box::new(move || for_metrics.metrics.encode()),
    })
    .map_err(|source| StartError::Listen {
        address: address.to_string(),
        source,
    })
}

/// The files that make the configuration, by content: symlinks may be swapped under their names.
fn fingerprint(path: &Path, settings: &Settings) -> Vec<Option<Vec<u8>>> {
    let mut files = vec![path.to_owned()];
    for tls in settings
        .listen
        .iter()
        .filter_map(|listen| listen.tls.as_ref())
    {
        files.extend(tls.client_ca.clone());
        for pair in &tls.certificates {
            files.extend([pair.chain.clone(), pair.key.clone()]);
        }
    }
    files.iter().map(|file| std::fs::read(file).ok()).collect()
}

/// Names the sockets that a service manager opened for nothing: their clients would wait for ever.
fn warn_of_unused(inherited: &Inherited, settings: &Settings) {
    for address in inherited.addresses() {
        if !settings
            .listen
            .iter()
            .any(|listen| listen.address == *address)
        {
            tracing::warn!("{address} was handed over, and `listen` does not name it");
        }
    }
}

/// Says what a reload cannot change.
fn warn_of_restarts(before: &Settings, now: &Settings) {
    let fixed = [
        (
            "network.threads",
            before.network.threads != now.network.threads,
        ),
        (
            "network.max_connections",
            before.network.max_connections != now.network.max_connections,
        ),
        ("cache.memory", before.cache.memory != now.cache.memory),
        ("cache.shared", before.cache.shared != now.cache.shared),
        ("pool", before.pool != now.pool),
        ("admin.address", before.admin.address != now.admin.address),
        ("admin.token", before.admin.token != now.admin.token),
    ];
    for (key, changed) in fixed {
        if changed {
            tracing::warn!("{key} changed: that needs a restart");
        }
    }
}
