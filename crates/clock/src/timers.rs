//! Waits of this process until a page time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::{PageClock, PageTime};

/// The page times until which tasks of this process wait, so that a jump of the clock passes none
/// of them.
#[derive(Debug)]
pub(crate) struct Timers {
    deadlines: Mutex<Deadlines>,
    /// Changes with every jump.
    jumps: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Deadlines {
    set: BTreeSet<(PageTime, u64)>,
    next_id: u64,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self {
            deadlines: Mutex::default(),
            jumps: watch::Sender::new(0),
        }
    }

    /// Returns a key for [`Timers::set`].
    pub(crate) fn new_id(&self) -> u64 {
        let mut deadlines = self.lock();
        deadlines.next_id += 1;
        deadlines.next_id
    }

    /// Replaces a deadline by another one.
    pub(crate) fn set(&self, id: u64, old: Option<PageTime>, new: Option<PageTime>) {
        let mut deadlines = self.lock();
        if let Some(old) = old {
            deadlines.set.remove(&(old, id));
        }
        if let Some(new) = new {
            deadlines.set.insert((new, id));
        }
    }

    pub(crate) fn next(&self) -> Option<PageTime> {
        self.lock().set.first().map(|(deadline, _)| *deadline)
    }

    pub(crate) fn jumps(&self) -> watch::Receiver<u64> {
        self.jumps.subscribe()
    }

    pub(crate) fn notify_jump(&self) {
        self.jumps.send_modify(|jumps| *jumps += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Deadlines> {
        self.deadlines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A deadline of this process. The clock does not jump over it.
#[derive(Debug)]
pub struct PageTimer {
    clock: Arc<PageClock>,
    id: u64,
    deadline: Option<PageTime>,
}

impl PageTimer {
    pub fn new(clock: Arc<PageClock>) -> Self {
        let id = clock.timers.new_id();
        Self {
            clock,
            id,
            deadline: None,
        }
    }

    /// Sets or removes the deadline.
    pub fn set(&mut self, deadline: Option<PageTime>) {
        self.clock.timers.set(self.id, self.deadline, deadline);
        self.deadline = deadline;
    }
}

impl Drop for PageTimer {
    fn drop(&mut self) {
        self.set(None);
    }
}
