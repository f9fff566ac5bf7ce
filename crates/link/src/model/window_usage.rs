use super::scoreboard::Scoreboard;

/// How much of the window the application made use of in the last round trip: a window that was
/// not used is not known to be good and does not grow (RFC 7661).
#[derive(Debug, Default)]
pub(super) struct WindowUsage {
    pub(super) limited: bool,
    /// Slow start may go on while at least half of the window was used.
    pub(super) most: u64,
    until: u64,
}

impl WindowUsage {
    pub(super) fn stopped(&mut self, board: &Scoreboard, next: u64, limited: bool) {
        let out = board.in_flight();
        let round_over = board.acked_upto().unwrap_or(next) >= self.until;
        if round_over || limited || (!self.limited && out > self.most) {
            self.limited = limited;
            self.most = out;
            self.until = next;
        }
    }
}
