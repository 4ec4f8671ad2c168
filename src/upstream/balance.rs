//! Which server is next. Pure: the turn and the loads are given.

use crate::config::settings::Balance;

/// What counts of one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// Not ejected, and not tried already.
    pub(super) usable: bool,
    /// Requests under way.
    pub(super) in_flight: usize,
    /// Percent of its full load, 1 to 100: less while it comes back.
    pub(super) share: u32,
}

impl Candidate {
    /// What it would carry with one request more, as if it were at full share.
    fn load(self) -> u64 {
        (self.in_flight as u64 + 1) * 100 / u64::from(self.share.max(1))
    }
}

/// The index of the server to ask, of `count`; `turn` grows by one a choice.
///
/// Least requests: among equals they take turns, so that an idle upstream is not one server. By
/// turns: one that is coming back is passed over in all but its share of the turns.
pub(super) fn choose(
    balance: Balance,
    turn: usize,
    count: usize,
    candidate: impl Fn(usize) -> Candidate,
) -> Option<usize> {
    let mut best: Option<(usize, u64)> = None;
    for step in 0..count {
        let index = (turn % count + step) % count;
        let candidate = candidate(index);
        if !candidate.usable {
            continue;
        }
        let load = match balance {
            Balance::LeastRequests => candidate.load(),
            Balance::RoundRobin if is_its_turn(turn / count, candidate.share) => {
                return Some(index);
            }
            // Somebody has to take it, if nobody's turn it is.
            Balance::RoundRobin => u64::MAX,
        };
        if best.is_none_or(|(_, least)| load < least) {
            best = Some((index, load));
        }
    }
    best.map(|(index, _)| index)
}

/// So many rounds of a hundred, evenly spread.
fn is_its_turn(round: usize, share: u32) -> bool {
    let (round, share) = (round as u64 % 100, u64::from(share));
    (round + 1) * share / 100 > round * share / 100
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
            share: 100,
        })
    }

    #[test]
    fn one_that_comes_back_gets_its_share() {
        for (share, expected) in [(10, 10), (50, 50), (100, 100)] {
            let at = |index: usize| Candidate {
                usable: true,
                in_flight: 9,
                share: if index == 0 { share } else { 100 },
            };
            let turns =
                (0..200).filter(|turn| choose(Balance::RoundRobin, *turn, 2, at) == Some(0));
            assert_eq!(turns.count(), expected, "of 100 turns, at {share} %");
        }
        let least = |in_flight| {
            choose(Balance::LeastRequests, 0, 2, |index| Candidate {
                usable: true,
                in_flight: if index == 0 { in_flight } else { 9 },
                share: if index == 0 { 20 } else { 100 },
            })
        };
        assert_eq!((least(0), least(2)), (Some(0), Some(1)));
        let alone = |_| Candidate {
            usable: true,
            in_flight: 0,
            share: 10,
        };
        assert!((0..20).all(|turn| choose(Balance::RoundRobin, turn, 1, alone).is_some()));
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
