use std::collections::VecDeque;

use super::AckProgress;

const RATE_WINDOW_ROUNDS: u64 = 10;
const LUMP_WINDOW_ROUNDS: u32 = 5;
/// Aggregated acknowledgements may raise the window by at most 100 ms worth of data.
const MAX_AGGREGATION_S: f64 = 0.1;

/// Maximum rate of the last rounds.
#[derive(Debug, Default)]
pub(super) struct MaxFilter {
    /// Decreasing rates, each with its round.
    samples: VecDeque<(u64, f64)>,
    pub(super) max: f64,
}

impl MaxFilter {
    pub(super) fn add(&mut self, round: u64, rate: f64) {
        while self.samples.back().is_some_and(|(_, r)| *r <= rate) {
            self.samples.pop_back();
        }
        self.samples.push_back((round, rate));
        while self
            .samples
            .front()
            .is_some_and(|(r, _)| *r + RATE_WINDOW_ROUNDS < round)
        {
            self.samples.pop_front();
        }
        self.max = self.samples.front().map_or(0.0, |(_, rate)| *rate);
    }
}

/// Estimates how far acknowledgements run ahead of the estimated rate (ACK aggregation).
#[derive(Debug)]
pub(super) struct AckAggregation {
    since_ns: u64,
    acked: u64,
    max_extra: [u64; 2],
    slot: usize,
    rounds: u32,
}

impl AckAggregation {
    pub(super) fn new(now_ns: u64) -> Self {
        Self {
            since_ns: now_ns,
            acked: 0,
            max_extra: [0; 2],
            slot: 0,
            rounds: 0,
        }
    }

    pub(super) fn restart(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
        self.acked = 0;
    }

    pub(super) fn update(
        &mut self,
        p: &AckProgress<'_>,
        rate: f64,
        round_start: bool,
        window: u64,
    ) {
        if p.ack_info.newly_delivered == 0 || p.ack_info.rate.is_none() {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= LUMP_WINDOW_ROUNDS {
                self.rounds = 0;
                self.slot = 1 - self.slot;
                self.max_extra[self.slot] = 0;
            }
        }
        let mut expected = (rate * (p.now_ns - self.since_ns) as f64 / 1e9) as u64;
        if self.acked <= expected {
            self.restart(p.now_ns);
            expected = 0;
        }
        self.acked += p.ack_info.newly_delivered;
        let extra = (self.acked - expected).min(window);
        self.max_extra[self.slot] = self.max_extra[self.slot].max(extra);
    }

    pub(super) fn extra(&self, rate: f64) -> u64 {
        self.max_extra[0]
            .max(self.max_extra[1])
            .min((rate * MAX_AGGREGATION_S) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_rate_expires_after_ten_rounds() {
        let mut filter = MaxFilter::default();
        filter.add(1, 50.0);
        filter.add(5, 20.0);
        filter.add(11, 10.0);
        assert_eq!(filter.max, 50.0);
        filter.add(12, 10.0);
        assert_eq!(filter.max, 20.0);
        filter.add(13, 70.0);
        assert_eq!(filter.max, 70.0);
    }
}
