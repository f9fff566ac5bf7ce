//! Returns freed memory of the process to the system.
//!
//! The allocator of the C library keeps freed memory for later, in as many arenas as there were
//! busy threads: after a few large pages, some hundred megabytes. [`MemoryTrimmer`] returns it
//! whenever the process has been busy.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time between two calls of [`MemoryTrimmer::trim_if_busy`]. After a large page, its memory is
/// returned within a few seconds.
pub const INTERVAL: Duration = Duration::from_secs(2);

/// The processor time from which the process counts as busy. An idle process may not have freed
/// anything worth the few milliseconds that returning it takes.
const BUSY: Duration = Duration::from_millis(20);

/// Returns freed memory to the system if the process has been busy since the last time.
#[derive(Debug, Default)]
pub struct MemoryTrimmer {
    /// The processor time of the process after the last call.
    processor_time: Duration,
}

impl MemoryTrimmer {
    /// Returns freed memory to the system if the process has been busy. This blocks for some
    /// milliseconds.
    pub fn trim_if_busy(&mut self) {
        if processor_time() >= self.processor_time + BUSY {
            return_freed_memory();
            self.processor_time = processor_time();
        }
    }
}

/// Makes the allocator keep less. Call it when the program starts.
///
/// Two arenas are enough for threads that seldom allocate at the same time, and each keeps pages
/// that are partly in use. Large blocks are returned when they are freed; without a fixed threshold
/// the allocator would soon take blocks of up to 32 MiB from its arenas.
pub fn configure_allocator() {
    // SAFETY: The function only sets parameters of the allocator; other threads do not exist yet or
    // are not affected. A parameter that it does not know is ignored.
    #[expect(unsafe_code, reason = "mallopt has no safe form")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 * 1024);
    }
}

/// Returns all freed memory of the process to the system.
fn return_freed_memory() {
    // SAFETY: The function has no preconditions; it locks each arena while it works on it.
    #[expect(unsafe_code, reason = "malloc_trim has no safe form")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the processor time that this process has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident_bytes() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4096
    }

    #[test]
    fn memory_that_other_threads_allocated_is_returned() {
        let before = resident_bytes();
        let mut trimmer = MemoryTrimmer::default();
        // The blocks are smaller than those that the C library returns at once. Every tenth is
        // kept, so that the others are between blocks in use.
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| (0..400).map(|_| vec![1_u8; 60_000]).collect::<Vec<_>>())
            })
            .collect();
        let blocks: Vec<_> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        assert!(resident_bytes() > before + (90 << 20));
        let kept: Vec<_> = blocks.into_iter().step_by(10).collect();
        trimmer.trim_if_busy();
        let after = resident_bytes();
        assert!(
            after < before + (25 << 20),
            "{before} bytes, then {after} with {} blocks",
            kept.len()
        );
    }
}
