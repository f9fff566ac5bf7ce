//! Measures the current speed of a core by the time of a known workload.
//!
//! Virtual cores share a physical one, its caches and its memory with invisible neighbours. A page
//! does not wait for a core then, its thread has its core all the time; everything merely takes
//! longer, up to twice as long, for some 10 to 200 ms.

use std::collections::VecDeque;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::interpreter::Interpreter;

/// Time that a known workload takes on a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorePace {
    /// Time of a turn of the interpreter; 0 if none was measured.
    pub turn_ns: f64,
}

/// Exponent that relates a page's slowdown to that of the interpreter. 1.0 to 1.2 made the work of
/// three pages most nearly the same in 28 visits on a host whose cores varied by a factor of two
/// (decision 0033).
const PAGE_PER_TURN: f64 = 1.1;

/// Minimum plausible speed: no neighbour takes more than half of a core, so that a lower reading is
/// an error.
const MIN_SPEED: f64 = 0.3;
const MAX_SPEED: f64 = 2.5;

impl CorePace {
    /// Returns the speed of a page on this core, relative to `nominal`.
    pub fn speed_relative_to(self, nominal: Self) -> f64 {
        if nominal.turn_ns <= 0.0 || self.turn_ns <= 0.0 {
            return 1.0;
        }
        let speed = (nominal.turn_ns / self.turn_ns).powf(PAGE_PER_TURN);
        speed.clamp(MIN_SPEED, MAX_SPEED)
    }
}

/// Number of turns in the median: single ones vary, and may have been interrupted.
const TURNS: usize = 15;

/// Runs the workload on the core that it is called on.
pub(crate) struct Speedometer {
    interpreter: Interpreter,
    /// Durations of the last turns in nanoseconds.
    turns_ns: VecDeque<f64>,
}

impl Speedometer {
    pub(crate) fn new() -> Self {
        Self {
            interpreter: Interpreter::new(),
            turns_ns: VecDeque::with_capacity(TURNS),
        }
    }

    /// Measures the core that this is called on once.
    pub(crate) fn read(&mut self) {
        // The first turn finds caches and predictors as others left them, and is not counted.
        self.interpreter.turn();
        let start_us = monotonic_us();
        self.interpreter.turn();
        self.add_turn((monotonic_us() - start_us) * 1000.0);
    }

    fn add_turn(&mut self, turn_ns: f64) {
        if self.turns_ns.len() == TURNS {
            self.turns_ns.pop_front();
        }
        self.turns_ns.push_back(turn_ns);
    }

    /// Returns the current measurement; 0 without one.
    pub(crate) fn pace(&self) -> CorePace {
        let mut turns: Vec<f64> = self.turns_ns.iter().copied().collect();
        CorePace {
            turn_ns: if turns.is_empty() {
                0.0
            } else {
                median(&mut turns)
            },
        }
    }
}

/// Returns the median, the upper one of two.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

fn monotonic_us() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOMINAL: CorePace = pace(20_000.0);

    const fn pace(turn_ns: f64) -> CorePace {
        CorePace { turn_ns }
    }

    #[test]
    fn a_core_that_needs_the_nominal_time_has_speed_one() {
        assert_eq!(NOMINAL.speed_relative_to(NOMINAL), 1.0);
        let slower = pace(25_000.0).speed_relative_to(NOMINAL);
        assert!((0.77..0.80).contains(&slower), "{slower}");
        assert!(pace(18_000.0).speed_relative_to(NOMINAL) > 1.1);
    }

    #[test]
    fn an_implausible_reading_is_limited() {
        assert_eq!(pace(4e6).speed_relative_to(NOMINAL), MIN_SPEED);
        assert_eq!(pace(1.0).speed_relative_to(NOMINAL), MAX_SPEED);
    }

    #[test]
    fn an_unmeasured_pace_has_speed_one() {
        assert_eq!(pace(20_000.0).speed_relative_to(CorePace::default()), 1.0);
        assert_eq!(CorePace::default().speed_relative_to(NOMINAL), 1.0);
        assert_eq!(Speedometer::new().pace(), CorePace::default());
    }

    #[test]
    fn an_interrupted_turn_is_ignored() {
        let mut meter = Speedometer::new();
        for turn_ns in [20_000.0, 900_000.0, 20_100.0, 19_900.0, 20_050.0] {
            meter.add_turn(turn_ns);
        }
        assert_eq!(meter.pace().turn_ns, 20_050.0);
    }

    #[test]
    fn only_the_last_turns_count() {
        let mut meter = Speedometer::new();
        for turn in 0..3 * TURNS {
            meter.add_turn(if turn < TURNS { 90_000.0 } else { 20_000.0 });
        }
        assert_eq!(meter.turns_ns.len(), TURNS);
        assert_eq!(meter.pace().turn_ns, 20_000.0);
    }

    #[test]
    fn a_measurement_takes_time() {
        let mut meter = Speedometer::new();
        meter.read();
        assert!(meter.pace().turn_ns > 0.0);
    }
}
