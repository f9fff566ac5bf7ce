//! Measures contention for a core's near caches: how much longer cache lines take that were read a
//! moment before.
//!
//! The interpreter exceeds these caches regardless of who shares them, and does not notice when
//! they are crowded. A page depends on them: at such moments its scripts took half as long again
//! while the interpreter took a sixth more.

use std::collections::VecDeque;
use std::hint::black_box;

use super::interpreter::Random;
use super::speed::monotonic_us;

/// Number of lines, 64 KiB in total: more than the first-level cache, and no more of the second
/// than a page can spare.
const LINES: usize = 1024;

/// Number of recent readings in the mean; single ones vary too much.
const READINGS: usize = 15;
/// Maximum plausible reading; beyond it the reading was interrupted.
const MAX_READING: f64 = 8.0;

#[repr(align(64))]
#[derive(Clone, Copy, Default)]
struct Line {
    next: usize,
}

pub(crate) struct Neighbours {
    lines: Vec<Line>,
    ratios: VecDeque<f64>,
}

impl Neighbours {
    pub(crate) fn new() -> Self {
        let order = shuffled();
        let mut lines = vec![Line::default(); LINES];
        for (from, to) in order.iter().zip(order.iter().cycle().skip(1)) {
            lines[*from].next = *to;
        }
        Self {
            lines,
            ratios: VecDeque::with_capacity(READINGS),
        }
    }

    /// Loads the lines into the near caches; only other users of the core may run until they are
    /// read.
    pub(crate) fn fetch(&self) {
        let mut at = 0;
        for _ in 0..LINES {
            at = self.lines[at].next;
        }
        black_box(at);
    }

    /// Measures the time of the lines now, relative to an immediate second read.
    pub(crate) fn read(&mut self) {
        let began_us = monotonic_us();
        self.fetch();
        let left_us = monotonic_us();
        self.fetch();
        let near_us = monotonic_us() - left_us;
        self.take((left_us - began_us) / near_us.max(0.001));
    }

    fn take(&mut self, ratio: f64) {
        if self.ratios.len() == READINGS {
            self.ratios.pop_front();
        }
        self.ratios.push_back(ratio.clamp(1.0, MAX_READING));
    }

    /// Returns the slowdown relative to uncontended caches; 0 without a reading.
    pub(crate) fn crowding(&self) -> f64 {
        self.ratios.iter().sum::<f64>() / self.ratios.len().max(1) as f64
    }
}

/// Returns a random cycle through all lines, which no prefetcher predicts (Sattolo's algorithm).
fn shuffled() -> Vec<usize> {
    let mut random = Random::new();
    let mut order: Vec<usize> = (0..LINES).collect();
    for last in (1..LINES).rev() {
        order.swap(last, random.next() as usize % last);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cache_line_is_read_before_any_is_read_again() {
        let neighbours = Neighbours::new();
        let mut visited = [false; LINES];
        let mut at = 0;
        for _ in 0..LINES {
            assert!(!std::mem::replace(&mut visited[at], true), "line {at}");
            at = neighbours.lines[at].next;
        }
        assert_eq!(at, 0);
    }

    #[test]
    fn crowding_is_zero_without_readings_and_at_least_one_with_them() {
        let mut neighbours = Neighbours::new();
        assert_eq!(neighbours.crowding(), 0.0);
        neighbours.read();
        assert!((1.0..=MAX_READING).contains(&neighbours.crowding()));
    }

    #[test]
    fn an_interrupted_reading_has_little_weight_for_a_short_time() {
        let mut neighbours = Neighbours::new();
        neighbours.take(900.0);
        assert_eq!(neighbours.crowding(), MAX_READING);
        for _ in 0..READINGS {
            neighbours.take(1.5);
        }
        assert_eq!(neighbours.crowding(), 1.5);
    }
}
