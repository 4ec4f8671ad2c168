//! Whether a WebSocket message towards a client is worth compressing.
//!
//! Asked once a message, before its first byte is sent: what was begun compressed is ended so.

use super::Reason;
use crate::codec::sample;
use crate::config::settings::WebSocket;
use crate::frame::websocket::Kind;

/// Messages in a row that did not shrink before compressing is given up for a while.
const RUN: u8 = 4;

/// Messages that are left plain then; twice as many each time that nothing has changed, up to the
/// last figure.
const PAUSE: u16 = 16;
const LONGEST_PAUSE: u16 = 512;

/// Bytes from which on a message teaches: small ones do not shrink whatever their kind, cost little,
/// and say nothing about the large ones between them.
const LESSON: u64 = 256;

/// What is known of a message when its first piece is there.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// What it carries.
    pub kind: Kind,
    /// Bytes; unknown where it comes in fragments.
    pub length: Option<u64>,
    /// The first piece.
    pub beginning: &'a [u8],
}

/// How a message goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Compressed. It may still turn out not to shrink.
    Deflated,
    /// As it came, and why.
    Plain(Reason),
}

/// What a connection's messages taught: one for each direction that compresses.
#[derive(Debug, Clone, Copy, Default)]
pub struct BackOff {
    text: Run,
    binary: Run,
}

/// Messages of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    /// That did not shrink, in a row.
    bad: u8,
    /// That are left plain from now on.
    skip: u16,
    /// How long the last pause was.
    pause: u16,
}

/// Decides on a message; the first that applies gives the reason:
///
/// | for | reason |
/// |---|---|
/// | an empty one; without history, one below `min_size` | min_size |
/// | the kinds in `except` | type |
/// | any, while its kind is backed off; binary that looks random | incompressible |
///
/// `takeover`: this direction has a history, as agreed.
pub fn should_compress(
    told: Told<'_>,
    policy: &WebSocket,
    takeover: bool,
    back_off: &mut BackOff,
) -> Form {
    let least = if takeover { 1 } else { policy.min_size.max(1) };
    if told.length.is_some_and(|length| length < least) {
        return Form::Plain(Reason::MinSize);
    }
    let excepted = match told.kind {
        Kind::Text => policy.except_text,
        Kind::Binary => policy.except_binary,
    };
    if excepted {
        return Form::Plain(Reason::Type);
    }
    let random = || told.kind == Kind::Binary && sample::looks_incompressible(&[told.beginning]);
    if back_off.run(told.kind).is_paused() || random() {
        return Form::Plain(Reason::Incompressible);
    }
    Form::Deflated
}

impl BackOff {
    /// A message was compressed from `plain` bytes to `coded`, which are as many where it did not
    /// shrink.
    pub fn learn(&mut self, kind: Kind, plain: u64, coded: u64) {
        if plain < LESSON {
            return;
        }
        // Saving less than a tenth is not worth a tenth of the speed.
        let shrank = coded < plain - plain / 10;
        let run = self.run(kind);
        if shrank {
            *run = Run::default();
            return;
        }
        run.bad += 1;
        if run.bad >= RUN {
            run.pause = (run.pause * 2).clamp(PAUSE, LONGEST_PAUSE);
            // One more that does not shrink, and the next pause begins.
            (run.skip, run.bad) = (run.pause, RUN - 1);
        }
    }

    fn run(&mut self, kind: Kind) -> &mut Run {
        match kind {
            Kind::Text => &mut self.text,
            Kind::Binary => &mut self.binary,
        }
    }
}

impl Run {
    /// Whether the next message is left plain; it counts as one that was.
    fn is_paused(&mut self) -> bool {
        let paused = self.skip > 0;
        self.skip = self.skip.saturating_sub(1);
        paused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFLATED: Form = Form::Deflated;
    const SMALL: Form = Form::Plain(Reason::MinSize);
    const RANDOM: Form = Form::Plain(Reason::Incompressible);

    fn text(length: u64) -> Told<'static> {
        Told {
            kind: Kind::Text,
            length: Some(length),
            beginning: b"{}",
        }
    }

