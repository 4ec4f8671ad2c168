//! The house rules, read from the sources: which room may use which, how long a file may be, what
//! rank 0 must not touch, and one crypto provider. The ranks are those of the map in `src/lib.rs`.

#[path = "rooms/source.rs"]
mod source;
#[path = "rooms/tests.rs"]
mod tests;

use std::collections::BTreeMap;
use std::process::Command;

use source::{Fault, Ranks, Source, holds_word, map, read, root, rust_files, sources};

/// Lines that a file may have.
const LONGEST: usize = 500;

#[test]
fn modules_use_lower_ranks_only() {
    let ranks = map(&read("src/lib.rs")).expect("a map");
    let faults: Vec<_> = sources()
        .iter()
        .flat_map(|source| upward(source, &ranks))
        .collect();
    none(&faults);
}

#[test]
fn there_are_no_cycles_within_a_rank() {
    let ranks = map(&read("src/lib.rs")).expect("a map");
    none(&cycles(&sources(), &ranks));
}

#[test]
fn rank_0_is_pure() {
    let ranks = map(&read("src/lib.rs")).expect("a map");
    let pure = |source: &&Source| {
        source
            .module()
            .is_some_and(|module| ranks.get(module) == Some(&0))
    };
    let faults: Vec<_> = sources().iter().filter(pure).flat_map(impurities).collect();
    none(&faults);
}

#[test]
fn the_map_is_true() {
    let library = read("src/lib.rs");
    let ranks = map(&library).expect("a map");
    let declared = |line: &str| {
        let name = line
            .trim()
            .strip_prefix("pub mod ")
            .or_else(|| line.trim().strip_prefix("mod "));
        name.map(|name| name.trim_end_matches(';').to_owned())
    };
    let mut declared: Vec<String> = library.lines().filter_map(declared).collect();
    declared.sort();
    let mapped: Vec<String> = ranks.into_keys().collect();
    assert_eq!(
        declared, mapped,
        "src/lib.rs: the map (right) and the modules (left) differ"
    );
    for module in mapped {
        let there = [format!("src/{module}.rs"), format!("src/{module}/mod.rs")];
        let found = there
            .iter()
            .filter(|file| root().join(file).is_file())
            .count();
        assert_eq!(found, 1, "src/lib.rs: one of {there:?} has to be there");
    }
}

#[test]
fn files_are_rooms_and_not_halls() {
    let files = ["src", "tests", "benches"]
        .iter()
        .flat_map(|folder| rust_files(folder));
    let long = files.filter_map(|file| {
        let lines = read(&file).lines().count();
        let sentence = format!("{lines} lines; a file has {LONGEST} at most");
        (lines > LONGEST).then_some(Fault {
            file,
            line: LONGEST + 1,
            sentence,
        })
    });
    none(&long.collect::<Vec<_>>());
}

#[test]
fn there_is_one_crypto_provider() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "all", "--prefix", "none"])
        .current_dir(root())
        .output()
        .expect("cargo can be run");
    assert!(
        tree.status.success(),
        "{}",
        String::from_utf8_lossy(&tree.stderr)
    );
    let tree = String::from_utf8_lossy(&tree.stdout);
    let names: Vec<_> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(
        names.contains(&"aws-lc-rs"),
        "the tree is read wrongly:\n{tree}"
    );
    for unwanted in ["ring", "openssl-sys", "native-tls", "boring-sys"] {
        assert!(
            !names.contains(&unwanted),
            "Cargo.toml: {unwanted} is in the tree"
        );
    }
}

fn none(faults: &[Fault]) {
    let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}

/// Uses of a higher rank, and of telemetry by its own.
fn upward(source: &Source, ranks: &Ranks) -> Vec<Fault> {
    let Some(module) = source.module() else {
        return Vec::new();
    };
    let Some(&own) = ranks.get(module) else {
        return vec![source.fault(1, format!("{module} is not in the map of src/lib.rs"))];
    };
    let uses = source
        .uses(ranks)
        .into_iter()
        .filter(|used| used.of != module);
    uses.filter_map(|used| {
        let rank = ranks[&used.of];
        let sentence = if rank > own {
            format!("{module} (rank {own}) uses {} (rank {rank})", used.of)
        } else if used.of == "telemetry" && own < 2 {
            format!("{module} uses telemetry, which is for rank 2 and up")
        } else {
            return None;
        };
        Some(source.fault(used.line, sentence))
    })
    .collect()
}

/// Modules of one rank that use each other, directly or round about.
fn cycles(sources: &[Source], ranks: &Ranks) -> Vec<Fault> {
    let mut edges: BTreeMap<(String, String), (&Source, usize)> = BTreeMap::new();
    for source in sources {
        let Some(module) = source.module() else {
            continue;
        };
        for used in source.uses(ranks) {
            if used.of != module && ranks.get(module) == ranks.get(&used.of) {
                edges
                    .entry((module.to_owned(), used.of))
                    .or_insert((source, used.line));
            }
        }
    }
    let reaches = |from: &String, to: &String| {
        let (mut seen, mut next) = (Vec::new(), vec![from]);
        while let Some(at) = next.pop() {
            if at == to {
                return true;
            }
            if !seen.contains(&at) {
                seen.push(at);
                next.extend(
                    edges
                        .keys()
                        .filter(|(user, _)| user == at)
                        .map(|(_, used)| used),
                );
            }
        }
        false
    };
    let back = edges.iter().filter(|((user, used), _)| reaches(used, user));
    back.map(|((user, used), (source, line))| {
        source.fault(
            *line,
            format!("{user} uses {used}, which uses {user}: a cycle in a rank"),
        )
    })
    .collect()
}

/// What a pure module must not name: I/O, clocks, threads, chance, logs. The traits `io::Read` and
/// `io::Write` over memory and the addresses of `std::net` are values like any other.
fn impurities(source: &Source) -> Vec<Fault> {
    const IMPURE: [&str; 24] = [
        "tokio",
        "hyper",
        "hyper_util",
        "tracing",
        "socket2",
        "rustix",
        "fastrand",
        "rustls",
        "SystemTime",
        "Instant",
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "UnixStream",
        "ToSocketAddrs",
        "std::fs",
        "std::env",
        "std::process",
        "std::thread",
        "io::stdin",
        "io::stdout",
        "io::stderr",
        "println!",
        "eprintln!",
    ];
    // A test may draw its data by chance, from a seed.
    let ships = !source.file.ends_with("tests.rs") && !source.file.contains("/tests/");
    let numbered = (1..).zip(&source.lines).filter(|_| ships);
    let faults = numbered.flat_map(|(line, text)| {
        let found = IMPURE.iter().filter(|word| holds_word(text, word));
        found.map(move |word| source.fault(line, format!("rank 0 is pure: no {word}")))
    });
    faults.collect()
}
