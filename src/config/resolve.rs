//! From what is written to what it means.
//!
//! Read it as the contract: each key stands here once, in the order of `config.yaml`, with its kind,
//! its default and what it means.

mod files;
mod listen;
mod policy;
mod process;
mod route;
mod upstream;

use policy::Scope;
use route::Around;

use super::section::Section;
use super::settings::{Policy, Settings};

pub(super) use policy::{CROSS_SITE, FLUSH, REQUESTS, WEB};
pub(super) use process::FORMAT;
pub(super) use upstream::{BALANCE, PROTOCOL, PROXY_PROTOCOL};

/// The whole file. Where there were faults, it lacks what was wrong.
pub(super) fn settings(s: &mut Section<'_>) -> Settings {
    let listen = listen::listen(s);
    let admin = listen::admin(s, &listen);
    let log = process::log(s);
    let network = process::network(s);
    let pool = process::pool(s);
    let cache = process::cache(s);
    let websocket_memory = process::websocket_memory(s);
    let drain = process::drain(s);
    let upstreams = s.named(
        "upstreams",
        "The applications behind, by name.",
        upstream::upstream,
    );
    let about = "What every route starts from; its own keys are merged over these, key by key.";
    let base = Policy::default();
    let defaults = s.section("defaults", about, |s| {
        policy::policy(s, &base, Scope::Defaults)
    });
    let around = Around {
        defaults: &defaults,
        upstreams: &upstreams,
        listen: &listen,
    };
    let routes = route::routes(s, &around);
    Settings {
        listen: listen.into_iter().flatten().collect(),
        admin,
        log,
        network,
        pool,
        cache,
        websocket_memory,
        drain,
        upstreams: upstreams
            .into_iter()
            .filter_map(|(_, upstream)| upstream)
            .collect(),
        defaults,
        routes,
        warnings: Vec::new(),
    }
}
