//! What the configuration means, once it holds: types that cannot be wrong inside.
//!
//! The keys, their defaults and their meaning stand in the repository's `config.yaml` and README.
//! Sizes are bytes, times are [`Duration`]s; a zero means "no limit" where the contract says so.

mod defaults;
mod policy;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Method};
use ipnet::IpNet;

pub(in crate::config) use defaults::available_threads;
pub use policy::{
    Cache, Compress, CrossSite, Flush, Grpc, GrpcWeb, HeaderEdits, Levels, Limits, Policy,
    QueryKey, Requests, Timeouts, WebSocket,
};

/// The whole configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// At least one.
    pub listen: Vec<Listen>,
    /// The operator's address.
    pub admin: Admin,
    /// What is logged, and how.
    pub log: Log,
    /// The threads and limits of the network side.
    pub network: Network,
    /// The threads that compress.
    pub pool: Pool,
    /// The store of precompressed copies.
    pub cache: CacheStore,
    /// Bytes of compression state of all WebSocket connections.
    pub websocket_memory: u64,
    /// How long a drain may take.
    pub drain: Duration,
    /// In file order; names are unique.
    pub upstreams: Vec<Upstream>,
    /// What holds before a route is known.
    pub defaults: Policy,
    /// The first that matches wins.
    pub routes: Vec<Route>,
    /// Things that work but not as written (`check` prints them; exit status 0), one line each.
    pub warnings: Vec<String>,
}

/// Where connections come in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// `IP:port`; port 0 lets the kernel choose.
    Tcp(SocketAddr),
    /// `unix:/path`.
    Unix(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// One listening address.
#[derive(Debug, Clone, PartialEq)]
pub struct Listen {
    /// Unique within the file.
    pub address: Address,
    /// Absent: cleartext.
    pub tls: Option<ListenTls>,
    /// Every connection starts with a PROXY v1 or v2 header.
    pub proxy_protocol: bool,
    /// Whose X-Forwarded-* and Forwarded are kept.
    pub trust_forwarded_from: Vec<IpNet>,
}

/// Certificates of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenTls {
    /// At least one; the first is the default.
    pub certificates: Vec<KeyPair>,
    /// Clients must show a certificate signed by one of these.
    pub client_ca: Option<PathBuf>,
}

/// A certificate chain and its private key, PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// Leaf first.
    pub chain: PathBuf,
    /// PKCS#8, SEC1 or PKCS#1.
    pub key: PathBuf,
}

/// The admin address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// `IP:port`.
    pub address: SocketAddr,
    /// Empty: none.
    pub token: String,
    /// Whose requests may carry Thinwire-Explain.
    pub explain_to: Vec<IpNet>,
}

/// Logging.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// A level or a tracing filter, verified.
    pub level: String,
    /// How lines look.
    pub format: LogFormat,
    /// One line an exchange.
    pub access: bool,
}

/// The shape of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// The network side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// At least 1; `auto` is resolved.
    pub threads: usize,
    /// Beyond: not accepted until one ends. At least 1.
    pub max_connections: usize,
    /// 0 = unlimited.
    pub per_client_connections: usize,
    /// Concurrent HTTP/2 streams a connection.
    pub max_streams: u32,
    /// An idle client connection is closed after this.
    pub keep_alive: Duration,
    /// Between two writes that a client takes.
    pub send: Duration,
    /// For the whole handshake.
    pub tls_handshake: Duration,
}

/// The compression pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// At least 1; `auto` is resolved.
    pub threads: usize,
    /// -20..=19.
    pub nice: i32,
    /// Bytes that may be compressed where they stand.
    pub inline: u64,
    /// Longer waits make answers cheaper, then plain.
    pub max_wait: Duration,
}

/// The store of precompressed copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheStore {
    /// Bytes, plain and compressed copies together.
    pub memory: u64,
    /// The second tier.
    pub shared: Option<SharedCache>,
}

/// The second tier, Redis or Valkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCache {
    /// `redis://` or `rediss://`; may hold a password.
    pub url: String,
    /// Slower: served without it.
    pub timeout: Duration,
}

