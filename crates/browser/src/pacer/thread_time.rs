//! Reads a thread's times from Linux: how long it ran, and how long it was runnable without a core
//! (Documentation/scheduler/sched-stats.rst, `/proc/<pid>/schedstat`).

use std::fs::File;
use std::os::unix::fs::FileExt;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ThreadTime {
    pub(super) ran_us: f64,
    pub(super) waited_us: f64,
}

/// A thread's counters, kept open because they are read a thousand times a second.
pub(super) struct ThreadClock(File);

impl ThreadClock {
    /// Opens the counters; returns `None` if the thread is gone or the kernel does not count.
    pub(super) fn of(process_id: u32, thread_id: u32) -> Option<Self> {
        let path = format!("/proc/{process_id}/task/{thread_id}/schedstat");
        File::open(path).ok().map(Self)
    }

    /// Reads the counters; returns `None` if the thread has ended.
    pub(super) fn read(&self) -> Option<ThreadTime> {
        let mut text = [0; 96];
        let length = self.0.read_at(&mut text, 0).ok()?;
        parse(std::str::from_utf8(&text[..length]).ok()?)
    }
}

fn parse(text: &str) -> Option<ThreadTime> {
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let mut next_us = || Some(numbers.next()?.ok()? as f64 / 1000.0);
    Some(ThreadTime {
        ran_us: next_us()?,
        waited_us: next_us()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_become_microseconds() {
        let expected = ThreadTime {
            ran_us: 1_500.0,
            waited_us: 2.5,
        };
        assert_eq!(parse("1500000 2500 17\n"), Some(expected));
        assert_eq!(parse("nonsense"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn the_main_thread_of_this_process_has_run() {
        let process = std::process::id();
        let time = ThreadClock::of(process, process).unwrap().read().unwrap();
        assert!(time.ran_us > 0.0);
    }
}
