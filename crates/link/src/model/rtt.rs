/// A sender's round-trip estimate, and the timeout derived from it (RFC 6298 with Linux's bounds).
#[derive(Debug)]
pub(super) struct RoundTrips {
    pub(super) smoothed_ns: u64,
    pub(super) min_ns: u64,
    variation_ns: u64,
}

/// Linux's minimum margin over the smoothed round trip (TCP_RTO_MIN).
const MIN_MARGIN_NS: u64 = 200_000_000;
/// Maximum timeout (TCP_RTO_MAX).
pub(super) const MAX_TIMEOUT_NS: u64 = 120_000_000_000;

impl RoundTrips {
    pub(super) fn new(first_ns: u64) -> Self {
        Self {
            smoothed_ns: first_ns,
            min_ns: first_ns,
            variation_ns: first_ns / 2,
        }
    }

    pub(super) fn add(&mut self, rtt_ns: u64) {
        let off_ns = rtt_ns.abs_diff(self.smoothed_ns);
        self.variation_ns = (self.variation_ns * 3 + off_ns) / 4;
        self.smoothed_ns = (self.smoothed_ns * 7 + rtt_ns) / 8;
        self.min_ns = self.min_ns.min(rtt_ns);
    }

    pub(super) fn timeout_ns(&self) -> u64 {
        let margin_ns = (4 * self.variation_ns).max(MIN_MARGIN_NS);
        (self.smoothed_ns + margin_ns).min(MAX_TIMEOUT_NS)
    }
}
