//! Addresses, servers, networks, files and what else names a thing outside of HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;

use http::Uri;
use ipnet::IpNet;
use rustls::pki_types::{DnsName, ServerName};
use tracing_subscriber::EnvFilter;

use super::Text;
use crate::config::settings::{Address, Server};

/// The longest path of a unix socket, in bytes (`sun_path` without its NUL).
const SUN_PATH: usize = 107;

/// Where to listen.
pub(in crate::config) const ADDRESS: Text<Address> = Text {
    expected: "IP:port, \"[v6]:port\" or unix:/path",
    pattern: Some(r"^(unix:/.+|.+:[0-9]+)$"),
    parse: |text| match text.strip_prefix("unix:") {
        Some(path) => unix(path).map(Address::Unix),
        None => text.parse().ok().map(Address::Tcp),
    },
    show: |address| match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(path) => format!("unix:{}", path.display()),
    },
    secret: false,
};

/// Where the admin listens.
pub(in crate::config) const IP_PORT: Text<SocketAddr> = Text {
    expected: "IP:port or \"[v6]:port\"",
    pattern: Some(r"^.+:[0-9]+$"),
    parse: |text| text.parse().ok(),
    show: ToString::to_string,
    secret: false,
};

/// A server of an upstream.
pub(in crate::config) const SERVER: Text<Server> = Text {
    expected: "http://host:port, https://host:port, unix:/path or demo",
    pattern: Some(r"^(https?://[^/]+/?|unix:/.+|demo)$"),
    parse: |text| match text.strip_prefix("unix:") {
        _ if text == "demo" => Some(Server::Demo),
        Some(path) => unix(path).map(Server::Unix),
        None => tcp(text),
    },
    show: ToString::to_string,
    secret: false,
};

/// The name that a certificate has to show.
pub(in crate::config) const SERVER_NAME: Text<String> = Text {
    expected: "a DNS name or an IP address, without a port",
    pattern: None,
    parse: |text| ServerName::try_from(text).ok().map(|_| text.to_owned()),
    show: Clone::clone,
    secret: false,
};

/// A gRPC service to ask about; empty: the server as a whole.
pub(in crate::config) const SERVICE_NAME: Text<String> = Text {
    expected: "a service such as package.Service, or \"\" for the server as a whole",
    pattern: Some("^[A-Za-z0-9_.]*$"),
    parse: |text| {
        let fits = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
        fits.then(|| text.to_owned())
    },
    show: Clone::clone,
    secret: false,
};

/// A network; a single address is a network of one.
pub(in crate::config) const CIDR: Text<IpNet> = Text {
    expected: "a CIDR such as 10.0.0.0/8 or fd00::/8",
    pattern: Some(r"^[0-9a-fA-F:.]+(/[0-9]+)?$"),
    parse: |text| {
        let single = || {
            text.parse()
                .ok()
                .map(|address: std::net::IpAddr| address.into())
        };
        text.parse()
            .ok()
            .or_else(single)
            .map(|net: IpNet| net.trunc())
    },
    show: ToString::to_string,
    secret: false,
};

/// A path as written; the reader resolves it against the file's directory.
pub(in crate::config) const FILE: Text<PathBuf> = Text {
    expected: "the path of a PEM file, relative to the configuration's directory or absolute",
    pattern: None,
    parse: |text| (!text.is_empty() && !text.contains('\0')).then(|| text.into()),
    show: |path| path.display().to_string(),
    secret: false,
};

/// A level or a tracing filter.
pub(in crate::config) const FILTER: Text<String> = Text {
    expected: "error, warn, info, debug, trace, or a filter such as info,thinwire=debug",
    pattern: None,
    parse: |text| {
        // A bare word would name a target: a mistyped level must not silence everything else.
        let levelled = text.split(',').map(str::trim).all(|directive| {
            directive.contains(['=', '[', ']', '}']) || directive.parse::<tracing::Level>().is_ok()
        });
        let off = text == "off";
        let parses = EnvFilter::builder().parse(text).is_ok();
        (off || (levelled && parses)).then(|| text.to_owned())
    },
    show: Clone::clone,
    secret: false,
};

/// A Bearer token; empty: none.
pub(in crate::config) const TOKEN: Text<String> = Text {
    expected: "a token of visible ASCII characters, or \"\" for none",
    pattern: None,
    parse: |text| {
        text.bytes()
            .all(|byte| byte.is_ascii_graphic())
            .then(|| text.to_owned())
    },
    show: Clone::clone,
    secret: true,
};

/// The second tier of the cache.
pub(in crate::config) const REDIS_URL: Text<String> = Text {
    expected: "a URL such as redis://host:6379 or rediss://:password@host:6379/0",
    pattern: Some(r"^rediss?://.+$"),
    parse: |text| {
        let uri: Uri = text.parse().ok()?;
        let known = matches!(uri.scheme_str(), Some("redis" | "rediss"));
        (known && uri.host().is_some_and(|host| !host.is_empty())).then(|| text.to_owned())
    },
    show: Clone::clone,
    secret: true,
};

fn unix(path: &str) -> Option<PathBuf> {
    let fits = path.starts_with('/') && path.len() <= SUN_PATH && !path.contains('\0');
    fits.then(|| path.into())
}

fn tcp(text: &str) -> Option<Server> {
    let uri: Uri = text.parse().ok()?;
    let tls = match uri.scheme_str()? {
        "http" => false,
        "https" => true,
        _ => return None,
    };
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    let port = uri
        .port()
        .map_or(Some(if tls { 443 } else { 80 }), |port| {
            port.as_str().parse().ok().filter(|port| *port != 0)
        })?;
    let bare = !uri.authority()?.as_str().contains('@') && matches!(uri.path(), "" | "/");
    let named = host.parse::<std::net::IpAddr>().is_ok() || DnsName::try_from(host).is_ok();
    let whole = bare && named && uri.query().is_none() && !text.contains('#');
    whole.then(|| Server::Tcp {
        tls,
        host: host.to_owned(),
        port,
    })
}
