use proptest::prelude::*;

use super::*;

/// Messages as a cutter tells them, from input in these pieces.
fn messages(pieces: &[&[u8]]) -> (Vec<(u8, Vec<u8>)>, bool) {
    let mut cutter = Cutter::default();
    let mut found: Vec<(u8, Vec<u8>)> = Vec::new();
    let mut complete = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while let Some((taken, cut)) = cutter.cut(rest) {
            assert!(taken > 0 && taken <= rest.len());
            match cut {
                Cut::Part => {}
                Cut::Prefix(prefix) => {
                    found.push((prefix.flags, Vec::new()));
                    complete.push(prefix.length == 0);
                }
                Cut::Payload { last } => {
                    let (_, message) = found.last_mut().expect("a prefix comes first");
                    message.extend_from_slice(&rest[..taken]);
                    *complete.last_mut().expect("a prefix comes first") = last;
                }
            }
            rest = &rest[taken..];
        }
    }
    assert_eq!(
        complete.iter().all(|complete| *complete) && cutter.have == 0,
        cutter.is_between()
    );
    (found, cutter.is_between())
}

fn wire(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut wire = Vec::new();
    for (flags, message) in messages {
        let length = u32::try_from(message.len()).expect("a short message");
        let prefix = Prefix {
            flags: *flags,
            length,
        };
        wire.extend_from_slice(&prefix.encode());
        wire.extend_from_slice(message);
    }
    wire
}

#[test]
fn a_prefix_split_one_and_four_and_three_messages_at_once_are_found() {
    let three = [
        (0, b"one".to_vec()),
        (1, Vec::new()),
        (0x80, b"three".to_vec()),
    ];
    let wire = wire(&three);
    assert_eq!(messages(&[&wire]), (three.to_vec(), true));
    assert_eq!(messages(&[&wire[..1], &wire[1..]]), (three.to_vec(), true));
}

#[test]
fn a_stream_that_ends_within_a_message_is_told_from_one_that_ends_between() {
    let wire = wire(&[(0, b"message".to_vec()), (0, b"again".to_vec())]);
    for end in 0..=wire.len() {
        let between = matches!(end, 0 | 12) || end == wire.len();
        assert_eq!(messages(&[&wire[..end]]).1, between, "{end}");
    }
}

#[test]
fn a_length_of_four_gigabytes_is_believed_and_costs_nothing() {
    let mut cutter = Cutter::default();
    let cut = cutter.cut(&[0, 0xff, 0xff, 0xff, 0xff]);
    let length = u32::MAX;
    assert_eq!(cut, Some((5, Cut::Prefix(Prefix { flags: 0, length }))));
    assert_eq!(
        cutter.cut(&[0; 10]),
        Some((10, Cut::Payload { last: false }))
    );
    assert!(cutter.is_inside() && !cutter.is_between());
}

proptest! {
    #[test]
    fn however_messages_are_split_they_come_out_as_they_went_in(
        sent in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..200)), 0..20),
        cuts in prop::collection::vec(1..50_usize, 1..40),
    ) {
        let wire = wire(&sent);
        let mut pieces = Vec::new();
        let mut rest = &wire[..];
        for size in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, more) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = more;
        }
        prop_assert_eq!(messages(&pieces), (sent, true));
    }
}
