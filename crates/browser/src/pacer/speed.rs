//! How fast a core is at this moment: work of known size, and how long it takes.
//!
//! Virtual cores share a physical one, its caches and its memory with neighbours that nobody here
//! sees. What a page then loses is not waiting, its thread has its core all the time; everything merely
//! takes longer, up to twice as long, for some 10 to 200 ms.

use std::collections::VecDeque;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::interpreter::Interpreter;
use super::neighbours::Neighbours;

/// What work of known size takes on a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorePace {
    /// A turn of the interpreter; 0 where none was taken.
    pub turn_ns: f64,
    /// How many times as long lines of the near caches take that others had a moment to crowd out; 0 where none were read.
    pub crowding: f64,
}

/// How a page's slowness goes with that of the interpreter, and with how crowded the near caches are: what made the work of five
/// pages most nearly the same from visit to visit.
const PAGE_PER_TURN: f64 = 1.5;
const PAGE_PER_CROWDING: f64 = 0.15;

/// No neighbour takes more than half of a core, and no core is much faster than alone: what is read
/// beyond that is a mistake.
const SLOWEST: f64 = 0.3;
const FASTEST: f64 = 2.5;

impl CorePace {
    /// How fast a page runs on this core; 1 where it runs as on `nominal`.
    pub(crate) fn speed_beside(self, nominal: Self) -> f64 {
        if nominal.turn_ns <= 0.0 || self.turn_ns <= 0.0 {
            return 1.0;
        }
        let by_turns = (nominal.turn_ns / self.turn_ns).powf(PAGE_PER_TURN);
        let by_crowding = match nominal.crowding > 0.0 && self.crowding > 0.0 {
            true => (nominal.crowding / self.crowding).powf(PAGE_PER_CROWDING),
            false => 1.0,
        };
        (by_turns * by_crowding).clamp(SLOWEST, FASTEST)
    }
}

/// While the core is kept. More often tells no more, and leaves less of the caches to the page.
const READ_EVERY_US: f64 = 1_200.0;

/// Single turns scatter, and an interrupted one says nothing: the median of this many counts.
const TURNS: usize = 15;

/// Does the work on the core that it is called on.
pub(super) struct Speedometer {
    interpreter: Interpreter,
    neighbours: Neighbours,
    /// Nanoseconds, of the last turns.
    turns_ns: VecDeque<f64>,
}

impl Speedometer {
    pub(super) fn new() -> Self {
        Self {
            interpreter: Interpreter::new(),
            neighbours: Neighbours::new(),
            turns_ns: VecDeque::with_capacity(TURNS),
        }
    }

    /// Keeps the core for this long, or for the two turns that it takes to read its pace.
    pub(super) fn work_for(&mut self, how_long: Duration) -> CorePace {
        let until_us = monotonic_us() + how_long.as_secs_f64() * 1e6;
        loop {
            self.read();
            self.neighbours.fetch();
            let next_us = monotonic_us() + READ_EVERY_US;
            while monotonic_us() < until_us.min(next_us) {}
            if next_us >= until_us {
                return self.pace();
            }
            self.neighbours.read();
        }
    }

    fn read(&mut self) {
        // Finds the caches as others left them, and its guesses wrong: that is their doing.
        self.interpreter.turn();
        let began_us = monotonic_us();
        self.interpreter.turn();
        self.take((monotonic_us() - began_us) * 1000.0);
    }

    fn take(&mut self, turn_ns: f64) {
        if self.turns_ns.len() == TURNS {
            self.turns_ns.pop_front();
        }
        self.turns_ns.push_back(turn_ns);
    }

    /// What the work takes now; nothing where it was not yet done.
    pub(super) fn pace(&self) -> CorePace {
        let mut turns: Vec<f64> = self.turns_ns.iter().copied().collect();
        CorePace {
            turn_ns: match turns.is_empty() {
                true => 0.0,
                false => median(&mut turns),
            },
            crowding: self.neighbours.crowding(),
        }
    }
}

/// The upper one of two.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// The clock of Chromium's traces on Linux.
pub(super) fn monotonic_us() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOMINAL: CorePace = pace(20_000.0);

    const fn pace(turn_ns: f64) -> CorePace {
        CorePace {
            turn_ns,
            crowding: 1.5,
        }
    }

    #[test]
    fn a_core_that_needs_the_nominal_time_has_speed_one() {
        assert_eq!(NOMINAL.speed_beside(NOMINAL), 1.0);
        assert!(pace(25_000.0).speed_beside(NOMINAL) < 0.75);
        assert!(pace(18_000.0).speed_beside(NOMINAL) > 1.1);
    }

    #[test]
    fn a_crowded_core_is_slower_where_crowding_was_read_both_times() {
        let crowded = |crowding| CorePace {
            crowding,
            ..NOMINAL
        };
        assert!(crowded(4.0).speed_beside(NOMINAL) < 0.9);
        assert!(crowded(1.0).speed_beside(NOMINAL) > 1.05);
        assert_eq!(crowded(0.0).speed_beside(NOMINAL), 1.0);
        assert_eq!(NOMINAL.speed_beside(crowded(0.0)), 1.0);
    }

    #[test]
    fn an_impossible_reading_is_not_believed() {
        assert_eq!(pace(4e6).speed_beside(NOMINAL), SLOWEST);
        assert_eq!(pace(1.0).speed_beside(NOMINAL), FASTEST);
    }

    #[test]
    fn what_is_not_known_of_a_core_says_nothing() {
        assert_eq!(pace(20_000.0).speed_beside(CorePace::default()), 1.0);
        assert_eq!(CorePace::default().speed_beside(NOMINAL), 1.0);
        assert_eq!(Speedometer::new().pace(), CorePace::default());
    }

    #[test]
    fn an_interrupted_turn_is_not_believed() {
        let mut meter = Speedometer::new();
        for turn_ns in [20_000.0, 900_000.0, 20_100.0, 19_900.0, 20_050.0] {
            meter.take(turn_ns);
        }
        assert_eq!(meter.pace().turn_ns, 20_050.0);
    }

    #[test]
    fn only_the_last_turns_count() {
        let mut meter = Speedometer::new();
        for turn in 0..3 * TURNS {
            meter.take(if turn < TURNS { 90_000.0 } else { 20_000.0 });
        }
        assert_eq!(meter.turns_ns.len(), TURNS);
        assert_eq!(meter.pace().turn_ns, 20_000.0);
    }

    #[test]
    fn even_a_short_moment_tells_what_the_work_takes() {
        let mut meter = Speedometer::new();
        let read = meter.work_for(Duration::ZERO);
        assert!(read.turn_ns > 0.0, "{read:?}");
        assert_eq!(meter.pace(), read);
    }
}
