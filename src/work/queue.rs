//! What waits for a thread: two lanes, from which anything can be withdrawn.

use std::collections::BTreeMap;

/// Where a job waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Work at the start of an answer, and anything small.
    Short,
    /// The rest: every fourth turn while the short lane waits too, every turn while it does not.
    Bulk,
}

/// While both lanes wait, one turn in so many is the bulk lane's.
const BULK_TURN: u8 = 4;

/// Where a job stands, to withdraw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    lane: Lane,
    number: u64,
}

/// First come, first served, a lane.
pub(super) struct Queue<T> {
    short: BTreeMap<u64, T>,
    bulk: BTreeMap<u64, T>,
    next: u64,
    /// Turns since the bulk lane's last, while both waited.
    turn: u8,
}

impl<T> Queue<T> {
    pub(super) const fn new() -> Self {
        Self {
            short: BTreeMap::new(),
            bulk: BTreeMap::new(),
            next: 0,
            turn: 0,
        }
    }

    pub(super) fn push(&mut self, lane: Lane, job: T) -> Ticket {
        let number = self.next;
        self.next += 1;
        self.lane(lane).insert(number, job);
        Ticket { lane, number }
    }

    /// The job whose turn it is.
    pub(super) fn pop(&mut self) -> Option<(Lane, T)> {
        let lane = match (self.short.is_empty(), self.bulk.is_empty()) {
            (true, _) => Lane::Bulk,
            (false, true) => Lane::Short,
            (false, false) => {
                self.turn = (self.turn + 1) % BULK_TURN;
                if self.turn == 0 {
                    Lane::Bulk
                } else {
                    Lane::Short
                }
            }
        };
        self.lane(lane).pop_first().map(|(_, job)| (lane, job))
    }

    /// Takes a job out, if it still waits.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> Option<T> {
        self.lane(ticket.lane).remove(&ticket.number)
    }

    /// Everything that waits.
    pub(super) fn drain(&mut self) -> Vec<T> {
        let (short, bulk) = (
            std::mem::take(&mut self.short),
            std::mem::take(&mut self.bulk),
        );
        short.into_values().chain(bulk.into_values()).collect()
    }

    fn lane(&mut self, lane: Lane) -> &mut BTreeMap<u64, T> {
        match lane {
            Lane::Short => &mut self.short,
            Lane::Bulk => &mut self.bulk,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulk_gets_every_fourth_turn_while_both_wait() {
        let mut queue = Queue::new();
        for job in 0..6 {
            queue.push(Lane::Bulk, job);
            queue.push(Lane::Short, job);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let lanes: String = order
            .iter()
            .map(|(lane, _)| if *lane == Lane::Short { 's' } else { 'b' })
            .collect();
        assert_eq!(lanes, "sssbsssbbbbb");
        for lane in [Lane::Short, Lane::Bulk] {
            let jobs: Vec<_> = order
                .iter()
                .filter(|(of, _)| *of == lane)
                .map(|(_, job)| *job)
                .collect();
            assert_eq!(jobs, [0, 1, 2, 3, 4, 5], "{lane:?}");
        }
    }

    #[test]
    fn what_was_withdrawn_never_gets_a_turn() {
        let mut queue = Queue::new();
        let tickets: Vec<_> = (0..3).map(|job| queue.push(Lane::Short, job)).collect();
        assert_eq!(queue.withdraw(tickets[1]), Some(1));
        assert_eq!(queue.withdraw(tickets[1]), None);
        assert_eq!(queue.pop(), Some((Lane::Short, 0)));
        assert_eq!(queue.withdraw(tickets[0]), None, "it had its turn");
        assert_eq!(queue.drain(), [2]);
        assert_eq!(queue.pop(), None);
    }
}
