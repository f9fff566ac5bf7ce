//! Limits how much memory of this process a page may use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest message that is read from the browser.
pub(crate) const MAX_MESSAGE_BYTES: usize = 32_000_000;

/// The limit for everything that is held at one time because of one browser: messages that have not
/// been processed yet, and what a visit keeps of those that have been (request log, trace, console,
/// artifacts).
pub(crate) const MAX_HELD_BYTES: usize = 128_000_000;

/// A size limit that a page exceeded, which ends the visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimitExceeded {
    #[error("a message of the browser is larger than {} MB", MAX_MESSAGE_BYTES / 1_000_000)]
    Message,
    #[error("the browser reported more than {} MB", MAX_HELD_BYTES / 1_000_000)]
    Held,
    #[error("the trace is larger than {limit_mb} MB")]
    Trace { limit_mb: usize },
    #[error("the browser could not record the whole trace")]
    LostTrace,
    #[error("the trace did not arrive in time")]
    SlowTrace,
}

/// Counts the bytes that are held because of one browser.
#[derive(Debug)]
pub(super) struct EventBudget {
    held: AtomicUsize,
    limit: usize,
}

impl EventBudget {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            held: AtomicUsize::new(0),
            limit,
        })
    }
}

/// A part of a budget, which is released when this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<EventBudget>,
    bytes: usize,
}

impl Reservation {
    /// Creates an empty reservation of a budget with this limit, for tests.
    #[cfg(test)]
    pub(crate) fn within(limit: usize) -> Self {
        Self::empty(&EventBudget::new(limit))
    }

    pub(super) fn empty(budget: &Arc<EventBudget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// Reserves more bytes of the budget. If the budget is exceeded, nothing changes.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        let add = |held_bytes: usize| {
            let sum = held_bytes.checked_add(bytes)?;
            (sum <= self.budget.limit).then_some(sum)
        };
        self.budget
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .map_err(|_| LimitExceeded::Held)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Adds the bytes of another reservation to this one.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_bytes_can_be_reserved_again() {
        let budget = EventBudget::new(10);
        let mut first = Reservation::empty(&budget);
        first.grow(4).unwrap();
        let mut second = Reservation::empty(&budget);
        second.grow(6).unwrap();
        assert_eq!(first.grow(1), Err(LimitExceeded::Held));
        drop(second);
        first.grow(1).unwrap();
        assert_eq!(first.grow(6), Err(LimitExceeded::Held));
        assert_eq!(first.grow(usize::MAX), Err(LimitExceeded::Held));
    }

    #[test]
    fn absorbed_bytes_stay_reserved() {
        let budget = EventBudget::new(10);
        let mut first = Reservation::empty(&budget);
        let mut second = Reservation::empty(&budget);
        second.grow(7).unwrap();
        first.absorb(second);
        assert_eq!(first.grow(4), Err(LimitExceeded::Held));
        drop(first);
        assert_eq!(Reservation::empty(&budget).grow(10), Ok(()));
    }
}
