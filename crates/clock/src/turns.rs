//! Turns of the visits of this process on the cores of the host.
//!
//! Pages that are measured at the same time would wait for each other's cores at moments that
//! become visible only afterwards. So only as many pages run as there are cores; the others are
//! stopped together with their clocks, and notice nothing.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The length of a turn while others wait. Stopping and continuing a browser takes about a
/// millisecond.
const TURN: Duration = Duration::from_millis(40);

/// The time between two checks whether to give up waiting.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The visits that run, and those that wait.
#[derive(Debug)]
pub(crate) struct Turns {
    capacity: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    waiting: VecDeque<u64>,
    last_id: u64,
}

/// The turn of one visit, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    began_at: Instant,
}

impl Turns {
    /// Lets this many visits run at the same time.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Begins a turn at once, if nobody else has to wait for it.
    pub(crate) fn try_begin(&self) -> Option<Turn<'_>> {
        let mut state = self.lock();
        (state.waiting.is_empty() && state.running < self.capacity).then(|| self.start(&mut state))
    }

    /// Waits for a turn, in the order of the calls, until `give_up` returns true.
    pub(crate) fn begin(&self, give_up: impl Fn() -> bool) -> Option<Turn<'_>> {
        let mut state = self.lock();
        state.last_id += 1;
        let id = state.last_id;
        state.waiting.push_back(id);
        loop {
            if state.waiting.front() == Some(&id) && state.running < self.capacity {
                state.waiting.pop_front();
                return Some(self.start(&mut state));
            }
            if give_up() {
                state.waiting.retain(|other| *other != id);
                self.changed.notify_all();
                return None;
            }
            let result = self.changed.wait_timeout(state, CHECK_INTERVAL);
            state = result.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns whether a visit waits for its turn.
    pub(crate) fn are_wanted(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    fn start(&self, state: &mut State) -> Turn<'_> {
        state.running += 1;
        // Another place may be free.
        self.changed.notify_all();
        Turn {
            turns: self,
            began_at: Instant::now(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// Returns whether it is time to let another visit run.
    pub(crate) fn is_over(&self) -> bool {
        self.began_at.elapsed() >= TURN && self.turns.are_wanted()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().running -= 1;
        self.turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never() -> bool {
        false
    }

    #[test]
    fn only_as_many_run_as_there_are_places() {
        let turns = Turns::new(2);
        let first = turns.try_begin().unwrap();
        let second = turns.try_begin().unwrap();
        assert!(turns.try_begin().is_none());
        assert!(!turns.are_wanted());
        assert!(!first.is_over(), "nobody waits");
        drop(second);
        assert!(turns.try_begin().is_some());
    }

    #[test]
    fn places_are_given_in_the_order_in_which_they_were_asked_for() {
        let turns = Turns::new(1);
        let order = Mutex::new(Vec::new());
        let running = turns.try_begin().unwrap();
        std::thread::scope(|scope| {
            for number in 0..3 {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let _turn = turns.begin(never);
                    order.lock().unwrap().push(number);
                });
                while turns.lock().waiting.len() <= number {
                    std::thread::yield_now();
                }
            }
            assert!(turns.try_begin().is_none(), "others wait already");
            drop(running);
        });
        assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    }

    #[test]
    fn one_that_gives_up_does_not_hold_others_back() {
        let turns = Turns::new(1);
        let running = turns.try_begin().unwrap();
        assert!(turns.begin(|| true).is_none());
        assert!(!turns.are_wanted());
        drop(running);
        assert!(turns.begin(never).is_some());
    }
}
