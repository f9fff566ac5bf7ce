mod cases;
mod properties;
mod simulation;

use super::Setup;

const MS: u64 = 1_000_000;

fn setup(down_kbps: f64, up_kbps: f64, rtt_ms: f64) -> Setup {
    Setup {
        down_kbps: Some(down_kbps),
        up_kbps: Some(up_kbps),
        rtt_ns: (rtt_ms * 1e6) as u64,
        loss_share: 0.0,
        seed: 1,
    }
}

/// Typical lines: Slow 4G, 4G, cable, Slow 3G, fiber, EDGE.
const LINES: [(f64, f64, f64); 6] = [
    (1638.4, 750.0, 150.0),
    (9000.0, 9000.0, 170.0),
    (5000.0, 1000.0, 28.0),
    (400.0, 400.0, 400.0),
    (20_000.0, 5000.0, 4.0),
    (240.0, 200.0, 840.0),
];
