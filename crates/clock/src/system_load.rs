//! The load of the whole system, as Linux counts it.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The length from which a file is not read: that of `/proc/stat` on a host of about 50 cores, on
/// which it would take too long.
const MAX_LENGTH: usize = 8 << 10;

/// The files `/proc/loadavg` and `/proc/stat` with figures about all threads of the system. Linux
/// needs much less time for them than for the states of the threads of a browser.
#[derive(Debug)]
pub(crate) struct SystemLoad {
    averages: File,
    totals: File,
}

impl SystemLoad {
    /// Opens the files, unless they are not those of Linux: some containers have some with the
    /// figures of the container, which are seconds old.
    pub(crate) fn open() -> Option<Self> {
        Some(Self {
            averages: open("/proc/loadavg")?,
            totals: open("/proc/stat")?,
        })
    }

    /// Returns whether no thread of the system but the caller runs, is ready to run or waits for a
    /// disk.
    pub(crate) fn is_alone(&self) -> bool {
        self.ready() == Some(1) && self.waiting_for_disks() == Some(0)
    }

    /// Returns the last id that was given to a process or a thread.
    pub(crate) fn last_id(&self) -> Option<i32> {
        let averages = read(&self.averages)?;
        averages.split_whitespace().next_back()?.parse().ok()
    }

    fn ready(&self) -> Option<u32> {
        ready_of(&read(&self.averages)?)
    }

    fn waiting_for_disks(&self) -> Option<u32> {
        waiting_of(&read(&self.totals)?)
    }
}

fn open(path: &str) -> Option<File> {
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    let file = File::open(path).ok()?;
    let file_system = rustix::fs::fstatfs(&file).ok()?.f_type;
    (u64::try_from(file_system) == Ok(PROC_SUPER_MAGIC)).then_some(file)
}

/// Reads a whole file, unless it is too long.
fn read(file: &File) -> Option<String> {
    let mut text = [0; MAX_LENGTH];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    (length < MAX_LENGTH).then(|| text.to_owned())
}

/// Returns the number before the slash: `0.61 0.70 0.72 2/181 4711`.
fn ready_of(loadavg: &str) -> Option<u32> {
    let (ready, _) = loadavg.split_whitespace().nth(3)?.split_once('/')?;
    ready.parse().ok()
}

/// Returns the number of threads that wait for a disk: `procs_blocked 2`.
fn waiting_of(stat: &str) -> Option<u32> {
    let mut lines = stat.lines();
    let number = lines.find_map(|line| line.strip_prefix("procs_blocked "))?;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

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

    #[test]
    fn the_number_of_threads_that_wait_for_a_disk_has_a_line_of_its_own() {
        let stat = "procs_running 3\nprocs_blocked 2\nsoftirq 17 0\n";
        assert_eq!(waiting_of(stat), Some(2));
        assert_eq!(waiting_of("procs_running 3\n"), None);
        assert!(SystemLoad::open().unwrap().waiting_for_disks().is_some());
    }

    #[test]
    fn a_thread_is_not_alone_while_another_one_runs() {
        let load = SystemLoad::open().unwrap();
        let is_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            while load.ready() < Some(2) {
                std::thread::yield_now();
            }
            assert!(!load.is_alone());
            is_ended.store(true, Ordering::Relaxed);
        });
    }
}
