//! Which core a page's main thread is kept on.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores in use by pacers of this process, and by how many.
static TAKEN: Mutex<BTreeMap<usize, u32>> = Mutex::new(BTreeMap::new());

/// A core for one page; given back when dropped. Two pages share one only when there are no others.
pub(super) struct Core {
    number: usize,
    /// All that this process may use.
    all: CpuSet,
}

impl Core {
    pub(super) fn take() -> rustix::io::Result<Self> {
        let all = sched_getaffinity(None)?;
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        // The last first: interrupts and short-lived helpers tend to be on the first.
        let number = (0..CpuSet::MAX_CPU)
            .rev()
            .filter(|number| all.is_set(*number))
            .min_by_key(|number| taken.get(number).copied().unwrap_or(0))
            .unwrap_or(0);
        *taken.entry(number).or_default() += 1;
        Ok(Self { number, all })
    }

    /// Keeps a thread on this core; none is the calling one.
    pub(super) fn hold(&self, thread: Option<Pid>) -> rustix::io::Result<()> {
        let mut only = CpuSet::new();
        only.set(self.number);
        sched_setaffinity(thread, &only)
    }

    /// Lets a thread go wherever this process may.
    pub(super) fn release(&self, thread: Pid) -> rustix::io::Result<()> {
        sched_setaffinity(Some(thread), &self.all)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pages) = taken.get_mut(&self.number) {
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
