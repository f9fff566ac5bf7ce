//! Limits the memory of a browser.
//!
//! There are three limits, from the first that a page reaches to the last. While the browser runs,
//! its memory usage is sampled, and a browser that exceeds its limit is killed; the report can then
//! state the reason. Where cgroups can be created, the kernel limits all processes together, a
//! quarter above that limit, for pages that are faster than the samples. Finally, each process has
//! a limit on its private memory, which needs no privileges.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use plumbline_isolation::{Cgroup, CgroupParent, limit_on_spawn};

use super::process::{group_of, process_ids};

/// Interval between samples of the memory usage. A page can allocate about 200 MB in this time.
pub(super) const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum age of the cached group memberships of processes, because process ids are reused.
const MAX_CACHE_AGE: Duration = Duration::from_secs(5);

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
        // Memory that a process has allocated but not used counts too, so the limit is doubled.
        limit_on_spawn(command, self.bytes.saturating_mul(2), self.cgroup.as_ref())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether the kernel killed a process because of the limit.
    pub(super) fn was_enforced(&self) -> bool {
        self.cgroup.as_ref().is_some_and(Cgroup::was_exceeded)
    }
}

/// Samples the memory usage of the processes of one group.
pub(super) struct MemoryUsage {
    group: u32,
    /// Cache of whether a process belongs to the group.
    memberships: HashMap<u32, bool>,
    cached_since: Instant,
}

impl MemoryUsage {
    pub(super) fn of_group(group: u32) -> Self {
        Self {
            group,
            memberships: HashMap::new(),
            cached_since: Instant::now(),
        }
    }

    /// Returns the private memory of all processes plus the shared memory of the process that has
    /// most of it: the process that draws has mapped what the others share with it.
    pub(super) fn sample(&mut self) -> u64 {
        if self.cached_since.elapsed() > MAX_CACHE_AGE {
            self.memberships.clear();
            self.cached_since = Instant::now();
        }
        let group = self.group;
        let (mut private, mut shared) = (0, 0);
        for pid in process_ids() {
            let is_member = self
                .memberships
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

/// Returns the value of a line such as `RssAnon:     1234 kB` in bytes; 0 if it is missing.
fn field_bytes(status: &str, name: &str) -> u64 {
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = value.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_converted_to_bytes_and_a_missing_one_is_zero() {
        let status = "Name:\tchromium\nRssAnon:\t    2048 kB\nRssShmem:\t       0 kB\n";
        assert_eq!(field_bytes(status, "RssAnon:"), 2 << 20);
        assert_eq!(field_bytes(status, "RssShmem:"), 0);
        assert_eq!(field_bytes(status, "VmSwap:"), 0);
    }

    #[test]
    fn the_memory_usage_of_this_process_group_is_sampled() {
        let own = group_of(std::process::id()).unwrap();
        let mut usage = MemoryUsage::of_group(own);
        let before = usage.sample();
        let buffer = vec![1_u8; 50 << 20];
        let after = usage.sample();
        assert!(after > before + buffer.len() as u64 / 2, "{before} {after}");
    }
}
