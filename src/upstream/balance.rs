//! Which server is next. Pure: the turn and the loads are given.

use crate::config::settings::Balance;

/// What counts of one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// Not ejected, and not tried already.
    pub(super) usable: bool,
    /// Requests under way.
    pub(super) in_flight: usize,
}

/// The index of the server to ask, of `count`; `turn` grows by one a choice.
///
/// Least requests: among equals they take turns, so that an idle upstream is not one server.
pub(super) fn choose(
    balance: Balance,
    turn: usize,
    count: usize,
    candidate: impl Fn(usize) -> Candidate,
) -> Option<usize> {
    let mut best: Option<(usize, usize)> = None;
    for step in 0..count {
        let index = (turn % count + step) % count;
        let Candidate { usable, in_flight } = candidate(index);
        if !usable {
            continue;
        }
        if balance == Balance::RoundRobin {
            return Some(index);
        }
        if best.is_none_or(|(_, fewest)| in_flight < fewest) {
            best = Some((index, in_flight));
        }
    }
    best.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT: usize = usize::MAX;

    /// `NOT` in flight: not usable.
    fn chosen(balance: Balance, turn: usize, servers: &[usize]) -> Option<usize> {
        choose(balance, turn, servers.len(), |index| Candidate {
            usable: servers[index] != NOT,
            in_flight: servers[index],
        })
    }

    #[test]
    fn the_table() {
        use Balance::{LeastRequests as Least, RoundRobin as Round};
        let table: &[(Balance, usize, &[usize], Option<usize>)] = &[
            (Round, 0, &[9, 0, 0], Some(0)),
            (Round, 1, &[9, 0, 0], Some(1)),
            (Round, 3, &[9, 0, 0], Some(0)),
            (Round, 1, &[0, NOT, 5], Some(2)),
            (Round, 2, &[0, NOT, NOT], Some(0)),
            (Round, 2, &[NOT, NOT], None),
            (Round, 0, &[], None),
            (Round, usize::MAX, &[0, 0], Some(1)),
            (Least, 0, &[3, 1, 2], Some(1)),
            (Least, 0, &[1, 1, 1], Some(0)),
            (Least, 1, &[1, 1, 1], Some(1)),
            (Least, 2, &[1, 1, 2], Some(0)),
            (Least, 0, &[NOT, 7, 8], Some(1)),
            (Least, 5, &[NOT, NOT], None),
            (Least, 0, &[], None),
        ];
        for (balance, turn, servers, expected) in table {
            assert_eq!(
                chosen(*balance, *turn, servers),
                *expected,
                "{balance:?}, turn {turn}, {servers:?}"
            );
        }
    }

    #[test]
    fn idle_servers_take_turns() {
        let served: Vec<_> = (0..6)
            .filter_map(|turn| chosen(Balance::LeastRequests, turn, &[0, 0, 0]))
            .collect();
        assert_eq!(served, [0, 1, 2, 0, 1, 2]);
    }
}
