use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time after which a thread that waits has nothing left to do: it is woken by everything that
/// concerns it.
const MIN_REST: Duration = Duration::from_micros(100);

/// The thread of this process that serves a page: that of its emulated network. A clock does not
/// jump while it works, because what it works on may be the next event of the page.
#[derive(Debug, Default)]
pub struct ServingThread {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
enum State {
    /// There is no thread, or it has ended.
    #[default]
    Absent,
    Works,
    Waits {
        since: Instant,
    },
}

impl ServingThread {
    /// Records that the thread begins to work.
    pub fn work(&self) {
        self.set(State::Works);
    }

    /// Records that the thread begins to wait.
    pub fn wait(&self) {
        self.set(State::Waits {
            since: Instant::now(),
        });
    }

    /// Records that the thread ends.
    pub fn end(&self) {
        self.set(State::Absent);
    }

    /// Returns whether the thread has nothing to do.
    pub(crate) fn is_at_rest(&self) -> bool {
        match *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Absent => true,
            State::Works => false,
            State::Waits { since } => since.elapsed() >= MIN_REST,
        }
    }

    fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_rests_when_it_has_waited_for_a_while() {
        let thread = ServingThread::default();
        assert!(thread.is_at_rest());
        thread.work();
        assert!(!thread.is_at_rest());
        thread.wait();
        while !thread.is_at_rest() {
            std::thread::yield_now();
        }
        thread.work();
        assert!(!thread.is_at_rest());
        thread.end();
        assert!(thread.is_at_rest());
    }
}
