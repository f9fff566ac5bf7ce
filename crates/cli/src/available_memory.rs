//! The memory that is available to this process.

use std::fs;
use std::path::Path;

/// Returns the memory that this process can use: that of the machine, or less in a container.
pub fn bytes() -> Option<u64> {
    let machine = meminfo_bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")?;
    let read = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(Path::new("/sys/fs/cgroup").join(name)).ok()?;
        text.trim().parse().ok()
    };
    // In a container, the root of the file system is its own group; "max" means no limit.
    let container = read("memory.max").zip(read("memory.current"));
    Some(match container {
        Some((max, current)) => machine.min(max.saturating_sub(current)),
        None => machine,
    })
}

fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes = line.trim_start_matches(':').split_whitespace().next()?;
    Some(kibibytes.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_by_its_name() {
        let meminfo = "MemTotal:       8000 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(meminfo_bytes(meminfo, "MemAvailable"), Some(2 << 20));
        assert_eq!(meminfo_bytes(meminfo, "SwapTotal"), None);
    }
}
