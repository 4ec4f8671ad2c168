//! What is done to a message that was held: inflated, looked at, compressed, and sent as it is
//! then. Until it is sent its plain form is kept, so that whatever fails can still go plain.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::job::{Turned, Work};
use super::{End, Messages, State, note};
use crate::body::Ledger;
use crate::codec::{Coding, Recipe, cost, sample};
use crate::frame::grpc::{COMPRESSED, Prefix};
use crate::policy::{self, MessageFault, Reason};
use crate::telemetry::{Form, Kind};
use crate::work::{CpuClock, Done, Lane, Lost};

/// A message up to this size leaves in one piece with its prefix.
const JOINED: usize = 16 * 1024;

/// A message that is gathered, or worked on.
pub(super) struct Held {
    pub(super) prefix: Prefix,
    pub(super) pieces: Vec<Bytes>,
    pub(super) size: usize,
    pub(super) then: Then,
    /// It came compressed: `pieces` are what it was inflated to.
    recoded: bool,
    turns: u32,
    cpu: Duration,
}

/// What is to be done to it.
#[derive(Clone, Copy)]
pub(super) enum Then {
    Compress(Recipe),
    Inflate(Coding),
}

impl Messages {
    /// A message is there.
    pub(super) fn held(&mut self, ledger: &mut Option<&mut Ledger>) {
        let State::Holding(held) = std::mem::replace(&mut self.state, State::Passing) else {
            return;
        };
        match held.then {
            Then::Compress(recipe) => self.compress(held, recipe, ledger),
            // Nothing compressed is nothing plain.
            Then::Inflate(_) if held.size == 0 => self.plain(held, Reason::MinSize, ledger),
            Then::Inflate(coding) => {
                let work = Work::inflate(coding, self.terms.max_message);
                self.work(held, work, ledger);
            }
        }
    }

    fn compress(&mut self, held: Held, recipe: Recipe, ledger: &mut Option<&mut Ledger>) {
        if sample::looks_incompressible(&held.pieces) {
            return self.plain(held, Reason::Incompressible, ledger);
        }
        let inline = held.size <= self.shop.inline && cost::is_inline_whole(recipe, held.size);
        let wait = self.shop.pool.pressure().expected_wait;
        let affordable = if inline {
            Some(recipe)
        } else {
            policy::under(recipe, wait, self.shop.max_wait)
        };
        let Some(recipe) = affordable else {
            return self.plain(held, Reason::Pressure, ledger);
        };
        match Work::encode(recipe, held.size) {
            Ok(work) => {
                self.shop.metrics.encode_run(Kind::Grpc, recipe.coding);
                self.work(held, work, ledger);
            }
            Err(_) => self.plain(held, Reason::Pressure, ledger),
        }
    }

    /// The next turn of the work, here or on a worker.
    fn work(&mut self, mut held: Held, work: Work, ledger: &mut Option<&mut Ledger>) {
        held.turns += 1;
        if held.size <= self.shop.inline && work.is_inline(held.size) {
            let (clock, coding) = (CpuClock::start(), work.coding());
            let turned = work.turn_inline(&held.pieces, held.size);
            held.cpu += clock.elapsed();
            return self.turned(held, coding, turned, ledger);
        }
        let estimate = work.cost(held.size);
        let lane = if held.turns <= 2 && estimate <= cost::SLICE {
            Lane::Short
        } else {
            Lane::Bulk
        };
        let (pieces, size) = (held.pieces.clone(), held.size);
        let job = move || work.turn(&pieces, size);
        // What a call began is taken however much waits; a first turn may still be refused.
        let errand = if held.turns == 1 {
            self.shop.pool.run(lane, estimate, job)
        } else {
            self.shop.pool.run_more(lane, estimate, job)
        };
        self.state = State::Away(held, errand);
    }

    /// A worker is done with its turn.
    pub(super) fn back(
        &mut self,
        mut held: Held,
        outcome: Result<Done<Turned>, Lost>,
        ledger: &mut Option<&mut Ledger>,
    ) {
        match outcome {
            Ok(done) => {
                held.cpu += done.cpu;
                if let Some(ledger) = ledger.as_mut() {
                    ledger.waited(done.waited);
                }
                let coding = held.coding();
                self.turned(held, coding, done.value, ledger);
            }
            Err(_) if matches!(held.then, Then::Compress(_)) => {
                self.plain(held, Reason::Pressure, ledger);
            }
            Err(_) => self.state = State::Ending(End::Fault(MessageFault::Lost)),
        }
    }

