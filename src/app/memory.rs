//! How much memory answers may hold while they are gathered: by the pool's threads, within what the container may have.
//!
//! On a node with many CPUs and a container with little memory the threads alone would allow too much.

use std::path::Path;

/// What all answers together may hold while they are gathered, for each thread of the pool: with
/// the default `whole.bytes`, sixteen answers that wait for it.
const HELD_PER_THREAD: u64 = 32 * 1024 * 1024;

/// At most this part of the cgroup's memory: the rest is for copies, WebSocket state and connections.
const PART: u64 = 4;

/// Bytes that answers may hold together, for so many threads.
pub(super) fn held(threads: usize) -> u64 {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = limit(&groups, Path::new("/sys/fs/cgroup"));
    within(HELD_PER_THREAD * threads as u64, limit)
}

fn within(wanted: u64, limit: Option<u64>) -> u64 {
    limit.map_or(wanted, |limit| wanted.min(limit / PART))
}

/// The least memory limit of these groups (/proc/self/cgroup) and of those above them; none if nothing limits.
fn limit(groups: &str, mount: &Path) -> Option<u64> {
    groups
        .lines()
        .filter_map(|line| in_hierarchy(line, mount))
        .min()
}

fn in_hierarchy(line: &str, mount: &Path) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, group) = (fields.next()?, fields.next()?);
    let (mount, file) = match controllers {
        "" => (mount.to_owned(), "memory.max"),
        "memory" => (mount.join("memory"), "memory.limit_in_bytes"),
        _ => return None,
    };
    // In a container the mount begins at its own group, and the path may be one of the host's: the top is always there.
    let group = Path::new(group.trim_start_matches('/'));
    let files = group.ancestors().map(|above| mount.join(above).join(file));
    // "max" is no number, and no limit.
    let limits = files.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    limits.min()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// The limit with these files in place of /sys/fs/cgroup.
    fn found(name: &str, groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        let mount = std::env::temp_dir().join(format!("thinwire-{name}-{}", std::process::id()));
        for (file, content) in files {
            let file = mount.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        let limit = limit(groups, &mount);
        std::fs::remove_dir_all(mount).unwrap();
        limit
    }

    #[test]
    fn a_container_s_limit_is_at_the_top_of_its_mount() {
        let files = [("memory.max", "268435456\n")];
        assert_eq!(found("top", "0::/\n", &files), Some(256 * MIB));
        let files = [("memory/memory.limit_in_bytes", "268435456\n")];
        let groups = "8:pids:/docker/1\n4:memory:/docker/1\n0::/docker/1\n";
        assert_eq!(found("v1", groups, &files), Some(256 * MIB));
    }

    #[test]
    fn the_least_limit_on_the_way_up_counts() {
        let files = [
            ("system.slice/memory.max", "1073741824"),
            ("system.slice/thinwire.service/memory.max", "max"),
        ];
        let groups = "0::/system.slice/thinwire.service\n";
        assert_eq!(found("up", groups, &files), Some(1024 * MIB));
    }

    #[test]
    fn without_a_limit_the_threads_decide() {
        assert_eq!(found("none", "0::/\n", &[("memory.max", "max\n")]), None);
        assert_eq!(within(64 * MIB, None), 64 * MIB);
        assert_eq!(within(64 * MIB, Some(1024 * MIB)), 64 * MIB);
        assert_eq!(within(2048 * MIB, Some(1024 * MIB)), 256 * MIB);
    }
}
