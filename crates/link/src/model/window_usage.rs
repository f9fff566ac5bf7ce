use super::scoreboard::Scoreboard;

/// Tracks how much of the window the application used in the last round trip: a window that was not
/// used is unproven and does not grow (RFC 7661).
#[derive(Debug, Default)]
pub(super) struct WindowUsage {
    pub(super) limited: bool,
    /// Maximum number of packets in flight. Slow start continues while at least half of the window
    /// was used.
    pub(super) max_in_flight: u64,
    until: u64,
}

impl WindowUsage {
    pub(super) fn stopped(&mut self, board: &Scoreboard, next: u64, limited: bool) {
        let out = board.in_flight();
        let round_over = board.acked_upto().unwrap_or(next) >= self.until;
        if round_over || limited || (!self.limited && out > self.max_in_flight) {
            self.limited = limited;
            self.max_in_flight = out;
            self.until = next;
        }
    }
}
