//! How fast a core is at this moment: work of known size, and how long it takes.
//!
//! Virtual cores share a physical one, its caches and its memory with neighbours that nobody here
//! sees. What a page then loses is not waiting, its thread has its core all the time; everything merely
//! takes longer, up to twice as long, for some 10 to 200 ms. Independent arithmetic feels who shares the
//! core, loads from memory feel who crowds the caches, and a page feels both.

use std::collections::VecDeque;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::arithmetic::Arithmetic;
use super::memory::{Chain, STEPS as LOADS};

/// What work of known size takes on a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorePace {
    /// A piece of arithmetic.
    pub piece_ns: f64,
    /// One load that the near caches do not answer; 0 where none could be tried.
    pub load_ns: f64,
}

/// How a page's slowness goes with that of either work: the exponents that made thirty loads of one
/// page on a restless host most nearly the same amount of work.
const PAGE_PER_PIECE: f64 = 0.7;
const PAGE_PER_LOAD: f64 = 1.0;
/// Loads change a page's speed by no more than this factor: most of what a page does needs no far memory, and
/// a reading beyond it says more about the neighbour than about the page.
const MOST_BY_LOADS: f64 = 1.25;

/// No neighbour takes more than half of a core, and no core is much faster than alone: what is read
/// beyond that is a mistake.
const SLOWEST: f64 = 0.3;
const FASTEST: f64 = 2.5;

impl CorePace {
    /// How fast a page runs on this core; 1 where it runs as on `nominal`.
    pub(crate) fn speed_beside(self, nominal: Self) -> f64 {
        let part = |nominal_ns: f64, ns: f64, exponent: f64| match nominal_ns > 0.0 && ns > 0.0 {
            true => (nominal_ns / ns).powf(exponent),
            false => 1.0,
        };
        let by_piece = part(nominal.piece_ns, self.piece_ns, PAGE_PER_PIECE);
        let by_load = part(nominal.load_ns, self.load_ns, PAGE_PER_LOAD)
            .clamp(MOST_BY_LOADS.recip(), MOST_BY_LOADS);
        (by_piece * by_load).clamp(SLOWEST, FASTEST)
    }
}

/// The first pieces after the page had the core find its caches cold and its guesses wrong.
const WARM_UP: u8 = 3;
/// For how long a reading of arithmetic is remembered.
const MEMORY_US: f64 = 1_000.0;
/// Of one turn.
const MOST_PIECES: usize = 512;
/// Single loads scatter, and an interrupted turn says nothing: the median of this many turns counts.
const TURNS_OF_LOADS: usize = 15;

/// Does the work on the core that it is called on.
pub(super) struct Speedometer {
    arithmetic: Arithmetic,
    /// Nanoseconds for one piece, the newest readings counting most.
    piece_ns: Option<f64>,
    read_at_us: f64,
    /// The pieces of one turn.
    pieces_us: Vec<f64>,
    chain: Option<Chain>,
    /// Nanoseconds for one load, of the last turns.
    loads_ns: VecDeque<f64>,
}

impl Speedometer {
    pub(super) fn new() -> Self {
        Self {
            arithmetic: Arithmetic::new(),
            piece_ns: None,
            read_at_us: 0.0,
            pieces_us: Vec::with_capacity(MOST_PIECES),
            chain: Chain::new(),
            loads_ns: VecDeque::with_capacity(TURNS_OF_LOADS),
        }
    }

    /// Works for this long. Gives what the work takes now, where that was long enough to tell: the
    /// median, as a piece that was interrupted says nothing about the core.
    pub(super) fn work_for(&mut self, how_long: Duration) -> Option<CorePace> {
        let until_us = monotonic_us() + how_long.as_secs_f64() * 1e6;
        self.load();
        for _ in 0..WARM_UP {
            self.arithmetic.piece();
        }
        self.pieces_us.clear();
        let mut began_us = monotonic_us();
        while began_us < until_us {
            self.arithmetic.piece();
            let ended_us = monotonic_us();
            if self.pieces_us.len() < MOST_PIECES {
                self.pieces_us.push(ended_us - began_us);
            }
            began_us = ended_us;
        }
        if self.pieces_us.len() < WARM_UP.into() {
            return None;
        }
        let piece_ns = median(&mut self.pieces_us) * 1000.0;
        self.take(piece_ns, began_us);
        Some(CorePace {
            piece_ns,
            load_ns: self.load_ns(),
        })
    }

