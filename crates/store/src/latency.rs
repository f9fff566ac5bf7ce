//! Histograms of a store's latency, counted without locks.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets in microseconds. Slower operations are only in the total count.
pub const LATENCY_BOUNDS_US: [u64; 12] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000,
];

#[derive(Debug)]
pub(crate) struct Latency {
    buckets: [AtomicU64; LATENCY_BOUNDS_US.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            buckets: array::from_fn(|_| AtomicU64::new(0)),
            count: AtomicU64::new(0),
            sum_us: AtomicU64::new(0),
        }
    }
}

/// A histogram of latencies since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatencyCounts {
    /// The number of operations up to each bound of [`LATENCY_BOUNDS_US`], cumulative.
    pub up_to: [u64; LATENCY_BOUNDS_US.len()],
    pub count: u64,
    pub sum_us: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreLatency {
    pub reads: LatencyCounts,
    pub writes: LatencyCounts,
}

impl Latency {
    pub(crate) fn record(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = LATENCY_BOUNDS_US.iter().position(|bound| us <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> LatencyCounts {
        let mut sum = 0;
        LatencyCounts {
            up_to: array::from_fn(|bucket| {
                sum += self.buckets[bucket].load(Ordering::Relaxed);
                sum
            }),
            count: self.count.load(Ordering::Relaxed),
            sum_us: self.sum_us.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative() {
        let latency = Latency::default();
        for us in [50, 51, 2_000_000] {
            latency.record(Duration::from_micros(us));
        }
        let counts = latency.counts();
        assert_eq!(counts.up_to[0], 1);
        assert!(counts.up_to[1..].iter().all(|up_to| *up_to == 2));
        assert_eq!((counts.count, counts.sum_us), (3, 2_000_101));
    }
}
