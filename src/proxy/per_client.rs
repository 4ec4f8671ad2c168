//! How often one client address may ask, on one route.
//!
//! The rate is the generic cell rate algorithm's (crate governor): one number an address, no timers.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

use arc_swap::ArcSwap;
use governor::clock::Clock as _;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter, clock};

use crate::config::settings::Limits;

/// Addresses that are remembered. Past that, those that may ask at full rate anyway are forgotten,
/// and if that does not help, all are: a flood from everywhere must not fill the memory.
const MOST: usize = 1 << 16;

type Limiter = RateLimiter<IpAddr, HashMapStateStore<IpAddr>, clock::MonotonicClock>;

/// The rates of a route's clients.
pub(super) struct PerClient {
    quota: Quota,
    limiter: ArcSwap<Limiter>,
}

impl PerClient {
    /// Absent: unlimited. Without a `burst`, one second's requests may come at once.
    pub(super) fn new(limits: &Limits) -> Option<Self> {
        let rate = NonZeroU32::new(limits.requests_per_second)?;
        let burst = NonZeroU32::new(limits.burst).unwrap_or(rate);
        let quota = Quota::per_second(rate).allow_burst(burst);
        Some(Self {
            quota,
            limiter: ArcSwap::from_pointee(limiter(quota)),
        })
    }

    /// Counts a request; an error says in how many seconds this address may ask again.
    pub(super) fn admit(&self, address: IpAddr) -> Result<(), u64> {
        let limiter = self.limiter.load();
        let checked = limiter.check_key(&network(address));
        if limiter.len() > MOST {
            limiter.retain_recent();
            limiter.shrink_to_fit();
            if limiter.len() > MOST / 2 {
                self.limiter.store(limiter_for(self.quota));
            }
        }
        checked.map_err(|until| {
            let wait = until.wait_time_from(limiter.clock().now());
            wait.as_secs() + 1
        })
    }
}

/// Who has one IPv6 address has the 2^64 beside it (RFC 6177).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

fn limiter_for(quota: Quota) -> std::sync::Arc<Limiter> {
    std::sync::Arc::new(limiter(quota))
}

fn limiter(quota: Quota) -> Limiter {
    RateLimiter::new(quota, HashMapStateStore::default(), clock::MonotonicClock)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn limits(requests_per_second: u32, burst: u32) -> Limits {
        Limits {
            request_head: 0,
            request_body: 0,
            concurrent_requests: 0,
            requests_per_second,
            burst,
        }
    }

    fn admitted(per_client: &PerClient, address: &str, of: usize) -> usize {
        let address = address.parse().expect("an address");
        (0..of)
            .filter(|_| per_client.admit(address).is_ok())
            .count()
    }

    #[test]
    fn the_burst_comes_at_once_and_each_address_has_its_own() {
        assert!(PerClient::new(&limits(0, 7)).is_none());
        let slow = PerClient::new(&limits(1, 5)).expect("limited");
        assert_eq!(admitted(&slow, "192.0.2.1", 9), 5);
        assert_eq!(admitted(&slow, "192.0.2.2", 9), 5);
        assert_eq!(admitted(&slow, "::ffff:192.0.2.2", 9), 0, "the same one");
        let wait = slow.admit("192.0.2.1".parse().expect("an address"));
        assert!(matches!(wait, Err(1..=2)), "{wait:?}");
        let plain = PerClient::new(&limits(3, 0)).expect("limited");
        assert_eq!(admitted(&plain, "192.0.2.1", 9), 3);
    }

    #[test]
    fn the_neighbours_in_an_ipv6_network_are_one_client() {
        let slow = PerClient::new(&limits(1, 2)).expect("limited");
        assert_eq!(admitted(&slow, "2001:db8::1", 2), 2);
        assert_eq!(admitted(&slow, "2001:db8::ffff:1", 2), 0);
        assert_eq!(admitted(&slow, "2001:db8:0:1::1", 2), 2);
    }

    #[test]
    fn addresses_without_end_do_not_fill_the_memory() {
        let slow = PerClient::new(&limits(1, 1)).expect("limited");
        for number in 0..3 * MOST as u32 {
            let _ = slow.admit(Ipv4Addr::from(number).into());
            assert!(slow.limiter.load().len() <= MOST + 1);
        }
    }
}
