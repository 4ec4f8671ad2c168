use super::*;

const TWELVE: Terms = Terms {
    bits: 12,
    takeover: true,
};

fn answered(lines: &[&str], terms: Terms) -> Option<(String, Agreed)> {
    let agreement = agree(lines.iter().map(|line| line.as_bytes()), terms)?;
    let answer = agreement.answer.to_str().expect("plain characters");
    Some((answer.to_owned(), agreement.agreed))
}

fn answer_to(offer: &str) -> Option<String> {
    answered(&[offer], TWELVE).map(|(answer, _)| answer)
}

#[test]
fn chrome_offers_its_window_and_gets_it_bounded() {
    let (answer, agreed) =
        answered(&["permessage-deflate; client_max_window_bits"], TWELVE).expect("acceptable");
    assert_eq!(
        answer,
        "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12"
    );
    let expected = Agreed {
        server_bits: 12,
        client_bits: 12,
        server_takeover: true,
        client_takeover: true,
    };
    assert_eq!(agreed, expected);
}

#[test]
fn firefox_and_safari_offer_no_window_and_forget_instead() {
    let (answer, agreed) = answered(&["permessage-deflate"], TWELVE).expect("acceptable");
    assert_eq!(
        answer,
        "permessage-deflate; client_no_context_takeover; server_max_window_bits=12"
    );
    let expected = Agreed {
        server_bits: 12,
        client_bits: 15,
        server_takeover: true,
        client_takeover: false,
    };
    assert_eq!(agreed, expected);
}

#[test]
fn the_first_acceptable_offer_of_all_lines_is_taken() {
    let lines = [
        "x-webkit-deflate-frame, permessage-bzip2; a=\"b, permessage-deflate\"",
        "permessage-deflate; server_max_window_bits=7 , permessage-deflate;server_max_window_bits=10",
        "permessage-deflate; client_max_window_bits=9",
    ];
    let (answer, _) = answered(&lines, TWELVE).expect("acceptable");
    assert_eq!(
        answer,
        "permessage-deflate; client_no_context_takeover; server_max_window_bits=10"
    );
}

#[test]
fn offers_to_decline_are_passed_over() {
    for parameters in [
        "; unknown",
        "; server_no_context_takeover; server_no_context_takeover",
        "; client_no_context_takeover; client_no_context_takeover",
        "; server_max_window_bits=10; server_max_window_bits=10",
        "; client_max_window_bits; client_max_window_bits=10",
        "; server_no_context_takeover=1",
        "; client_no_context_takeover=\"\"",
        "; server_no_context_takeover=",
        "; server_max_window_bits",
        "; server_max_window_bits=",
        "; server_max_window_bits=7",
        "; server_max_window_bits=16",
        "; server_max_window_bits=08",
        "; server_max_window_bits=+9",
        "; server_max_window_bits=1a",
        "; server_max_window_bits=10.0",
        "; server_max_window_bits=\"10;\"",
        "; client_max_window_bits=",
        "; client_max_window_bits=7",
        "; client_max_window_bits=16",
        "; client_max_window_bits=150",
        "; Client_Max_Window_Bits",
        "; client_max_window_bits x",
        ";",
        "; ; client_max_window_bits",
        "=1",
        " x",
    ] {
        let offer = format!("permessage-deflate{parameters}");
        assert_eq!(answer_to(&offer), None, "{offer}");
        let with_another = format!("{offer}, permessage-deflate");
        assert_eq!(answer_to(&with_another), answer_to(NAME), "{with_another}");
    }
    for other in ["", "PerMessage-Deflate", "permessage-deflate2", "\u{fe}"] {
        assert_eq!(answer_to(other), None, "{other}");
    }
    assert_eq!(answered(&[], TWELVE), None);
}

#[test]
fn quoted_values_and_blanks_mean_the_same() {
    let plain = answer_to("permessage-deflate; client_max_window_bits=10");
    assert!(plain.is_some());
    for same in [
        "permessage-deflate;client_max_window_bits=\"10\"",
        "permessage-deflate ;\tclient_max_window_bits = 10 ",
        "permessage-deflate; client_max_window_bits=\"1\\0\"",
        " , permessage-deflate; client_max_window_bits=10,",
    ] {
        assert_eq!(answer_to(same), plain, "{same}");
    }
    for open in ["\"10", "\"10\\\"", "\"\\\"", "\""] {
        let offer = format!("permessage-deflate; client_max_window_bits={open}");
        assert_eq!(answer_to(&offer), None, "{offer}");
    }
}

