/// Spaces packets at the pacing rate of congestion control.
#[derive(Debug, Default)]
pub(super) struct PacketPacer {
    /// Time at which the next packet may be sent.
    pub(super) next_ns: u64,
    burst_at_ns: u64,
    burst_left: u64,
    packets: u64,
}

/// Linux does not pace the first ten packets of a connection.
const UNPACED_PACKETS: u64 = 10;

impl PacketPacer {
    pub(super) fn allows(&mut self, now_ns: u64, burst: u64) -> bool {
        if self.packets < UNPACED_PACKETS {
            return true;
        }
        if self.burst_at_ns != now_ns || self.burst_left == 0 {
            if self.next_ns > now_ns {
                return false;
            }
            self.burst_at_ns = now_ns;
            self.burst_left = burst;
        }
        true
    }

    pub(super) fn charge(&mut self, now_ns: u64, payload_bytes: u32, rate: f64) {
        self.packets += 1;
        self.burst_left = self.burst_left.saturating_sub(1);
        if self.packets <= UNPACED_PACKETS {
            return;
        }
        let cost_ns = (f64::from(payload_bytes) / rate * 1e9) as u64;
        // A packet that was sent late gets up to half of its delay back.
        let late_ns = now_ns.saturating_sub(self.next_ns).min(cost_ns / 2);
        self.next_ns = self.next_ns.max(now_ns) + cost_ns - late_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the send times of packets of 1,000 bytes at a megabyte per second, polled every 100
    /// µs.
    fn departures_us(burst: u64) -> Vec<u64> {
        let mut pacer = PacketPacer::default();
        let mut departures_us = Vec::new();
        for at_us in (0..6000).step_by(100) {
            while departures_us.len() < 16 && pacer.allows(at_us * 1000, burst) {
                pacer.charge(at_us * 1000, 1000, 1e6);
                departures_us.push(at_us);
            }
        }
        departures_us
    }

    #[test]
    fn the_first_ten_packets_are_not_paced_and_the_rest_are() {
        let mut expected = vec![0; 11];
        expected.extend([1000, 2000, 3000, 4000, 5000]);
        assert_eq!(departures_us(1), expected);
    }

    #[test]
    fn a_burst_is_sent_together_and_delays_the_next() {
        let mut expected = vec![0; 12];
        expected.extend([2000, 2000, 4000, 4000]);
        assert_eq!(departures_us(2), expected);
    }
}
