/// One direction of the access line: a drop-tail queue, then a fixed rate, then a fixed delay. This
/// is the order of the packet-level emulator that the model is compared with.
#[derive(Debug)]
pub(super) struct Line {
    /// Nanoseconds per byte; 0 means no limit.
    byte_ns: f64,
    delay_ns: u64,
    /// Time at which the last accepted byte has left the rate limiter. A float, so that rates that
    /// do not divide a second lose nothing over millions of packets.
    free_ns: f64,
    loss_share: f64,
    random: Random,
}

/// Size of the queue. 256 KiB is the default of the packet-level emulator and within the range of
/// home routers and base stations.
const QUEUE_BYTES: f64 = 256.0 * 1024.0;

impl Line {
    pub(super) fn new(kbps: Option<f64>, delay_ns: u64, loss_share: f64, seed: u64) -> Self {
        Self {
            byte_ns: kbps.map_or(0.0, |kbps| 8e6 / kbps),
            delay_ns,
            free_ns: 0.0,
            loss_share,
            random: Random(seed),
        }
    }

    /// Returns the arrival time of a packet sent now; `None` if it is dropped.
    pub(super) fn pass(&mut self, now_ns: u64, wire_bytes: u32) -> Option<u64> {
        let start_ns = self.free_ns.max(now_ns as f64);
        let backlog_ns = start_ns - now_ns as f64;
        if backlog_ns > QUEUE_BYTES * self.byte_ns && self.byte_ns > 0.0 {
            return None;
        }
        self.free_ns = start_ns + f64::from(wire_bytes) * self.byte_ns;
        // A packet lost in transit has used the line all the same.
        if self.loss_share > 0.0 && self.random.next_unit() < self.loss_share {
            return None;
        }
        Some(self.free_ns.round() as u64 + self.delay_ns)
    }
}

/// Reproducible random numbers: the same link has the same losses. SplitMix64 (Steele, Lea and
/// Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    /// Returns a uniform number in [0, 1).
    pub(super) fn next_unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_packet_takes_its_transmission_time_and_then_the_delay() {
        // 1,500 bytes at 12 Mbit/s are 1 ms.
        let mut line = Line::new(Some(12_000.0), 20 * MS, 0.0, 1);
        assert_eq!(line.pass(0, 1500), Some(21 * MS));
        assert_eq!(line.pass(0, 1500), Some(22 * MS));
        assert_eq!(line.pass(10 * MS, 750), Some(30 * MS + MS / 2));
    }

    #[test]
    fn a_line_without_a_rate_only_delays() {
        let mut line = Line::new(None, 5 * MS, 0.0, 1);
        for _ in 0..1000 {
            assert_eq!(line.pass(7 * MS, 1500), Some(12 * MS));
        }
    }

    #[test]
    fn the_queue_drops_what_does_not_fit() {
        let mut line = Line::new(Some(1000.0), 0, 0.0, 1);
        let accepted = (0..1000).filter(|_| line.pass(0, 1500).is_some()).count();
        // The packet that crosses the limit is still accepted.
        assert_eq!(accepted, 175);
        assert!(line.pass(12 * MS, 1500).is_some(), "one has left meanwhile");
    }

    #[test]
    fn losses_have_the_configured_rate_and_are_repeatable() {
        let lost = |seed| {
            let mut line = Line::new(None, 0, 0.1, seed);
            (0..10_000).filter(|_| line.pass(0, 1500).is_none()).count()
        };
        assert!((900..1100).contains(&lost(7)));
        assert_eq!(lost(7), lost(7));
    }
}
