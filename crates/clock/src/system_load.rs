//! The load of the whole system, as Linux counts it.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The file `/proc/loadavg` with figures about all threads of the system. Linux needs much less
/// time for them than for the states of the threads of a browser.
#[derive(Debug)]
pub(crate) struct SystemLoad(File);

impl SystemLoad {
    /// Opens the file, unless it is not that of Linux: some containers have one with the figures of
    /// the container, which are seconds old.
    pub(crate) fn open() -> Option<Self> {
        const PROC_SUPER_MAGIC: u64 = 0x9fa0;
        let file = File::open("/proc/loadavg").ok()?;
        let file_system = rustix::fs::fstatfs(&file).ok()?.f_type;
        (u64::try_from(file_system) == Ok(PROC_SUPER_MAGIC)).then_some(Self(file))
    }

    fn read(&self) -> Option<String> {
        let mut text = [0; 96];
        let length = self.0.read_at(&mut text, 0).ok()?;
        Some(std::str::from_utf8(text.get(..length)?).ok()?.to_owned())
    }

    /// Returns the number of threads that run or are ready to run.
    pub(crate) fn ready(&self) -> Option<u32> {
        ready_of(&self.read()?)
    }

    /// Returns the last id that was given to a process or a thread.
    pub(crate) fn last_id(&self) -> Option<i32> {
        self.read()?.split_whitespace().next_back()?.parse().ok()
    }
}

/// Returns the number before the slash: `0.61 0.70 0.72 2/181 4711`.
fn ready_of(loadavg: &str) -> Option<u32> {
    let (ready, _) = loadavg.split_whitespace().nth(3)?.split_once('/')?;
    ready.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_ready_threads_is_before_the_slash() {
        assert_eq!(ready_of("0.61 0.70 0.72 2/181 4711\n"), Some(2));
        assert_eq!(ready_of("0.61 0.70"), None);
        let load = SystemLoad::open().unwrap();
        // This thread runs.
        assert!(load.ready() >= Some(1));
        assert!(load.last_id() > Some(0));
    }
}
