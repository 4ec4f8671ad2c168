//! Which requests go where, and by which policy.

use super::policy::{self, Scope};
use crate::config::kind::{ADDRESS, CIDR, HEADER_NAME, HEADER_PATTERN, HOST, METHOD, NAME, PATH};
use crate::config::section::Section;
use crate::config::settings::{Address, Listen, Match, Policy, Route, Upstream};

/// What routes are read against.
pub(super) struct Around<'a> {
    pub(super) defaults: &'a Policy,
    pub(super) upstreams: &'a [(String, Option<Upstream>)],
    pub(super) listen: &'a [Option<Listen>],
}

pub(super) fn routes(s: &mut Section<'_>, around: &Around<'_>) -> Vec<Route> {
    let mut names: Vec<String> = Vec::new();
    let about = "Where requests go: the first that matches, top to bottom. Nothing matches: 404.";
    let routes = s.sections("routes", about, |s| {
        let name = s.required("name", &NAME, "Its label in logs and metrics.");
        if let Some(name) = &name {
            if names.contains(name) {
                s.fault("name", "another route has this name, write another one");
            }
            names.push(name.clone());
        }
        let about = "All of it has to hold; what is absent matches everything.";
        let matches = s.section("match", about, |s| matches(s, around.listen));
        let upstream = upstream(s, around.upstreams);
        let policy = s.alike("defaults", |s| {
            policy::policy(s, around.defaults, Scope::Route)
        });
        Some(Route {
            name: name?,
            matches,
            upstream: upstream?,
            policy,
        })
    });
    routes.into_iter().flatten().collect()
}

/// The index of the upstream that is named.
fn upstream(s: &mut Section<'_>, upstreams: &[(String, Option<Upstream>)]) -> Option<usize> {
    let named = s.required("upstream", &NAME, "The name of one of the upstreams.")?;
    let index = upstreams.iter().position(|(name, _)| *name == named);
    // Where there are none at all, that is the fault.
    if index.is_none() && !upstreams.is_empty() {
        let known: Vec<&str> = upstreams.iter().map(|(name, _)| name.as_str()).collect();
        let what = format!(
            "no upstream is named {named:?}, write one of {}",
            known.join(", ")
        );
        s.fault("upstream", &what);
    }
    index
}

fn matches(s: &mut Section<'_>, listen: &[Option<Listen>]) -> Match {
    let about = "Hosts in any case, the port ignored; *.x matches what is below x, not x.";
    let hosts = s.list("host", &HOST, &[], about);
    let about = "A prefix that ends at a segment's border; =/exact matches exactly.";
    let path = s.optional("path", &PATH, about);
    let methods = s.list("methods", &METHOD, &[], "Request methods.");
    let about = "Fields that have to be there with exactly this value; \"*\": with any.";
    let headers = s.map("headers", (&HEADER_NAME, &HEADER_PATTERN), &[], about);
    let clients = s.list("client", &CIDR, &[], "CIDRs of client addresses.");
    let listeners = s.list("listener", &ADDRESS, &[], "Addresses of listeners.");
    for (index, address) in listeners.iter().enumerate() {
        if !is_listened(address, listen) {
            let what = "no listener has this address, write one as it stands in listen";
            s.fault_in("listener", index, what);
        }
    }
    Match {
        hosts,
        path,
        methods,
        headers,
        clients,
        listeners,
    }
}

/// A listener that has faults of its own may be the one that is meant.
fn is_listened(address: &Address, listen: &[Option<Listen>]) -> bool {
    listen
        .iter()
        .any(|one| one.as_ref().is_none_or(|one| one.address == *address))
}
