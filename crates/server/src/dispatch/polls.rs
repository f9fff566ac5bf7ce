//! Tracks which poll of a slot is its newest.
//!
//! A slot requests one audit at a time. An older poll that is still waiting belongs to a broken
//! connection or to an agent that has stopped, so an audit leased to it would be lost: a client
//! that closes its half of a connection may still be reading, so a closed connection does not end a
//! request by itself.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use plumbline_store::{AgentProcess, LeaseOwner};

/// The newest poll of every slot.
#[derive(Default)]
pub(super) struct Polls(Mutex<Newest>);

#[derive(Default)]
struct Newest {
    last_number: u64,
    by_owner: HashMap<LeaseOwner, u64>,
}

impl Polls {
    /// Registers a new poll, which becomes the newest of this owner.
    pub(super) fn begin(self: &Arc<Self>, owner: LeaseOwner) -> Poll {
        let mut newest = self.0.lock();
        newest.last_number += 1;
        let number = newest.last_number;
        newest.by_owner.insert(owner.clone(), number);
        drop(newest);
        Poll {
            polls: Arc::clone(self),
            owner,
            number,
        }
    }

    /// Invalidates all polls of a process that seems to be gone. If it is not, it polls again.
    pub(super) fn invalidate(&self, process: &AgentProcess) {
        self.0
            .lock()
            .by_owner
            .retain(|owner, _| owner.process != *process);
    }
}

/// A slot's request for work, registered until it is dropped.
pub(crate) struct Poll {
    polls: Arc<Polls>,
    owner: LeaseOwner,
    number: u64,
}

impl Poll {
    /// Whether the slot has made no later request, and its process is not believed to be gone.
    pub(crate) fn is_newest(&self) -> bool {
        self.polls.0.lock().by_owner.get(&self.owner) == Some(&self.number)
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let mut newest = self.polls.0.lock();
        if newest.by_owner.get(&self.owner) == Some(&self.number) {
            newest.by_owner.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_poll_of_a_slot_is_its_newest_and_dropped_polls_are_removed() {
        let polls = Arc::new(Polls::default());
        let (first, other) = (polls.begin("a".into()), polls.begin("b".into()));
        assert!(first.is_newest() && other.is_newest());
        let second = polls.begin("a".into());
        assert!(!first.is_newest() && second.is_newest());
        drop(second);
        assert!(!first.is_newest());
        drop((first, other));
        assert!(polls.0.lock().by_owner.is_empty());
    }

    #[test]
    fn an_invalidated_process_has_no_newest_poll_until_it_polls_again() {
        let polls = Arc::new(Polls::default());
        let slots = [polls.begin("a/p/0".into()), polls.begin("a/p/1".into())];
        let other = polls.begin("a/p2/0".into());
        polls.invalidate(&"a/p".into());
        assert!(slots.iter().all(|slot| !slot.is_newest()) && other.is_newest());
        let again = polls.begin("a/p/0".into());
        drop(slots);
        assert!(again.is_newest());
    }
}