/// A named group of servers that run one application.
#[derive(Debug, Clone, PartialEq)]
pub struct Upstream {
    /// Its label.
    pub name: String,
    /// At least one.
    pub servers: Vec<Server>,
    /// What is spoken to all of them.
    pub protocol: UpstreamProtocol,
    /// How one is chosen.
    pub balance: Balance,
    /// For `https` servers.
    pub tls: UpstreamTls,
    /// What is sent ahead of the first byte.
    pub proxy_protocol: ProxyProtocol,
    /// Active checks.
    pub health: Option<Health>,
    /// Passive ejection.
    pub eject: Option<Eject>,
    /// To all servers together.
    pub max_connections: usize,
    /// For one attempt.
    pub connect_timeout: Duration,
    /// From the request's end to the response head; not for gRPC.
    pub response_head_timeout: Duration,
    /// Kept connections are closed after this.
    pub idle_timeout: Duration,
    /// Further attempts of a repeatable request.
    pub retries: u32,
}

/// One server of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Server {
    /// `http://host:port` or `https://host:port`.
    Tcp {
        /// https.
        tls: bool,
        /// A name or an address without brackets.
        host: String,
        /// Never 0.
        port: u16,
    },
    /// `unix:/path`.
    Unix(PathBuf),
    /// The built-in application.
    Demo,
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { tls, host, port } => {
                let scheme = if *tls { "https" } else { "http" };
                if host.contains(':') {
                    write!(f, "{scheme}://[{host}]:{port}")
                } else {
                    write!(f, "{scheme}://{host}:{port}")
                }
            }
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Demo => f.write_str("demo"),
        }
    }
}

/// What is spoken to an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    Http1,
    /// h2c, or h2 over https.
    Http2,
}

/// How a server is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balance {
    /// One after the other.
    RoundRobin,
    /// The one with the fewest requests under way.
    LeastRequests,
}

/// TLS towards `https` servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpstreamTls {
    /// Instead of the system's roots.
    pub ca: Option<PathBuf>,
    /// The name to verify and to send as SNI, instead of the server's host.
    pub name: Option<String>,
    /// The certificate that we show.
    pub client: Option<KeyPair>,
}

/// The PROXY header sent to servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// No header.
    None,
    /// Text.
    V1,
    /// Binary.
    V2,
}

/// Active health checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// What is asked.
    pub check: HealthCheck,
    /// Between two checks.
    pub interval: Duration,
    /// Of one check.
    pub timeout: Duration,
    /// Failures in a row.
    pub unhealthy_after: u32,
    /// Successes in a row.
    pub healthy_after: u32,
}

/// What a health check asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthCheck {
    /// GET this path; 2xx is healthy.
    Path(String),
    /// grpc.health.v1 Check of this service.
    Grpc(String),
    /// A connection suffices.
    Tcp,
}

/// Passive ejection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eject {
    /// Failures in a row.
    pub failures: u32,
    /// The first time; twice as long each further time, up to 5 minutes.
    pub for_: Duration,
}

/// A route: what it matches, where it goes and by which policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Its label; unique.
    pub name: String,
    /// All of it has to hold.
    pub matches: Match,
    /// Index into [`Settings::upstreams`].
    pub upstream: usize,
    /// `defaults` with the route's own keys merged over them.
    pub policy: Policy,
}

/// What a route matches; an absent part matches everything.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Match {
    /// Empty: any.
    pub hosts: Vec<HostPattern>,
    /// Absent: any.
    pub path: Option<PathPattern>,
    /// Empty: any.
    pub methods: Vec<Method>,
    /// All of them.
    pub headers: Vec<(HeaderName, HeaderPattern)>,
    /// Empty: any.
    pub clients: Vec<IpNet>,
    /// Empty: any.
    pub listeners: Vec<Address>,
}

/// A host, lower case, without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// This name.
    Exact(String),
    /// `*.x`: any name that ends in `.x`; holds `.x`.
    Suffix(String),
}

/// A path, already normalised (no `//`, no dot segments, no needless percent-encoding).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPattern {
    /// On segment borders; `/` matches all.
    Prefix(String),
    /// `=/exact`.
    Exact(String),
}

/// What a header has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderPattern {
    /// `"*"`.
    Present,
    /// One field line with exactly this value.
    Exact(String),
}
