//! A configuration for one test: one app behind one route, and what the test changes about it.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

use super::{H2Origin, Origin, Proxy, Uvicorn};

/// Keys of a route that waits for whole bodies however slow the machine is: for tests in which it
/// matters that a body was complete in time.
pub const PATIENT: &str = "compress: { whole: { wait: 10s } }";

/// What can stand behind a proxy.
pub trait App {
    /// As `servers` names it.
    fn server(&self) -> String;

    /// As `protocol` names it.
    fn protocol(&self) -> &'static str {
        "http1"
    }
}

/// The built-in application.
pub struct Demo;

impl App for Demo {
    fn server(&self) -> String {
        "demo".to_owned()
    }
}

impl App for Origin {
    fn server(&self) -> String {
        self.server()
    }
}

impl App for H2Origin {
    fn server(&self) -> String {
        self.server()
    }

    fn protocol(&self) -> &'static str {
        "http2"
    }
}

impl App for Uvicorn {
    fn server(&self) -> String {
        self.server()
    }
}

/// An address at which nobody listens, and that nobody else can have in the meantime.
pub struct Nowhere(socket2::Socket);

impl Nowhere {
    pub fn reserve() -> Self {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
            .expect("a socket");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&any.into()).expect("a free port");
        Self(socket)
    }
}

impl App for Nowhere {
    fn server(&self) -> String {
        let address = self.0.local_addr().expect("a bound socket");
        format!("http://{}", address.as_socket().expect("an IP address"))
    }
}

/// YAML in the making. Each part takes block YAML, indented from its own left edge.
#[derive(Debug, Clone)]
pub struct Setup {
    servers: Vec<String>,
    protocol: &'static str,
    listen: String,
    top: String,
    upstream: String,
    defaults: String,
    route: String,
    routes_before: String,
}

impl Setup {
    /// One cleartext address, JSON logs, `app` as the upstream of the one route `everything`.
    pub fn before(app: &impl App) -> Self {
        Self {
            servers: vec![app.server()],
            protocol: app.protocol(),
            listen: "- address: 127.0.0.1:0".to_owned(),
            top: String::new(),
            upstream: String::new(),
            defaults: String::new(),
            route: String::new(),
            routes_before: String::new(),
        }
    }

    /// Another server of the same upstream.
    #[must_use]
    pub fn and(mut self, app: &impl App) -> Self {
        self.servers.push(app.server());
        self
    }

    /// Instead of the one cleartext address: a list.
    #[must_use]
    pub fn listen(mut self, yaml: &str) -> Self {
        yaml.clone_into(&mut self.listen);
        self
    }

    /// More keys at the top level: `pool`, `network`, `drain`, ...
    #[must_use]
    pub fn top(mut self, yaml: &str) -> Self {
        self.top += &format!("{yaml}\n");
        self
    }

    /// More keys of the upstream.
    #[must_use]
    pub fn upstream(mut self, yaml: &str) -> Self {
        self.upstream += &format!("{yaml}\n");
        self
    }

    /// Keys of `defaults`.
    #[must_use]
    pub fn defaults(mut self, yaml: &str) -> Self {
        self.defaults += &format!("{yaml}\n");
        self
    }

    /// More keys of the route.
    #[must_use]
    pub fn route(mut self, yaml: &str) -> Self {
        self.route += &format!("{yaml}\n");
        self
    }

    /// Routes, as a list, that come before the one for everything.
    #[must_use]
    pub fn routes_before(mut self, yaml: &str) -> Self {
        self.routes_before += &format!("{yaml}\n");
        self
    }

    /// The file.
    pub fn yaml(&self) -> String {
        let mut yaml = String::from("listen:\n");
        indent(&mut yaml, 2, &self.listen);
        yaml += "admin:\n  address: 127.0.0.1:0\nlog:\n  format: json\n";
        indent(&mut yaml, 0, &self.top);
        let (servers, protocol) = (self.servers.join("\", \""), self.protocol);
        let _ = write!(
            yaml,
            "upstreams:\n  app:\n    servers: [\"{servers}\"]\n    protocol: {protocol}\n"
        );
        indent(&mut yaml, 4, &self.upstream);
        if !self.defaults.is_empty() {
            yaml += "defaults:\n";
            indent(&mut yaml, 2, &self.defaults);
        }
        yaml += "routes:\n";
        indent(&mut yaml, 2, &self.routes_before);
        yaml += "  - name: everything\n    match: { path: / }\n    upstream: app\n";
        indent(&mut yaml, 4, &self.route);
        yaml
    }

    /// The proxy, running.
    #[track_caller]
    pub fn start(&self) -> Proxy {
        Proxy::start(&self.yaml())
    }
}

fn indent(yaml: &mut String, by: usize, block: &str) {
    for line in block.lines() {
        let _ = writeln!(yaml, "{:by$}{line}", "");
    }
}
