//! The handles of servers. Counters stay, as counters must; the row that says whether a server is
//! healthy goes with the server, or a reload would leave an alarm that nothing can clear.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::families::{ByOutcome, ByServer, Families};
use super::handles::ServerMetrics;

/// The servers that somebody holds handles of.
#[derive(Debug)]
pub(super) struct Servers {
    families: Arc<Families>,
    listed: Mutex<HashMap<ByServer, Weak<Listed>>>,
}

/// A server is listed while one of these is held.
#[derive(Debug)]
pub(super) struct Listed {
    labels: ByServer,
    servers: Arc<Servers>,
}

impl Servers {
    pub(super) fn new(families: Arc<Families>) -> Arc<Self> {
        Arc::new(Self {
            families,
            listed: Mutex::default(),
        })
    }

    /// The handles of `server`; the same numbers for the same names.
    pub(super) fn handles(self: &Arc<Self>, upstream: &str, server: &str) -> ServerMetrics {
        let outcome = |outcome| {
            let (upstream, server) = (upstream.to_owned(), server.to_owned());
            let labels = ByOutcome {
                upstream,
                server,
                outcome,
            };
            self.families.upstream_requests.get_or_create_owned(&labels)
        };
        let labels = ByServer {
            upstream: upstream.to_owned(),
            server: server.to_owned(),
        };
        let mut listed = self.listed.lock();
        let known = listed.get(&labels).and_then(Weak::upgrade);
        let entry = known.unwrap_or_else(|| {
            let entry = Arc::new(Listed {
                labels: labels.clone(),
                servers: Arc::clone(self),
            });
            listed.insert(labels.clone(), Arc::downgrade(&entry));
            entry
        });
        ServerMetrics {
            answered: outcome("answered"),
            connect_failed: outcome("connect_failed"),
            failed: outcome("failed"),
            timed_out: outcome("timed_out"),
            canceled: outcome("canceled"),
            retried: outcome("retried"),
            healthy: self.families.upstream_healthy.get_or_create_owned(&labels),
            _listed: Some(entry),
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut listed = self.servers.listed.lock();
        // Whoever asked for the same server meanwhile has put a new entry there.
        if listed
            .get(&self.labels)
            .is_some_and(|entry| entry.strong_count() == 0)
        {
            listed.remove(&self.labels);
            self.servers.families.upstream_healthy.remove(&self.labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    fn servers() -> (Arc<Servers>, ByServer) {
        let families = Arc::new(Families::register(&mut Registry::default()));
        (
            Servers::new(families),
            ByServer {
                upstream: "app".into(),
                server: "demo".into(),
            },
        )
    }

    #[test]
    fn a_server_that_a_reload_removes_is_no_longer_said_to_be_ill() {
        let (servers, labels) = servers();
        let handles = servers.handles("app", "demo");
        handles.answered.inc();
        let copy = handles.clone();
        drop(handles);
        assert!(servers.families.upstream_healthy.get(&labels).is_some());
        drop(copy);
        assert!(servers.families.upstream_healthy.get(&labels).is_none());
        assert_eq!(
            servers.handles("app", "demo").answered.get(),
            1,
            "counters go on"
        );
    }

    #[test]
    fn a_server_that_a_reload_keeps_stays() {
        let (servers, labels) = servers();
        let before = servers.handles("app", "demo");
        let after = servers.handles("app", "demo");
        after.healthy.set(1);
        drop(before);
        let row = servers
            .families
            .upstream_healthy
            .get(&labels)
            .map(|row| row.get());
        assert_eq!(row, Some(1));
    }
}
