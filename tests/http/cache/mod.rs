//! Copies: BEHAVIOUR.md "Cache", and the numbered points of the issue that asked for them.
//!
//! No test waits for a copy to grow old: an app that sends `Age` says how old its answer is.

mod coded;
mod conditional;
mod denser;
mod flight;
mod poisoning;
mod purge;
mod replicas;
mod reuse;
mod shared;
mod stale;

use crate::support::{App, Call, Fields, Origin, Proxy, Reply, Setup, big};

/// The route keeps copies.
const ON: &str = "cache: { enabled: true }";

/// Before this app, keeping copies.
#[track_caller]
fn caching(app: &impl App) -> Proxy {
    Proxy::with(app, ON)
}

/// The same, with more keys of `cache`.
#[track_caller]
fn caching_with(app: &impl App, keys: &str) -> Proxy {
    Setup::before(app)
        .route(&format!("cache: {{ enabled: true, {keys} }}"))
        .start()
}

/// Big JSON with these fields, always.
fn json(fields: Fields<'_>) -> Origin {
    let fields = [&[("Content-Type", "application/json")], fields].concat();
    Origin::answer(200, &fields, big())
}

/// An app that answers each request with how many came before it.
fn counting(fields: &'static [(&'static str, &'static str)]) -> Origin {
    let count = std::sync::atomic::AtomicUsize::new(0);
    Origin::start(move |call| {
        call.body()?;
        let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        call.answer(200, fields, number.to_string().as_bytes())
    })
}

/// What the cache says it did.
fn said(reply: &Reply) -> String {
    reply.all("cache-status").join(", ")
}

#[track_caller]
fn is_hit(reply: &Reply) {
    assert!(said(reply).starts_with("thinwire; hit"), "{}", said(reply));
}

/// A request field as the app saw it.
fn asked<'a>(call: &'a Call<'_>, name: &str) -> Option<&'a str> {
    call.head.field(name)
}
