//! `threads: auto` is what the process may use: by affinity, and by the CPU quota of its cgroup.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::PATIENCE;
use crate::support::folder;
use crate::support::process::Process;

const YAML: &str = "listen: [{ address: 127.0.0.1:0 }]
admin: { address: 127.0.0.1:0 }
log: { format: json }
upstreams: { demo: { servers: [demo] } }
routes: [{ name: everything, match: { path: / }, upstream: demo }]
";

/// Threads for the network and for the pool, of a proxy that is started through these words.
fn threads(before: &[&str]) -> (u64, u64) {
    let file = folder("threads").join("config.yaml");
    std::fs::write(&file, YAML).unwrap();
    let words = [env!("CARGO_BIN_EXE_thinwire"), "serve", "--config"];
    let all: Vec<&str> = before.iter().copied().chain(words).collect();
    let mut command = Command::new(all[0]);
    let process = Process::spawn("thinwire", command.args(&all[1..]).arg(&file)).unwrap();
    let ready = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let of = |key: &str| {
            line.get(key)
                .or_else(|| line.get("fields")?.get(key))?
                .as_u64()
        };
        Some((of("network_threads")?, of("pool_threads")?))
    };
    process.wait_for("its threads", PATIENCE, ready).unwrap()
}

#[test]
fn one_cpu_makes_one_thread_of_each_kind() {
    assert_eq!(
        threads(&["taskset", "--cpu-list", first_cpu().as_str()]),
        (1, 1)
    );
}

/// The first CPU that this process may use.
fn first_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.unwrap().trim();
    list.split([',', '-']).next().unwrap().to_owned()
}

#[test]
fn a_quota_counts_in_whole_cpus_and_at_least_one() {
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    for (hundredths, expected) in [(50, 1), (150, 1), (200, 2)] {
        let Some(group) = Group::with_quota(hundredths) else {
            println!("skipped: no cgroup with a CPU quota can be made here");
            return;
        };
        let join = format!("echo $$ > {}; exec \"$@\"", group.procs().display());
        let expected = expected.min(cpus);
        assert_eq!(
            threads(&["sh", "-c", &join, "sh"]),
            (expected, expected),
            "{hundredths} %"
        );
    }
}

/// A cgroup of this test's own; removed when dropped.
struct Group(PathBuf);

impl Group {
    /// With a quota of so many hundredths of a CPU; none where the kernel or the rights do not let it.
    fn with_quota(hundredths: u32) -> Option<Self> {
        let name = format!("thinwire-{}-{hundredths}", std::process::id());
        let (quota, v1) = (hundredths * 1000, Path::new("/sys/fs/cgroup/cpu"));
        let group = if v1.join("cpu.cfs_quota_us").exists() || v1.join("tasks").exists() {
            let group = Self(v1.join(name));
            std::fs::create_dir(&group.0).ok()?;
            std::fs::write(group.0.join("cpu.cfs_quota_us"), quota.to_string()).ok()?;
            group
        } else {
            let group = Self(Path::new("/sys/fs/cgroup").join(name));
            std::fs::create_dir(&group.0).ok()?;
            std::fs::write(group.0.join("cpu.max"), format!("{quota} 100000")).ok()?;
            group
        };
        Some(group)
    }

    fn procs(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The process in it was killed a moment ago: it leaves when it is reaped, which has happened.
        let _ = std::fs::remove_dir(&self.0);
    }
}
