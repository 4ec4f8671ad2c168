//! How many connections one client address has: `network.per_client_connections`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// The open connections by address; what is closed is forgotten, so `max_connections` bounds it.
#[derive(Debug, Default)]
pub(super) struct Crowd(Mutex<HashMap<IpAddr, usize>>);

/// One connection among those of its address.
#[derive(Debug)]
pub(super) struct Member(Option<(Arc<Crowd>, IpAddr)>);

impl Crowd {
    /// One more of this address, if it has fewer than `most` (0: unlimited). Unix sockets have no
    /// address and no limit.
    pub(super) fn join(self: &Arc<Self>, address: Option<IpAddr>, most: usize) -> Option<Member> {
        let (Some(address), 1..) = (address, most) else {
            return Some(Member(None));
        };
        let mut open = self.0.lock();
        let count = open.entry(address).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Member(Some((Arc::clone(self), address))))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let Some((crowd, address)) = &self.0 else {
            return;
        };
        let mut open = crowd.0.lock();
        if let Some(count) = open.get_mut(address) {
            *count -= 1;
            if *count == 0 {
                open.remove(address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_so_many_and_those_that_left_are_forgotten() {
        let crowd = Arc::new(Crowd::default());
        let address = |last| Some(IpAddr::from([192, 0, 2, last]));
        let first = crowd.join(address(1), 2);
        let second = crowd.join(address(1), 2);
        assert!(first.is_some() && second.is_some());
        assert!(crowd.join(address(1), 2).is_none());
        assert!(crowd.join(address(2), 2).is_some());
        assert!(crowd.join(None, 1).is_some() && crowd.join(address(1), 0).is_some());
        drop(first);
        assert!(crowd.join(address(1), 2).is_some());
        drop(second);
        assert!(crowd.0.lock().is_empty());
    }
}
