//! The rules tried on sources that keep and break them.

use super::source::{Fault, Ranks, Source, map};
use super::{cycles, impurities, upward};

const MAP: &str = "//! | 0 | [`codec`] | x |\n//! | 1 | [`telemetry`] | x |\n//! | 1 | [`config`] | x |\n\
                   //! | 2 | [`work`] | x; [`policy`] |\n";

fn said(faults: &[Fault]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

fn ranks() -> Ranks {
    map(MAP).expect("a map")
}

#[test]
fn the_map_is_read_with_all_names_of_a_row() {
    let ranks = ranks();
    assert_eq!(ranks.len(), 5);
    assert_eq!((ranks["codec"], ranks["work"], ranks["policy"]), (0, 2, 2));
    assert!(map("//! no table").is_err());
    assert!(map(&MAP.repeat(2)).is_err());
}

#[test]
fn an_upward_use_is_named_with_file_and_line() {
    let text = "//! crate::work is fine here\nuse crate::{\n    codec,\n    work::Pool,\n};\n";
    let faults = upward(&Source::new("src/config/mod.rs", text), &ranks());
    assert_eq!(
        said(&faults),
        ["src/config/mod.rs:4: config (rank 1) uses work (rank 2)"]
    );
    let path = Source::new("src/codec/x.rs", "fn f() -> crate::config::Y {}\n");
    assert_eq!(upward(&path, &ranks()).len(), 1);
    let down = Source::new(
        "src/work.rs",
        "use crate::codec::X;\nuse crate::telemetry::Z;\n",
    );
    assert!(upward(&down, &ranks()).is_empty());
}

#[test]
fn a_way_out_by_super_is_seen_too() {
    let deep = Source::new(
        "src/codec/deflate.rs",
        "use super::Coding;\nuse super::super::work::X;\n",
    );
    assert_eq!(
        said(&upward(&deep, &ranks())),
        ["src/codec/deflate.rs:2: codec (rank 0) uses work (rank 2)"]
    );
    let shallow = Source::new("src/codec/mod.rs", "use super::config;\n");
    assert_eq!(upward(&shallow, &ranks()).len(), 1);
}

#[test]
fn config_does_not_use_telemetry_but_telemetry_config() {
    let config = Source::new("src/config/mod.rs", "use crate::telemetry::Log;\n");
    assert_eq!(upward(&config, &ranks()).len(), 1);
    let telemetry = Source::new("src/telemetry/log.rs", "use crate::config::LogFormat;\n");
    assert!(upward(&telemetry, &ranks()).is_empty());
}

#[test]
fn a_module_that_the_map_forgot_is_a_fault() {
    assert_eq!(upward(&Source::new("src/attic.rs", ""), &ranks()).len(), 1);
    assert!(upward(&Source::new("src/main.rs", ""), &ranks()).is_empty());
}

#[test]
fn modules_of_a_rank_may_use_each_other_one_way() {
    let one_way = [
        Source::new("src/work.rs", "use crate::policy::A;\n"),
        Source::new("src/policy.rs", "\n"),
    ];
    assert!(cycles(&one_way, &ranks()).is_empty());
    let both = [
        Source::new("src/work.rs", "use crate::policy::A;\n"),
        Source::new("src/policy.rs", "\ncrate::work::B"),
    ];
    let expected = [
        "src/policy.rs:2: policy uses work, which uses policy: a cycle in a rank",
        "src/work.rs:1: work uses policy, which uses work: a cycle in a rank",
    ];
    assert_eq!(said(&cycles(&both, &ranks())), expected);
}

#[test]
fn impure_names_are_found_as_words() {
    let pure = "use std::io::Write;\nuse std::net::IpAddr;\nlet tokiox = Instantly;\n// tokio\n";
    assert!(impurities(&Source::new("src/codec/a.rs", pure)).is_empty());
    let impure = "use std::time::Instant;\nuse tokio::net::TcpStream;\nprintln!(\"x\");\n";
    let faults = impurities(&Source::new("src/codec/a.rs", impure));
    let lines: Vec<_> = faults.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [1, 2, 2, 3]);
}
