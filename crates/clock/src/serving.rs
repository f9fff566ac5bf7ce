//! The threads of this process that serve a browser: those of its emulated network, and of the
//! connections to it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::PageClock;

/// The ids of the threads that serve a browser.
///
/// A clock does not jump while one of them runs or is ready to run: what the browser has sent may
/// not have reached the emulated network yet, and so may not be known as an event to wait for.
#[derive(Debug, Default)]
pub(crate) struct ServingThreads {
    ids: Mutex<Vec<i32>>,
}

impl ServingThreads {
    pub(crate) fn ids(&self) -> Vec<i32> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<i32>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The registration of a thread that serves a browser, until it is dropped.
#[derive(Debug)]
pub struct ServingThread {
    clock: Arc<PageClock>,
    id: i32,
}

impl ServingThread {
    /// Registers the calling thread, and lets it have a core at once as far as that is permitted:
    /// it needs little time, but a delay lasts longer in page time.
    pub fn register(clock: &Arc<PageClock>) -> Self {
        crate::core::set_priority();
        let id = rustix::thread::gettid().as_raw_pid();
        clock.serving.lock().push(id);
        Self {
            clock: Arc::clone(clock),
            id,
        }
    }
}

impl Drop for ServingThread {
    fn drop(&mut self) {
        self.clock.serving.lock().retain(|id| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_registered_until_its_registration_is_dropped() {
        let clock = Arc::new(PageClock::private().unwrap());
        let own = rustix::thread::gettid().as_raw_pid();
        let registration = std::thread::scope(|scope| {
            let other = scope.spawn(|| ServingThread::register(&clock));
            other.join().unwrap()
        });
        assert_eq!(clock.serving.ids(), [registration.id]);
        assert_ne!(registration.id, own);
        drop(registration);
        assert_eq!(clock.serving.ids(), []);
    }
}
