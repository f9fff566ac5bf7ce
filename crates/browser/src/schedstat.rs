//! What Linux knows about a thread's time: how long it ran, and how long it stood ready without a
//! core (Documentation/scheduler/sched-stats.rst, `/proc/<pid>/schedstat`).

use std::fs;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ThreadTime {
    pub ran_us: f64,
    pub waited_us: f64,
}

impl ThreadTime {
    /// The main thread of a process; its id is the process's own. None where it is gone, or where
    /// the kernel does not count.
    pub(crate) fn of_main_thread(process_id: u32) -> Option<Self> {
        parse(&fs::read_to_string(format!("/proc/{process_id}/task/{process_id}/schedstat")).ok()?)
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            ran_us: self.ran_us - earlier.ran_us,
            waited_us: self.waited_us - earlier.waited_us,
        }
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
    fn our_own_main_thread_has_run() {
        let time = ThreadTime::of_main_thread(std::process::id()).unwrap();
        assert!(time.ran_us > 0.0);
    }
}
