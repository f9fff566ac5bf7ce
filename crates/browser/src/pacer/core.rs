//! Assigns a page's main thread to a core.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores in use by pacers of this process, with the number of pages on each.
static PAGES_BY_CORE: Mutex<BTreeMap<usize, u32>> = Mutex::new(BTreeMap::new());

/// A core assigned to one page until dropped. Two pages share one only if there are no others.
pub(super) struct Core {
    number: usize,
    /// All cores that this process may use.
    all: CpuSet,
}

impl Core {
    pub(super) fn take() -> rustix::io::Result<Self> {
        let all = sched_getaffinity(None)?;
        let mut pages_by_core = PAGES_BY_CORE.lock();
        // The last core is preferred: interrupts and short-lived helpers tend to run on the first.
        let number = (0..CpuSet::MAX_CPU)
            .rev()
            .filter(|number| all.is_set(*number))
            .min_by_key(|number| pages_by_core.get(number).copied().unwrap_or(0))
            .unwrap_or(0);
        *pages_by_core.entry(number).or_default() += 1;
        Ok(Self { number, all })
    }

    /// Pins a thread to this core; `None` is the calling thread.
    pub(super) fn hold(&self, thread: Option<Pid>) -> rustix::io::Result<()> {
        let mut only = CpuSet::new();
        only.set(self.number);
        sched_setaffinity(thread, &only)
    }

    /// Allows a thread to run on all cores of this process.
    pub(super) fn release(&self, thread: Pid) -> rustix::io::Result<()> {
        sched_setaffinity(Some(thread), &self.all)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let mut pages_by_core = PAGES_BY_CORE.lock();
        if let Some(pages) = pages_by_core.get_mut(&self.number) {
            *pages = pages.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_one_that_this_process_may_use() {
        let core = Core::take().unwrap();
        assert!(core.all.is_set(core.number));
    }
}
