//! A bound on the memory that one browser uses.
//!
//! Three bounds, from the first that a page meets to the last. While the browser runs, its use is
//! sampled, and a browser beyond its limit is ended; the report can then say why. Where cgroups can
//! be made, the kernel bounds all processes together, a quarter above the limit, for a page that is
//! faster than the samples. And each process has a limit on its private memory, which needs no
//! privileges.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use plumbline_isolation::{Cgroup, CgroupParent, limit_on_spawn};

use super::process::{group_of, process_ids};

/// How often the use of memory is sampled. A page can fill some 200 MB meanwhile.
pub(super) const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// How long it is remembered which processes are not the browser's: ids are used again.
const REMEMBER_OTHERS: Duration = Duration::from_secs(5);

/// The limits of one browser.
pub(super) struct MemoryLimit {
    bytes: u64,
    cgroup: Option<Cgroup>,
}

impl MemoryLimit {
    pub(super) fn new(bytes: u64, cgroups: Option<&CgroupParent>) -> io::Result<Self> {
        let hard_bytes = bytes.saturating_add(bytes / 4);
        let cgroup = cgroups
            .map(|parent| parent.create(hard_bytes))
            .transpose()?;
        Ok(Self { bytes, cgroup })
    }

    /// Adds the limits that the kernel enforces to a command.
    pub(super) fn apply(&self, command: &mut Command) -> io::Result<()> {
        // What a process has allocated but not touched counts too: twice as much is allowed.
        limit_on_spawn(command, self.bytes.saturating_mul(2), self.cgroup.as_ref())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the kernel ended a process because of the limit.
    pub(super) fn was_enforced(&self) -> bool {
        self.cgroup.as_ref().is_some_and(Cgroup::was_exceeded)
    }
}

/// Samples how much memory the processes of one group use.
pub(super) struct MemoryUse {
    group: u32,
    /// Whether a process is of the group.
    known: HashMap<u32, bool>,
    known_since: Instant,
}

impl MemoryUse {
    pub(super) fn of_group(group: u32) -> Self {
        Self {
            group,
            known: HashMap::new(),
            known_since: Instant::now(),
        }
    }

    /// Returns the private memory of all processes, and the shared memory of the one with most of
    /// it: the process that draws has mapped what the others share with it.
    pub(super) fn sample(&mut self) -> u64 {
        if self.known_since.elapsed() > REMEMBER_OTHERS {
            self.known.clear();
            self.known_since = Instant::now();
        }
        let group = self.group;
        let (mut private, mut shared) = (0, 0);
        for pid in process_ids() {
            let is_member = self
                .known
                .entry(pid)
                .or_insert_with(|| group_of(pid) == Some(group));
            if *is_member {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                private += field_bytes(&status, "RssAnon:");
                shared = field_bytes(&status, "RssShmem:").max(shared);
            }
        }
        private + shared
    }
}

/// Reads a line such as `RssAnon:     1234 kB`.
fn field_bytes(status: &str, name: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = value.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_in_bytes_and_a_missing_one_is_nothing() {
        let status = "Name:\tchromium\nRssAnon:\t    2048 kB\nRssShmem:\t       0 kB\n";
        assert_eq!(field_bytes(status, "RssAnon:"), 2 << 20);
        assert_eq!(field_bytes(status, "RssShmem:"), 0);
        assert_eq!(field_bytes(status, "VmSwap:"), 0);
    }

    #[test]
    fn the_use_of_this_process_group_is_counted() {
        let own = group_of(std::process::id()).unwrap();
        let mut use_of_group = MemoryUse::of_group(own);
        let before = use_of_group.sample();
        let kept = vec![1_u8; 50 << 20];
        let after = use_of_group.sample();
        assert!(after > before + kept.len() as u64 / 2, "{before} {after}");
    }
}