    fn turned(
        &mut self,
        mut held: Held,
        coding: Coding,
        turned: Turned,
        ledger: &mut Option<&mut Ledger>,
    ) {
        match turned {
            Turned::More(work) => self.work(held, work, ledger),
            Turned::Uncoded(error) => {
                tracing::warn!(%error, "a message goes plain");
                self.plain(held, Reason::Pressure, ledger);
            }
            Turned::Fault(fault) => {
                self.shop.metrics.decoded(Kind::Grpc, coding, held.cpu);
                self.state = State::Ending(End::Fault(fault));
            }
            Turned::Done(pieces) => match held.then {
                Then::Inflate(_) => {
                    self.shop.metrics.decoded(Kind::Grpc, coding, held.cpu);
                    held.inflated(pieces);
                    let (size, least) = (held.size as u64, self.terms.min_size);
                    match self.terms.compress {
                        Some(recipe) if size >= least => {
                            held.then = Then::Compress(recipe);
                            self.compress(held, recipe, ledger);
                        }
                        Some(_) => self.plain(held, Reason::MinSize, ledger),
                        None => self.plain(held, self.terms.plain, ledger),
                    }
                }
                Then::Compress(_) => {
                    let size = size_of(&pieces);
                    let (plain, coded) = (held.size as u64, size as u64);
                    let metrics = &self.shop.metrics;
                    metrics.encoded(Kind::Grpc, coding, plain, coded, held.cpu);
                    if size >= held.size {
                        return self.plain(held, Reason::Incompressible, ledger);
                    }
                    let form = if held.recoded {
                        Form::Recoded
                    } else {
                        Form::Compressed
                    };
                    self.shop.count(self.direction(), form);
                    if let Some(ledger) = ledger.as_mut() {
                        ledger.coding = Some(coding);
                        ledger.reason = Reason::Compressed.word();
                    }
                    let flags = held.prefix.flags | COMPRESSED;
                    drop(held);
                    self.send(flags, pieces);
                }
            },
        }
    }

    /// A message that was held goes out plain.
    fn plain(&mut self, held: Held, reason: Reason, ledger: &mut Option<&mut Ledger>) {
        let form = if held.recoded || matches!(held.then, Then::Inflate(_)) {
            Form::Recoded
        } else {
            Form::Plain
        };
        self.shop.count(self.direction(), form);
        note(reason, ledger);
        self.send(held.prefix.flags & !COMPRESSED, held.pieces);
    }

    /// A prefix, and a message that was not in the input in this form.
    fn send(&mut self, flags: u8, pieces: Vec<Bytes>) {
        let size = size_of(&pieces);
        let length = u32::try_from(size).unwrap_or(u32::MAX);
        let prefix = Prefix { flags, length }.encode();
        if size <= JOINED {
            let mut whole = BytesMut::with_capacity(prefix.len() + size);
            whole.extend_from_slice(&prefix);
            pieces
                .iter()
                .for_each(|piece| whole.extend_from_slice(piece));
            self.ready.push_back(whole.freeze());
        } else {
            self.ready.push_back(Bytes::copy_from_slice(&prefix));
            self.ready.extend(pieces);
        }
    }
}

impl Held {
    pub(super) fn new(prefix: Prefix, then: Then) -> Self {
        Self {
            prefix,
            pieces: Vec::new(),
            size: 0,
            then,
            recoded: false,
            turns: 0,
            cpu: Duration::ZERO,
        }
    }

    fn coding(&self) -> Coding {
        match self.then {
            Then::Compress(recipe) => recipe.coding,
            Then::Inflate(coding) => coding,
        }
    }

    /// It is plain now.
    fn inflated(&mut self, pieces: Vec<Bytes>) {
        self.size = size_of(&pieces);
        self.pieces = pieces;
        self.recoded = true;
        self.prefix.flags &= !COMPRESSED;
        self.turns = 0;
        self.cpu = Duration::ZERO;
    }
}

fn size_of(pieces: &[Bytes]) -> usize {
    pieces.iter().map(Bytes::len).sum()
}
