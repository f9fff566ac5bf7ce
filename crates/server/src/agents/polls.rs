//! Which request of a slot is its newest. A slot asks for one audit at a time, so an older request that still waits here is
//! of a line that broke or of an agent that has left, and what it were given nobody would hear of: a client that closes its
//! end may still be reading, so a closed line does not end a request by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct Polls(Mutex<Newest>);

#[derive(Default)]
struct Newest {
    last: u64,
    by_owner: HashMap<String, u64>,
}

impl Polls {
    /// From now on the newest of this owner.
    pub(super) fn begin(self: &Arc<Self>, owner: String) -> Poll {
        let mut newest = self.locked();
        newest.last += 1;
        let number = newest.last;
        newest.by_owner.insert(owner.clone(), number);
        drop(newest);
        Poll {
            polls: Arc::clone(self),
            owner,
            number,
        }
    }

    /// From now on no request that this process has made is its newest: it seems to be gone. If it is not, it asks again.
    pub(super) fn give_up(&self, process: &str) {
        let slot_of = |owner: &str| {
            owner
                .strip_prefix(process)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        self.locked().by_owner.retain(|owner, _| !slot_of(owner));
    }

    fn locked(&self) -> MutexGuard<'_, Newest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot's request for work, until it is answered or given up.
pub(crate) struct Poll {
    polls: Arc<Polls>,
    owner: String,
    number: u64,
}

impl Poll {
    pub(crate) fn is_newest(&self) -> bool {
        self.polls.locked().by_owner.get(&self.owner) == Some(&self.number)
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let mut newest = self.polls.locked();
        if newest.by_owner.get(&self.owner) == Some(&self.number) {
            newest.by_owner.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_request_of_a_slot_is_its_newest_and_none_is_kept() {
        let polls = Arc::new(Polls::default());
        let (first, other) = (polls.begin("a".to_owned()), polls.begin("b".to_owned()));
        assert!(first.is_newest() && other.is_newest());
        let second = polls.begin("a".to_owned());
        assert!(!first.is_newest() && second.is_newest());
        drop(second);
        assert!(!first.is_newest());
        drop((first, other));
        assert!(polls.locked().by_owner.is_empty());
    }

    #[test]
    fn a_process_that_is_given_up_has_no_newest_request_until_it_asks_again() {
        let polls = Arc::new(Polls::default());
        let slots = [
            polls.begin("a/p/0".to_owned()),
            polls.begin("a/p/1".to_owned()),
        ];
        let other = polls.begin("a/p2/0".to_owned());
        polls.give_up("a/p");
        assert!(slots.iter().all(|slot| !slot.is_newest()) && other.is_newest());
        let again = polls.begin("a/p/0".to_owned());
        drop(slots);
        assert!(again.is_newest());
    }
}
