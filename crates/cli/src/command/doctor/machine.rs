//! Checks of the machine itself: cores, memory, fonts, and how busy it is.

use std::ffi::OsStr;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Finding, warning};
use crate::available_memory;

/// The cores that one audit uses: one for the page, one for the rest of browser and network.
const MIN_CORES: usize = 2;
/// The size of shared memory below which Chromium is told to use files instead, which are slower.
const MIN_SHARED_MEMORY_BYTES: u64 = 256 << 20;
/// The share of stolen time above which visits are disturbed by other virtual machines.
const MAX_STEAL: f64 = 0.02;
/// The unit of processor time in `/proc/stat`, on all common kernels.
const TICK: Duration = Duration::from_millis(10);
/// The most readings of the processor time until it advances.
const MAX_READINGS: usize = 50;
/// Directories in which fontconfig looks for fonts by default.
const FONT_DIRS: [&str; 2] = ["/usr/share/fonts", "/usr/local/share/fonts"];

pub(super) fn cores() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    if cores < MIN_CORES {
        return warning(
            format!("Cores: {cores}"),
            "use two or more: a page shares the only core with its browser, and is slower than the \
             emulated device",
        );
    }
    Finding::Ok(format!("Cores: {cores}"))
}

/// Compares the available memory with that of one browser.
pub(super) fn memory(browser_bytes: u64) -> Finding {
    let Some(available) = available_memory::bytes() else {
        return warning("Memory: unknown", "mount /proc");
    };
    let text = format!("Memory: {} MiB available", available >> 20);
    if available < browser_bytes {
        let advice = format!(
            "free some: a browser may use {} MiB (--browser-memory)",
            browser_bytes >> 20
        );
        return warning(text, advice);
    }
    Finding::Ok(text)
}

pub(super) fn shared_memory() -> Finding {
    let advice = "enlarge it (`docker run --shm-size 1g`): Chromium uses slower files instead";
    match rustix::fs::statvfs("/dev/shm") {
        Ok(shm) => {
            let bytes = shm.f_blocks * shm.f_frsize;
            let text = format!("Shared memory: {} MiB in /dev/shm", bytes >> 20);
            if bytes < MIN_SHARED_MEMORY_BYTES {
                warning(text, advice)
            } else {
                Finding::Ok(text)
            }
        }
        Err(error) => warning(format!("Shared memory: /dev/shm: {error}"), advice),
    }
}

pub(super) fn fonts() -> Finding {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let own = home.iter().flat_map(|home| {
        let own = [".fonts", ".local/share/fonts"];
        own.map(|name| home.join(name))
    });
    let dirs = FONT_DIRS.map(PathBuf::from).into_iter().chain(own);
    let count: usize = dirs.map(|dir| count_fonts(&dir)).sum();
    if count == 0 {
        return warning(
            "Fonts: none",
            "install some (`apt-get install fonts-liberation fonts-noto-core`): pages are measured \
             without their text",
        );
    }
    Finding::Ok(format!("Fonts: {count} files"))
}

fn count_fonts(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let count = entries.map(|entry| {
        let path = entry.path();
        // Links are not followed, so that a loop ends.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            return count_fonts(&path);
        }
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        usize::from(matches!(extension, "ttf" | "otf" | "ttc" | "pfb" | "pcf"))
    });
    count.sum()
}

pub(super) fn load() -> Finding {
    let average = fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    let Some(average) = average else {
        return warning("Load: unknown", "mount /proc");
    };
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let text = format!("Load: {average:.1} on {cores} cores (mean of a minute)");
    if average >= cores as f64 {
        let advice = "audits wait for other programs: their visits are repeated, or marked as \
                      disturbed";
        return warning(text, advice);
    }
    Finding::Ok(text)
}

/// The processor time of the machine since it started, in ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ProcessorTime {
    total: f64,
    stolen: f64,
}

impl ProcessorTime {
    pub(super) fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads until a tick has passed. The checks before may have taken less than that.
    async fn next(self, mut read: impl FnMut() -> Option<Self>) -> Option<Self> {
        for _ in 0..MAX_READINGS {
            let now = read()?;
            if now.total > self.total {
                return Some(now);
            }
            tokio::time::sleep(TICK).await;
        }
        None
    }

    /// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq and
    /// steal. Later columns are part of user and nice (proc_stat(5)).
    fn parse(stat: &str) -> Option<Self> {
        let columns = stat.lines().next()?.strip_prefix("cpu ")?;
        let columns = columns.split_whitespace().take(8);
        let columns: Vec<f64> = columns.map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self {
            total: columns.iter().sum(),
            stolen: *columns.get(7)?,
        })
    }
}

/// Returns the share of time that the host gave to other machines since an earlier reading.
pub(super) async fn steal(before: Option<ProcessorTime>) -> Finding {
    let Some(before) = before else {
        return warning("Stolen time: unknown", "mount /proc");
    };
    let Some(now) = before.next(ProcessorTime::read).await else {
        let advice = "use a kernel that counts processor time in /proc/stat: without, nobody knows \
                      whether other virtual machines take time from this one";
        return warning("Stolen time: unknown", advice);
    };
    let share = (now.stolen - before.stolen) / (now.total - before.total);
    let text = format!("Stolen time: {:.1} % during these checks", share * 100.0);
    if share > MAX_STEAL {
        let advice = "use a machine with dedicated cores: other virtual machines take time from \
                      this one";
        return warning(text, advice);
    }
    Finding::Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_processors_is_read() {
        let stat = "cpu  10 0 20 60 0 0 0 10 5 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let time = ProcessorTime {
            total: 100.0,
            stolen: 10.0,
        };
        assert_eq!(ProcessorTime::parse(stat), Some(time));
        assert_eq!(ProcessorTime::parse("cpu  1 2"), None);
    }

    #[tokio::test]
    async fn the_second_reading_is_a_tick_later() {
        let time = |total: f64| ProcessorTime { total, stolen: 0.0 };
        let mut readings = [time(100.0), time(101.0)].into_iter();
        assert_eq!(
            time(100.0).next(|| readings.next()).await,
            Some(time(101.0))
        );
        let stopped = time(100.0).next(|| Some(time(100.0))).await;
        assert_eq!(stopped, None, "a clock that does not advance");
    }

    #[test]
    fn fonts_are_counted_in_subdirectories() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("truetype")).unwrap();
        for name in ["a.otf", "truetype/b.ttf", "truetype/readme.txt"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(count_fonts(dir.path()), 2);
        assert_eq!(count_fonts(&dir.path().join("missing")), 0);
    }
}
