//! The addresses of clients and of the operator.

use std::net::SocketAddr;

use super::files;
use crate::config::kind::{ADDRESS, CIDR, Flag, IP_PORT, TOKEN};
use crate::config::section::Section;
use crate::config::settings::{Address, Admin, Listen, ListenTls};

pub(super) fn listen(s: &mut Section<'_>) -> Vec<Option<Listen>> {
    let mut taken = Vec::new();
    let about = "The addresses where clients connect, at least one.";
    s.sections("listen", about, |s| {
        let about = "IP:port, \"[v6]:port\" or unix:/path.";
        let address = s.required("address", &ADDRESS, about);
        if let Some(address) = &address {
            if is_fixed(address) && taken.contains(address) {
                s.fault(
                    "address",
                    "another listener has this address, write another one",
                );
            }
            taken.push(address.clone());
        }
        let about = "TLS with ALPN h2 and http/1.1; absent: cleartext.";
        let tls = s.optional_section("tls", about, tls);
        let about = "Every connection starts with a PROXY v1 or v2 header.";
        let proxy_protocol = s.key("proxy_protocol", &Flag, false, about);
        let about = "CIDRs whose X-Forwarded-* and Forwarded are kept; from all others they are \
                     replaced.";
        let trust_forwarded_from = s.list("trust_forwarded_from", &CIDR, &[], about);
        Some(Listen {
            address: address?,
            tls,
            proxy_protocol,
            trust_forwarded_from,
        })
    })
}

/// Port 0 is another port each time.
fn is_fixed(address: &Address) -> bool {
    !matches!(address, Address::Tcp(address) if address.port() == 0)
}

fn tls(s: &mut Section<'_>) -> Option<ListenTls> {
    let about = "Certificates, picked by SNI; the first is the default. Read again when the files \
                 change.";
    let certificates = s.sections("certificates", about, files::key_pair);
    let about = "PEM file: clients must show a certificate signed by one of these.";
    let client_ca = files::roots(s, "client_ca", about);
    Some(ListenTls {
        certificates: certificates.into_iter().flatten().collect(),
        client_ca,
    })
}

pub(super) fn admin(s: &mut Section<'_>, listen: &[Option<Listen>]) -> Admin {
    let base = Admin::default();
    let about = "The operator's address: /live /ready /metrics /config, the purge, the dashboard.";
    s.section("admin", about, |s| {
        let address = s.key(
            "address",
            &IP_PORT,
            base.address,
            "IP:port or \"[v6]:port\".",
        );
        if is_taken(address, listen) {
            let what = format!("a listener has {address} already, write another one");
            s.fault("address", &what);
        }
        let about = "Bearer token for /config, the purge and the dashboard; without one they \
                     answer on loopback addresses only.";
        let token = s.key("token", &TOKEN, base.token, about);
        let about = "CIDRs whose requests may carry Thinwire-Explain.";
        let explain_to = s.list("explain_to", &CIDR, &base.explain_to, about);
        Admin {
            address,
            token,
            explain_to,
        }
    })
}

fn is_taken(address: SocketAddr, listen: &[Option<Listen>]) -> bool {
    let address = Address::Tcp(address);
    is_fixed(&address)
        && listen
            .iter()
            .flatten()
            .any(|other| other.address == address)
}
