//! One thread of a browser, or one that serves it, as Linux describes it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::proc_files::{Counters, core_of, counters, inner_id, state_of};

/// The files of a thread, and what was read from them last.
#[derive(Debug)]
pub(crate) struct Thread {
    /// The id in the thread's own process namespace, in which it publishes its waits.
    pub(crate) inner_id: i32,
    counters: File,
    state: File,
    pub(crate) last: Counters,
    /// Number of samples since the counters changed.
    pub(crate) unchanged_samples: u32,
    /// The number of the core that it ran on when it was read last.
    pub(crate) core: Option<usize>,
}

impl Thread {
    /// Opens the files of a thread. The name of its process is its id, or `self`.
    pub(crate) fn open(process: &str, thread: i32) -> Option<Self> {
        let file = |name| format!("/proc/{process}/task/{thread}/{name}");
        let status = fs::read_to_string(file("status")).ok()?;
        let mut opened = Self {
            inner_id: inner_id(&status).unwrap_or(thread),
            counters: File::open(file("schedstat")).ok()?,
            state: File::open(file("stat")).ok()?,
            last: Counters::default(),
            unchanged_samples: 0,
            core: None,
        };
        opened.last = opened.read()?;
        Some(opened)
    }

    /// Returns the counters, or `None` if the thread has ended.
    pub(crate) fn read(&self) -> Option<Counters> {
        let mut text = [0; 96];
        let length = self.counters.read_at(&mut text, 0).ok()?;
        counters(std::str::from_utf8(text.get(..length)?).ok()?)
    }

    /// Returns the number of the core that the thread ran on last. This takes longer than reading
    /// its counters.
    pub(crate) fn read_core(&self) -> Option<usize> {
        let mut text = [0; 512];
        let length = self.state.read_at(&mut text, 0).ok()?;
        core_of(&text[..length])
    }

    pub(crate) fn is_blocked(&self) -> bool {
        let mut text = [0; 96];
        let length = self.state.read_at(&mut text, 0).unwrap_or_default();
        // A thread that has ended does nothing.
        length == 0 || state_of(&text[..length]).is_none_or(|state| !matches!(state, b'R' | b'D'))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_thread_that_waits_is_blocked_and_one_that_runs_is_not() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // After its first line, it only waits for the next.
        child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let id = i32::try_from(child.id()).unwrap();
        let thread = Thread::open(&id.to_string(), id).unwrap();
        while !thread.is_blocked() {
            std::thread::yield_now();
        }
        let own = rustix::thread::gettid().as_raw_pid();
        assert!(!Thread::open("self", own).unwrap().is_blocked());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