    fn binary(beginning: &[u8]) -> Told<'_> {
        Told {
            kind: Kind::Binary,
            length: Some(beginning.len() as u64),
            beginning,
        }
    }

    fn decided(told: Told<'_>, policy: &WebSocket, takeover: bool) -> Form {
        should_compress(told, policy, takeover, &mut BackOff::default())
    }

    #[test]
    fn small_messages_are_worth_it_only_with_a_history() {
        let policy = WebSocket::default();
        for (length, with, without) in [
            (0, SMALL, SMALL),
            (1, DEFLATED, SMALL),
            (63, DEFLATED, SMALL),
            (64, DEFLATED, DEFLATED),
        ] {
            assert_eq!(decided(text(length), &policy, true), with, "{length}");
            assert_eq!(decided(text(length), &policy, false), without, "{length}");
        }
        let unknown = Told {
            length: None,
            ..text(0)
        };
        assert_eq!(decided(unknown, &policy, false), DEFLATED);
        let eager = WebSocket {
            min_size: 0,
            ..policy
        };
        assert_eq!(decided(text(0), &eager, false), SMALL);
    }

    #[test]
    fn excepted_kinds_stay_plain() {
        let excepted = Form::Plain(Reason::Type);
        for (except_text, except_binary) in [(false, false), (true, false), (false, true)] {
            let policy = WebSocket {
                except_text,
                except_binary,
                ..WebSocket::default()
            };
            let is = |excepts| if excepts { excepted } else { DEFLATED };
            assert_eq!(decided(text(100), &policy, true), is(except_text));
            let zeros = binary(&[0; 100]);
            assert_eq!(decided(zeros, &policy, true), is(except_binary));
        }
    }

    #[test]
    fn binary_that_looks_random_stays_plain() {
        let mut state = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(4_096)
        .collect();
        let policy = WebSocket::default();
        assert_eq!(decided(binary(&noise), &policy, true), RANDOM);
        assert_eq!(decided(binary(&noise[..100]), &policy, true), DEFLATED);
        assert_eq!(decided(binary(&[7; 4_096]), &policy, true), DEFLATED);
    }

    /// How many messages stay plain before one is tried.
    fn pause(back_off: &mut BackOff) -> u16 {
        let policy = WebSocket::default();
        let mut plain = 0;
        while should_compress(text(100), &policy, true, back_off) == RANDOM {
            plain += 1;
        }
        plain
    }

    #[test]
    fn what_never_shrinks_is_tried_ever_more_rarely() {
        let mut back_off = BackOff::default();
        for _ in 0..RUN {
            assert_eq!(pause(&mut back_off), 0);
            back_off.learn(Kind::Text, 1_000, 1_000);
        }
        for expected in [16, 32, 64, 128, 256, 512, 512] {
            assert_eq!(pause(&mut back_off), expected);
            back_off.learn(Kind::Text, 1_000, 901);
        }
        // The other kind has its own experience.
        let policy = WebSocket::default();
        let other = should_compress(binary(b"\0\0"), &policy, true, &mut back_off);
        assert_eq!(other, DEFLATED);
    }

    #[test]
    fn small_ones_teach_nothing() {
        let mut back_off = BackOff::default();
        for _ in 0..100 {
            back_off.learn(Kind::Text, 20, 20);
        }
        assert_eq!(pause(&mut back_off), 0);
    }

    #[test]
    fn one_that_shrinks_ends_it() {
        let mut back_off = BackOff::default();
        for coded in [1_000, 1_000, 1_000, 500, 1_000, 1_000, 1_000] {
            back_off.learn(Kind::Text, 1_000, coded);
        }
        assert_eq!(pause(&mut back_off), 0, "never so many in a row");
        back_off.learn(Kind::Text, 1_000, 1_000);
        assert_eq!(pause(&mut back_off), PAUSE);
        back_off.learn(Kind::Text, 1_000, 899);
        for _ in 1..RUN {
            back_off.learn(Kind::Text, 1_000, 1_000);
        }
        assert_eq!(pause(&mut back_off), 0, "the past is forgotten");
    }
}
