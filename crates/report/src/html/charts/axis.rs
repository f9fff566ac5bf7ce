use crate::html::figures::tick;

/// A horizontal time axis of 1000 units.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// The time at the right end.
    pub end_ms: f64,
}

/// The length of the axis in units.
pub const WIDTH: f64 = 1000.0;

impl Axis {
    /// Returns the position of a time.
    pub fn x(&self, ms: f64) -> f64 {
        if self.end_ms <= 0.0 {
            return 0.0;
        }
        (ms / self.end_ms * WIDTH).clamp(0.0, WIDTH)
    }

    /// Returns the position and label of at most eight round times.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        const STEPS_MS: [f64; 10] = [
            100.0, 200.0, 250.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0, 60_000.0,
        ];
        let fits = |step: &f64| self.end_ms / step <= 8.0;
        let step_ms = STEPS_MS
            .into_iter()
            .find(fits)
            .unwrap_or(self.end_ms.max(1.0));
        let mut ticks = Vec::new();
        let mut at_ms = 0.0;
        while at_ms < self.end_ms && ticks.len() <= 8 {
            ticks.push((self.x(at_ms), tick(at_ms)));
            at_ms += step_ms;
        }
        ticks
    }
}
