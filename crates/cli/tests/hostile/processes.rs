//! Reads processes and their descendants from `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const KB_PER_MB: u64 = 1024;

/// A process at the time of reading.
#[derive(Debug, Clone)]
pub struct Process {
    pub id: u32,
    parent: u32,
    pub group: u32,
    pub name: String,
    /// The state; `Z` for a zombie.
    pub state: char,
}

/// Returns all descendants of a process.
pub fn descendants(ancestor: u32) -> Vec<Process> {
    let mut children: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for process in ids.filter_map(read) {
        children.entry(process.parent).or_default().push(process);
    }
    let (mut descendants, mut ancestors) = (Vec::new(), vec![ancestor]);
    while let Some(parent) = ancestors.pop() {
        for child in children.remove(&parent).into_iter().flatten() {
            ancestors.push(child.id);
            descendants.push(child);
        }
    }
    descendants
}

fn read(id: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name may contain any character, including brackets.
    let (before, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    Some(Process {
        id,
        name: before.split_once('(')?.1.to_owned(),
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

/// Returns the process groups of these processes: one for each browser.
pub fn groups(processes: &[Process]) -> BTreeSet<u32> {
    processes.iter().map(|process| process.group).collect()
}

/// Returns the resident memory of the largest process group, in MB.
///
/// Mapped files, mostly the program itself, are counted once. Shared memory is counted for each
/// process that maps it, so the result can only be too large.
pub fn largest_group_mb(processes: &[Process]) -> u64 {
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for process in processes {
        let Some(status) = status(process.id) else {
            continue;
        };
        let (private, files) = sums.entry(process.group).or_default();
        *private += kilobytes(&status, "RssAnon:") + kilobytes(&status, "RssShmem:");
        *files = (*files).max(kilobytes(&status, "RssFile:"));
    }
    let largest = sums.values().map(|(private, files)| private + files).max();
    largest.unwrap_or(0) / KB_PER_MB
}

/// Returns the resident memory of a process, in MB.
pub fn resident_mb(id: u32) -> u64 {
    status(id).map_or(0, |status| kilobytes(&status, "VmRSS:") / KB_PER_MB)
}

/// Returns the peak resident memory of a process since [`reset_peak`], in MB.
pub fn peak_mb(id: u32) -> u64 {
    status(id).map_or(0, |status| kilobytes(&status, "VmHWM:") / KB_PER_MB)
}

/// Resets the peak resident memory of a process.
pub fn reset_peak(id: u32) {
    // 5: resets the peak resident set size (proc_pid_clear_refs(5)).
    let reset = fs::write(format!("/proc/{id}/clear_refs"), "5");
    reset.expect("the kernel lets the peak of a child's memory be reset");
}

fn status(id: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{id}/status")).ok()
}

fn kilobytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}