#[test]
fn a_window_of_the_server_is_never_larger_than_offered_nor_than_ours() {
    for (offered, bits) in pairs() {
        let offer = format!("permessage-deflate; server_max_window_bits={offered}");
        let (answer, agreed) = answered(&[&offer], within(bits)).expect("acceptable");
        let expected = bits.min(offered);
        assert_eq!(agreed.server_bits, expected);
        assert!(answer.ends_with(&format!("server_max_window_bits={expected}")));
    }
}

#[test]
fn a_window_of_the_client_is_answered_only_where_it_was_offered() {
    for (offered, bits) in pairs() {
        let offer = format!("permessage-deflate; client_max_window_bits={offered}");
        let (answer, agreed) = answered(&[&offer], within(bits)).expect("acceptable");
        let expected = bits.min(offered);
        assert_eq!(
            (agreed.client_bits, agreed.client_takeover),
            (expected, true)
        );
        assert!(answer.ends_with(&format!("client_max_window_bits={expected}")));
        let (bare, _) = answered(&[NAME], within(bits)).expect("acceptable");
        assert!(!bare.contains("client_max_window_bits"), "{bare}");
    }
}

#[test]
fn history_is_kept_only_where_both_sides_keep_it() {
    let forgetful = Terms {
        takeover: false,
        ..TWELVE
    };
    for (parameter, terms, server, client) in [
        ("", TWELVE, true, true),
        ("; server_no_context_takeover", TWELVE, false, true),
        ("; client_no_context_takeover", TWELVE, true, false),
        ("", forgetful, false, false),
    ] {
        let offer = format!("permessage-deflate; client_max_window_bits{parameter}");
        let (answer, agreed) = answered(&[&offer], terms).expect("acceptable");
        let kept = (agreed.server_takeover, agreed.client_takeover);
        assert_eq!(kept, (server, client), "{offer}");
        assert_eq!(answer.contains("; server_no_context_takeover"), !server);
        assert_eq!(answer.contains("; client_no_context_takeover"), !client);
    }
}

#[test]
fn the_full_window_goes_without_saying_unless_it_was_asked() {
    let answer = |offer| answered(&[offer], within(15)).expect("acceptable").0;
    assert_eq!(
        answer("permessage-deflate"),
        "permessage-deflate; client_no_context_takeover"
    );
    assert_eq!(
        answer("permessage-deflate; server_max_window_bits=15; client_max_window_bits"),
        "permessage-deflate; server_max_window_bits=15; client_max_window_bits=15"
    );
}

#[test]
fn whatever_is_offered_the_answer_is_one_that_may_be_given() {
    let mut random = fastrand::Rng::with_seed(7692);
    let parameters = [
        offer::SERVER_FORGETS,
        offer::CLIENT_FORGETS,
        offer::SERVER_BITS,
        offer::CLIENT_BITS,
    ];
    let others = [
        ";", ",", "=", "\"", "\\", " ", "8", "9", "15", "16", "\u{e9}",
    ];
    let mut taken = 0;
    for _ in 0..50_000 {
        let mut line = NAME.to_owned();
        for _ in 0..random.usize(..4) {
            line += "; ";
            line += parameters[random.usize(..4)];
            for _ in 0..random.usize(..3) {
                line += others[random.usize(..others.len())];
            }
        }
        let bits = random.u8(9..=15);
        let Some((answer, agreed)) = answered(&[&line], within(bits)) else {
            continue;
        };
        taken += 1;
        assert!((8..=bits).contains(&agreed.server_bits), "{line}");
        let bounded = answer.contains(offer::CLIENT_BITS);
        assert!(!bounded || line.contains(offer::CLIENT_BITS), "{line}");
        assert!(bounded || !agreed.client_takeover, "{line}: {answer}");
        // Read as an offer, the answer says what was agreed.
        let (_, again) = answered(&[&answer], within(15)).expect("a valid value");
        assert_eq!(again, agreed, "{line}: {answer}");
    }
    assert!(taken > 5_000, "{taken}");
}

const fn within(bits: u8) -> Terms {
    Terms {
        bits,
        takeover: true,
    }
}

/// What is offered and what we would use at most.
fn pairs() -> impl Iterator<Item = (u8, u8)> {
    (8..=15).flat_map(|offered| (9..=15).map(move |bits| (offered, bits)))
}
