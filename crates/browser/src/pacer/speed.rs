//! How fast a core is at this moment: a fixed piece of work, and how long it takes.
//!
//! Virtual cores share a physical one with neighbours that nobody here sees. What a page then loses
//! is not waiting, its thread has its core all the time; everything merely takes longer, up to twice
//! as long, for some 10 to 200 ms. Independent arithmetic feels that most as a page does: over 25
//! seconds of layout and script in Chromium, beside pieces of this work on the same core, the two
//! went together with a correlation of 0.95 (windows of 200 ms); a chain of dependent steps (0.54)
//! or of loads from memory (0.57) hardly noticed the neighbours.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// About 4 µs on a core of 2023: short against a slice of the page's time.
const STEPS: u32 = 2500;

/// A page slows down a little less than this work does: its code is colder. Near the exponents that
/// made twenty loads of one page the same amount of work, within 2 to 4 % where 8 to 12 % were
/// measured.
const PAGE_PER_WORK: f64 = 0.9;

/// Small enough to leave the page's data in the core's nearest cache.
const TABLE_BYTES: usize = 4096;

/// No neighbour takes more than half of a core, and no core is much faster than alone: what is read
/// beyond that is a mistake.
const SLOWEST: f64 = 0.35;
const FASTEST: f64 = 2.5;

/// The first pieces after the page had the core find its caches cold and its guesses wrong.
const WARM_UP: u8 = 3;

/// Does the work on the core that it is called on.
pub(super) struct Speedometer {
    table: Vec<u8>,
    /// Nanoseconds for one piece, the newest readings counting most.
    piece_ns: Option<f64>,
    read_at_us: f64,
    /// The pieces of one turn.
    pieces_us: Vec<f64>,
}

/// For how long a reading is remembered.
const MEMORY_US: f64 = 1_000.0;
/// Of one turn.
const MOST_PIECES: usize = 512;

impl Speedometer {
    pub(super) fn new() -> Self {
        Self {
            table: (0..TABLE_BYTES).map(|i| (i % 251) as u8).collect(),
            piece_ns: None,
            read_at_us: 0.0,
            pieces_us: Vec::with_capacity(MOST_PIECES),
        }
    }

    /// Works for this long. Gives what a piece took this time, where that was long enough to tell: the
    /// median, as a piece that was interrupted says nothing about the core.
    pub(super) fn work_for(&mut self, how_long: Duration) -> Option<f64> {
        let until_us = monotonic_us() + how_long.as_secs_f64() * 1e6;
        for _ in 0..WARM_UP {
            self.piece();
        }
        self.pieces_us.clear();
        let mut began_us = monotonic_us();
        while began_us < until_us {
            self.piece();
            let ended_us = monotonic_us();
            if self.pieces_us.len() < MOST_PIECES {
                self.pieces_us.push(ended_us - began_us);
            }
            began_us = ended_us;
        }
        if self.pieces_us.len() < WARM_UP.into() {
            return None;
        }
        let middle = self.pieces_us.len() / 2;
        let (_, median_us, _) = self
            .pieces_us
            .select_nth_unstable_by(middle, f64::total_cmp);
        let piece_ns = *median_us * 1000.0;
        self.take(piece_ns, began_us);
        Some(piece_ns)
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

    fn piece(&self) {
        black_box(piece(black_box(&self.table)));
    }

    /// How fast a page runs now, where `nominal_ns` is what a piece takes at speed 1.
    pub(super) fn speed(&self, nominal_ns: f64) -> f64 {
        self.piece_ns
            .map_or(1.0, |piece_ns| speed_of(piece_ns, nominal_ns))
    }
}

/// How fast a page runs where a piece of work takes `piece_ns`; 1 where it takes `nominal_ns`.
pub(crate) fn speed_of(piece_ns: f64, nominal_ns: f64) -> f64 {
    match nominal_ns > 0.0 && piece_ns > 0.0 {
        true => (nominal_ns / piece_ns)
            .powf(PAGE_PER_WORK)
            .clamp(SLOWEST, FASTEST),
        false => 1.0,
    }
}

#[inline(never)]
fn piece(table: &[u8]) -> u32 {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = [1u32, 2, 3, 4, 5, 6, 7, 8];
    for i in 0..STEPS {
        a = a.wrapping_mul(3).wrapping_add(i);
        b ^= b << 1;
        c = c.wrapping_add(a ^ i);
        d = d.wrapping_mul(5).wrapping_add(i);
        e ^= e >> 1;
        f = f.wrapping_add(d ^ i);
        g = g.wrapping_mul(7).wrapping_add(1);
        h = h.wrapping_add(g ^ b);
        a = a.wrapping_add(u32::from(table[(i as usize * 64) % TABLE_BYTES]));
    }
    [a, b, c, d, e, f, g, h]
        .into_iter()
        .fold(0, u32::wrapping_add)
}

/// The clock of Chromium's traces on Linux.
pub(super) fn monotonic_us() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_needs_the_nominal_time_has_speed_one() {
        assert_eq!(speed_of(4000.0, 4000.0), 1.0);
        assert!(speed_of(8000.0, 4000.0) < 0.6);
        assert!(speed_of(3000.0, 4000.0) > 1.2);
    }

    #[test]
    fn an_impossible_reading_is_not_believed() {
        assert_eq!(speed_of(4000.0, 1.0), SLOWEST);
        assert_eq!(speed_of(1.0, 4000.0), FASTEST);
    }

    #[test]
    fn one_odd_reading_is_soon_forgotten() {
        let mut meter = Speedometer::new();
        meter.take(4000.0, 0.0);
        meter.take(40_000.0, 1_000.0);
        for turn in 1..4 {
            meter.take(4000.0, 1_000.0 + 4_000.0 * f64::from(turn));
        }
        assert!((meter.speed(4000.0) - 1.0).abs() < 0.01);
    }

    #[test]
    fn an_unknown_nominal_time_says_nothing() {
        assert_eq!(speed_of(4000.0, 0.0), 1.0);
        assert_eq!(Speedometer::new().speed(4000.0), 1.0);
    }

    #[test]
    fn a_moment_too_short_to_tell_changes_nothing() {
        let mut meter = Speedometer::new();
        assert_eq!(meter.work_for(Duration::ZERO), None);
        assert_eq!(meter.speed(1e9), 1.0);
    }

    #[test]
    fn a_longer_one_tells_what_a_piece_takes() {
        let mut meter = Speedometer::new();
        assert!(meter.work_for(Duration::from_millis(20)).unwrap() > 0.0);
        assert!(meter.speed(1e9) > 1.0);
    }
}