    fn load(&mut self) {
        let Some(chain) = &mut self.chain else { return };
        let began_us = monotonic_us();
        chain.follow();
        let took_us = monotonic_us() - began_us;
        if self.loads_ns.len() == TURNS_OF_LOADS {
            self.loads_ns.pop_front();
        }
        self.loads_ns.push_back(took_us * 1000.0 / f64::from(LOADS));
    }

    fn load_ns(&self) -> f64 {
        let mut turns: Vec<f64> = self.loads_ns.iter().copied().collect();
        match turns.is_empty() {
            true => 0.0,
            false => median(&mut turns),
        }
    }

    /// A reading counts for more the longer ago the last one was.
    fn take(&mut self, piece_ns: f64, at_us: f64) {
        let new = match self.piece_ns {
            None => 1.0,
            Some(_) => 1.0 - (-(at_us - self.read_at_us) / MEMORY_US).exp(),
        };
        let old_ns = self.piece_ns.unwrap_or(piece_ns);
        self.piece_ns = Some(old_ns + (piece_ns - old_ns) * new);
        self.read_at_us = at_us;
    }

    /// What the work takes now; nothing of it where it was not yet done.
    pub(super) fn pace(&self) -> CorePace {
        CorePace {
            piece_ns: self.piece_ns.unwrap_or_default(),
            load_ns: self.load_ns(),
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

    const NOMINAL: CorePace = CorePace {
        piece_ns: 4000.0,
        load_ns: 400.0,
    };

    fn pace(piece_ns: f64, load_ns: f64) -> CorePace {
        CorePace { piece_ns, load_ns }
    }

    #[test]
    fn a_core_that_needs_the_nominal_time_has_speed_one() {
        assert_eq!(NOMINAL.speed_beside(NOMINAL), 1.0);
        assert!(pace(8000.0, 400.0).speed_beside(NOMINAL) < 0.7);
        assert!(pace(4000.0, 450.0).speed_beside(NOMINAL) < 0.9);
        assert!(pace(3000.0, 400.0).speed_beside(NOMINAL) > 1.1);
    }

    #[test]
    fn loads_alone_do_not_stop_a_page() {
        let crowded = pace(4000.0, 4000.0).speed_beside(NOMINAL);
        assert_eq!(crowded, MOST_BY_LOADS.recip());
    }

    #[test]
    fn an_impossible_reading_is_not_believed() {
        assert_eq!(pace(4e6, 400.0).speed_beside(NOMINAL), SLOWEST);
        assert_eq!(pace(1.0, 400.0).speed_beside(NOMINAL), FASTEST);
    }

    #[test]
    fn what_is_not_known_of_a_core_says_nothing() {
        assert_eq!(pace(4000.0, 700.0).speed_beside(CorePace::default()), 1.0);
        assert_eq!(CorePace::default().speed_beside(NOMINAL), 1.0);
        assert_eq!(pace(4000.0, 0.0).speed_beside(NOMINAL), 1.0);
        assert_eq!(Speedometer::new().pace(), CorePace::default());
    }

    #[test]
    fn one_odd_reading_is_soon_forgotten() {
        let mut meter = Speedometer::new();
        meter.take(4000.0, 0.0);
        meter.take(40_000.0, 1_000.0);
        for turn in 1..4 {
            meter.take(4000.0, 1_000.0 + 4_000.0 * f64::from(turn));
        }
        assert!((meter.pace().piece_ns / 4000.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn an_interrupted_turn_of_loads_is_not_believed() {
        let mut meter = Speedometer::new();
        meter.loads_ns.extend([400.0, 9000.0, 410.0, 390.0, 405.0]);
        assert_eq!(meter.load_ns(), 405.0);
    }

    #[test]
    fn a_moment_too_short_to_tell_changes_nothing_of_arithmetic() {
        let mut meter = Speedometer::new();
        assert_eq!(meter.work_for(Duration::ZERO), None);
        assert_eq!(meter.pace().piece_ns, 0.0);
    }

    #[test]
    fn a_longer_one_tells_what_the_work_takes() {
        let mut meter = Speedometer::new();
        let read = meter.work_for(Duration::from_millis(20)).unwrap();
        assert!(read.piece_ns > 0.0 && read.load_ns > 0.0, "{read:?}");
        assert_eq!(meter.pace().load_ns, read.load_ns);
    }
}
