//! The files below `/proc` in which Linux describes processes and threads: `schedstat`
//! (Documentation/scheduler/sched-stats.rst), `stat`, `status` and `cmdline`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// Counters of a thread since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) ran: Duration,
    pub(crate) waited: Duration,
    /// Number of times that the thread got a core.
    pub(crate) runs: u64,
}

/// Returns the counters in the contents of a `schedstat` file.
pub(crate) fn counters(text: &str) -> Option<Counters> {
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let mut next = || numbers.next()?.ok();
    Some(Counters {
        ran: Duration::from_nanos(next()?),
        waited: Duration::from_nanos(next()?),
        runs: next()?,
    })
}

/// Returns the state in the contents of a `stat` file, which follows the name in parentheses. The
/// name may contain parentheses itself.
pub(crate) fn state_of(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end + 2).copied()
}

/// Returns the core in the contents of a `stat` file: the field 39, where the state is 3.
pub(crate) fn core_of(stat: &[u8]) -> Option<usize> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(end + 2..)?).ok()?;
    fields.split(' ').nth(39 - 3)?.trim().parse().ok()
}

/// Returns the id in the innermost process namespace, from the contents of a `status` file.
pub(crate) fn inner_id(status: &str) -> Option<i32> {
    let ids = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().next_back()?.parse().ok()
}

/// The clock of the processor time of all threads of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessClock(ClockId);

impl ProcessClock {
    /// Returns the clock, or `None` if the process has ended.
    pub(crate) fn of(process: i32) -> Option<Self> {
        clock_getcpuclockid(Pid::from_raw(process)).ok().map(Self)
    }

    /// Returns the processor time, or `None` if the process has ended.
    pub(crate) fn now(self) -> Option<Duration> {
        clock_gettime(self.0).ok().map(Duration::from)
    }
}

pub(crate) fn group_of(process: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The state, the parent and the group follow the name.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

pub(crate) fn is_renderer(process: i32) -> bool {
    let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    command
        .split(|byte| *byte == 0 || *byte == b' ')
        .any(|word| word == b"--type=renderer")
}

pub(crate) fn numbered_entries(directory: &Path) -> Vec<i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_a_thread_are_nanoseconds() {
        let expected = Counters {
            ran: Duration::from_micros(1_500),
            waited: Duration::from_nanos(2_500),
            runs: 17,
        };
        assert_eq!(counters("1500000 2500 17\n"), Some(expected));
        for text in ["nonsense", "", "1 2"] {
            assert_eq!(counters(text), None, "{text}");
        }
    }

    #[test]
    fn the_state_follows_the_name_whatever_that_contains() {
        assert_eq!(state_of(b"12 (a b) S 1 12"), Some(b'S'));
        assert_eq!(state_of(b"12 (a) R (b) D 1"), Some(b'D'));
        assert_eq!(state_of(b"12 (cut o"), None);
    }

    #[test]
    fn the_core_is_field_39() {
        let fields: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let stat = format!("12 (a) b) S {}\n", fields.join(" "));
        assert_eq!(core_of(stat.as_bytes()), Some(39));
        assert_eq!(core_of(b"12 (a) S 4 5"), None);
    }

    #[test]
    fn the_inner_id_is_the_last_one() {
        let status = "Name:\tx\nNSpid:\t4711\t12\t3\nThreads:\t1\n";
        assert_eq!(inner_id(status), Some(3));
        assert_eq!(inner_id("NSpid:\t4711\n"), Some(4711));
        assert_eq!(inner_id("Name:\tx\n"), None);
    }
}
