//! Turns of the visits of this process on the cores of the host.
//!
//! Pages that load at the same time would wait for each other's cores at moments that become
//! visible only afterwards. So a page loads, and a browser starts, only in its turn. The other
//! parts of a visit need no turn; they run beside it at a lower priority.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of cores for one turn: while the main thread of a page runs, other threads of the
/// browser decode, raster and receive.
const CORES_PER_TURN: usize = 2;

/// The time between two checks whether to give up waiting.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The turns of all visits of this process.
static TURNS: LazyLock<Arc<Turns>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Turns::new(cores / CORES_PER_TURN))
});

/// The visits that have a turn, and those that wait for one.
#[derive(Debug)]
struct Turns {
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

/// The place of a visit among those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Last,
}

/// The turn of one visit, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    turns: Arc<Turns>,
}

/// Sets a flag when it is dropped.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Turn {
    /// Waits for a turn, in the order of the calls. Returns `None` only if the runtime shuts down.
    pub async fn begin() -> Option<Self> {
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let guard = SetOnDrop(Arc::clone(&is_abandoned));
        let waiting = tokio::task::spawn_blocking(move || {
            TURNS.begin(Place::Last, || is_abandoned.load(Ordering::Relaxed))
        });
        let turn = waiting.await.ok().flatten();
        drop(guard);
        turn
    }

    /// Waits for a turn before all others, until `give_up` returns true: the visit had one already.
    pub(crate) fn resume(give_up: impl Fn() -> bool) -> Option<Self> {
        TURNS.begin(Place::First, give_up)
    }

    /// Begins a turn at once, if nobody else has to wait for it.
    pub(crate) fn try_begin() -> Option<Self> {
        TURNS.try_begin()
    }

    /// Returns whether another visit waits for a turn.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.turns.lock().waiting.is_empty()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.lock().running -= 1;
        self.turns.changed.notify_all();
    }
}

impl Turns {
    /// Lets this many visits run at the same time, at least one.
    fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn try_begin(self: &Arc<Self>) -> Option<Turn> {
        let mut state = self.lock();
        let is_free = state.waiting.is_empty() && state.running < self.capacity;
        is_free.then(|| self.start(&mut state))
    }

    fn begin(self: &Arc<Self>, place: Place, give_up: impl Fn() -> bool) -> Option<Turn> {
        let mut state = self.lock();
        state.last_id += 1;
        let id = state.last_id;
        match place {
            Place::First => state.waiting.push_front(id),
            Place::Last => state.waiting.push_back(id),
        }
        loop {
            if give_up() {
                state.waiting.retain(|other| *other != id);
                self.changed.notify_all();
                return None;
            }
            if state.waiting.front() == Some(&id) && state.running < self.capacity {
                state.waiting.pop_front();
                return Some(self.start(&mut state));
            }
            let result = self.changed.wait_timeout(state, CHECK_INTERVAL);
            state = result.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn start(self: &Arc<Self>, state: &mut State) -> Turn {
        state.running += 1;
        // Another turn may be free.
        self.changed.notify_all();
        Turn {
            turns: Arc::clone(self),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never() -> bool {
        false
    }

    fn turns(capacity: usize) -> Arc<Turns> {
        Arc::new(Turns::new(capacity))
    }

    #[test]
    fn only_as_many_run_as_there_are_turns() {
        let turns = turns(2);
        let first = turns.try_begin().unwrap();
        let second = turns.try_begin().unwrap();
        assert!(turns.try_begin().is_none());
        assert!(!first.is_wanted());
        drop(second);
        assert!(turns.try_begin().is_some());
    }

    #[test]
    fn there_is_a_turn_on_any_host() {
        assert!(turns(0).try_begin().is_some());
    }

    /// Returns the order in which waits at these places end.
    fn order_of(places: &[Place]) -> Vec<usize> {
        let turns = turns(1);
        let order = Mutex::new(Vec::new());
        let running = turns.try_begin().unwrap();
        std::thread::scope(|scope| {
            for (number, place) in places.iter().enumerate() {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let _turn = turns.begin(*place, never);
                    order.lock().unwrap().push(number);
                });
                while turns.lock().waiting.len() <= number {
                    std::thread::yield_now();
                }
            }
            assert!(turns.try_begin().is_none(), "others wait already");
            assert!(running.is_wanted());
            drop(running);
        });
        order.into_inner().unwrap()
    }

    #[test]
    fn turns_are_given_in_the_order_in_which_they_were_asked_for() {
        assert_eq!(order_of(&[Place::Last; 3]), [0, 1, 2]);
    }

    #[test]
    fn a_visit_that_had_a_turn_comes_first() {
        assert_eq!(
            order_of(&[Place::Last, Place::Last, Place::First]),
            [2, 0, 1]
        );
    }

    #[test]
    fn one_that_gives_up_does_not_hold_others_back() {
        let turns = turns(1);
        let running = turns.try_begin().unwrap();
        assert!(turns.begin(Place::Last, || true).is_none());
        assert!(!running.is_wanted());
        drop(running);
        assert!(turns.begin(Place::Last, never).is_some());
    }
}
