//! How much a page may make our process hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest message that is read from the browser.
pub(crate) const MAX_MESSAGE_BYTES: usize = 32_000_000;

/// All that one browser may make us hold at a time: messages that nobody has looked at yet, and what a visit keeps of those
/// that somebody has (request log, trace, console, artifacts).
pub(crate) const MAX_HELD_BYTES: usize = 128_000_000;

/// What a page made too large. Whatever it is, the visit is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Excess {
    #[error("a message of the browser is larger than {} MB", MAX_MESSAGE_BYTES / 1_000_000)]
    Message,
    #[error("what the browser reported is larger than {} MB", MAX_HELD_BYTES / 1_000_000)]
    Held,
    #[error("the trace is larger than {limit_mb} MB")]
    Trace { limit_mb: usize },
    #[error("the browser could not record all of the trace")]
    LostTrace,
    #[error("the trace did not arrive in time")]
    SlowTrace,
}

/// Counts the bytes that are held because of one browser.
#[derive(Debug)]
pub(super) struct Budget {
    held: AtomicUsize,
    limit: usize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            held: AtomicUsize::new(0),
            limit,
        })
    }
}

/// A part of a budget that is used as long as this lives.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Held {
    /// For tests of who keeps something: so many bytes may be kept.
    #[cfg(test)]
    pub(crate) fn within(limit: usize) -> Self {
        Self::nothing_of(&Budget::new(limit))
    }

    pub(super) fn nothing_of(budget: &Arc<Budget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// Uses so many bytes more of the budget. When there is not as much left, nothing changes.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Excess> {
        let more = |held: usize| {
            let held = held.checked_add(bytes)?;
            (held <= self.budget.limit).then_some(held)
        };
        self.budget
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .map_err(|_| Excess::Held)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes over what another part uses.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_can_be_used_again() {
        let budget = Budget::new(10);
        let mut kept = Held::nothing_of(&budget);
        kept.grow(4).unwrap();
        let mut other = Held::nothing_of(&budget);
        other.grow(6).unwrap();
        assert_eq!(kept.grow(1), Err(Excess::Held));
        drop(other);
        kept.grow(1).unwrap();
        assert_eq!(kept.grow(6), Err(Excess::Held));
        assert_eq!(kept.grow(usize::MAX), Err(Excess::Held));
    }

    #[test]
    fn what_is_absorbed_stays_in_use() {
        let budget = Budget::new(10);
        let mut kept = Held::nothing_of(&budget);
        let mut other = Held::nothing_of(&budget);
        other.grow(7).unwrap();
        kept.absorb(other);
        assert_eq!(kept.grow(4), Err(Excess::Held));
        drop(kept);
        assert_eq!(Held::nothing_of(&budget).grow(10), Ok(()));
    }
}
