use http::{HeaderMap, HeaderValue};

use super::*;
use crate::head::grpc::ACCEPT_ENCODING;

fn takes(list: &'static str) -> Codings {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(list));
    Codings::of(&headers, ACCEPT_ENCODING)
}

fn policy() -> Grpc {
    Grpc {
        encodings: vec![Coding::Zstd, Coding::Gzip],
        ..Grpc::default()
    }
}

fn plain(length: u32) -> Prefix {
    Prefix { flags: 0, length }
}

fn coded(length: u32) -> Prefix {
    Prefix {
        flags: COMPRESSED,
        length,
    }
}

#[test]
fn only_what_the_client_lists_is_announced() {
    for (list, head) in [
        ("identity,deflate,gzip", Head::Announce(Coding::Gzip)),
        ("gzip,zstd", Head::Announce(Coding::Zstd)),
        ("identity", Head::Silent),
        ("deflate", Head::Silent),
        ("", Head::Silent),
    ] {
        let (terms, said) = Terms::to_client(&policy(), takes(list), Announced::Identity);
        assert_eq!(said, head, "{list}");
        assert_eq!(
            terms.compress.map(|recipe| Head::Announce(recipe.coding)),
            (head != Head::Silent).then_some(head)
        );
    }
}

#[test]
fn each_message_has_its_reason() {
    let (terms, _) = Terms::to_client(&policy(), takes("gzip"), Announced::Identity);
    let (small, most) = (1024, 4 << 20);
    assert_eq!(terms.decide(plain(0)), Treatment::Pass(Reason::MinSize));
    assert_eq!(
        terms.decide(plain(small - 1)),
        Treatment::Pass(Reason::MinSize)
    );
    assert!(matches!(terms.decide(plain(small)), Treatment::Compress(_)));
    assert!(matches!(terms.decide(plain(most)), Treatment::Compress(_)));
    assert_eq!(
        terms.decide(plain(most + 1)),
        Treatment::Pass(Reason::MaxMessage)
    );
    let (terms, _) = Terms::to_client(&policy(), takes(""), Announced::Identity);
    assert_eq!(
        terms.decide(plain(small)),
        Treatment::Pass(Reason::NotAccepted)
    );
    let off = Grpc {
        compress: false,
        ..policy()
    };
    let (terms, head) = Terms::to_client(&off, takes("gzip"), Announced::Identity);
    assert_eq!(
        terms.decide(plain(small)),
        Treatment::Pass(Reason::Disabled)
    );
    assert_eq!(head, Head::Silent);
}

#[test]
fn what_the_app_compressed_passes_or_is_inflated() {
    let gzip = Announced::Known(Coding::Gzip);
    let (terms, head) = Terms::to_client(&policy(), takes("gzip,zstd"), gzip);
    assert_eq!((terms.coded, head), (Coded::Pass, Head::Keep));
    // One coding a stream: ours joins the app's.
    assert_eq!(
        terms.compress.map(|recipe| recipe.coding),
        Some(Coding::Gzip)
    );
    let (terms, head) = Terms::to_client(&policy(), takes("identity"), gzip);
    assert_eq!(
        (terms.coded, head),
        (Coded::Inflate(Coding::Gzip), Head::Silent)
    );
    let (terms, head) = Terms::to_client(&policy(), takes("zstd"), gzip);
    assert_eq!(head, Head::Announce(Coding::Zstd));
    assert_eq!(terms.decide(coded(9)), Treatment::Inflate(Coding::Gzip));
    let (terms, head) = Terms::to_client(&policy(), takes("gzip"), Announced::Unknown);
    assert_eq!(
        (terms.coded, terms.compress, head),
        (Coded::Pass, None, Head::Keep)
    );
    let (terms, _) = Terms::to_client(&policy(), takes("gzip"), Announced::Identity);
    let unannounced = Treatment::End(MessageFault::Unannounced);
    assert_eq!(terms.decide(coded(9)), unannounced);
}

#[test]
fn requests_are_held_to_the_protocol_unless_they_just_pass() {
    let policy = policy();
    let gzip = Announced::Known(Coding::Gzip);
    let terms = Terms::to_app(&policy, Dialect::Grpc, gzip).expect("known");
    assert_eq!(
        terms.decide(plain(1 << 30)),
        Treatment::Pass(Reason::Disabled)
    );
    assert_eq!(terms.decide(coded(9)), Treatment::Inflate(Coding::Gzip));
    let too_large = Treatment::End(MessageFault::TooLarge(4 << 20));
    assert_eq!(terms.decide(coded((4 << 20) + 1)), too_large);
    let reserved = Prefix {
        flags: 2,
        length: 9,
    };
    assert_eq!(terms.decide(reserved), Treatment::End(MessageFault::Flags));
    let terms = Terms::to_app(&policy, Dialect::Grpc, Announced::Identity).expect("known");
    assert_eq!(
        terms.decide(coded(9)),
        Treatment::End(MessageFault::Unannounced)
    );
    assert_eq!(
        Terms::to_app(&policy, Dialect::Grpc, Announced::Unknown),
        None
    );
    let pass = Grpc {
        requests: Requests::Pass,
        ..policy
    };
    let terms = Terms::to_app(&pass, Dialect::Grpc, Announced::Unknown).expect("passes");
    assert_eq!(terms.decide(reserved), Treatment::Pass(Reason::Disabled));
    assert_eq!(
        terms.decide(coded(9)),
        Treatment::Pass(Reason::AlreadyCoded)
    );
}

#[test]
fn a_fault_says_how_the_call_went() {
    assert_eq!(
        MessageFault::TooLarge(1).status(),
        Status::ResourceExhausted
    );
    assert_eq!(MessageFault::Flags.status(), Status::Internal);
    assert_eq!(MessageFault::Cut.status(), Status::Internal);
}
