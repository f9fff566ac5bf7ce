//! Cumulative Layout Shift: the worst session window of unexpected shifts, over all frames of the
//! page.

use plumbline_trace::{LayoutShift, Trace};

use super::MetricError;

/// Chromium treats setting the viewport as input for this long (Chromium bug 1302667).
const VIEWPORT_INPUT_MS: f64 = 500.0;
/// A session window ends after a second without a shift, and lasts at most five seconds
/// (web.dev/articles/cls).
const WINDOW_GAP_US: f64 = 1_000_000.0;
const WINDOW_LIMIT_US: f64 = 5_000_000.0;

pub fn cumulative_layout_shift(trace: &Trace) -> Result<f64, MetricError> {
    let viewport_us = trace
        .shifts
        .first_viewport_us
        .unwrap_or(trace.navigation.time_origin_us);
    worst_window(&unexpected(&trace.shifts.all, viewport_us))
}

/// Returns the shifts without recent input. Emulating a device looks like input too: until the
/// first shift without recent input, shifts soon after the viewport was set count although they
/// have it (Lighthouse, core/computed/metrics/cumulative-layout-shift.js).
fn unexpected(shifts: &[LayoutShift], viewport_us: f64) -> Vec<&LayoutShift> {
    let mut trust_input_flag = false;
    let mut counted = Vec::new();
    for shift in shifts {
        if shift.had_recent_input {
            let since_viewport_ms = (shift.ts_us - viewport_us) / 1000.0;
            if trust_input_flag || since_viewport_ms > VIEWPORT_INPUT_MS {
                continue;
            }
        } else {
            trust_input_flag = true;
        }
        counted.push(shift);
    }
    counted
}

fn worst_window(shifts: &[&LayoutShift]) -> Result<f64, MetricError> {
    let mut worst = 0.0_f64;
    let mut score = 0.0;
    let mut first_us = f64::NEG_INFINITY;
    let mut last_us = f64::NEG_INFINITY;
    for shift in shifts {
        if shift.ts_us - first_us > WINDOW_LIMIT_US || shift.ts_us - last_us > WINDOW_GAP_US {
            first_us = shift.ts_us;
            score = 0.0;
        }
        last_us = shift.ts_us;
        score += shift.weighted_score.ok_or(MetricError::UnweightedShifts)?;
        worst = worst.max(score);
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(at_ms: f64, score: f64, had_recent_input: bool) -> LayoutShift {
        LayoutShift {
            ts_us: at_ms * 1000.0,
            frame: "main".to_owned(),
            in_main_frame: true,
            weighted_score: Some(score),
            had_recent_input,
        }
    }

    fn check(shifts: &[LayoutShift], viewport_ms: f64, expected: f64) {
        let counted = unexpected(shifts, viewport_ms * 1000.0);
        let cls = worst_window(&counted).expect("all shifts are weighted");
        assert!((cls - expected).abs() < 1e-9, "{cls} is not {expected}");
    }

    #[test]
    fn a_page_without_shifts_has_a_shift_of_zero() {
        check(&[], 0.0, 0.0);
    }

    #[test]
    fn a_pause_of_more_than_a_second_starts_a_new_window() {
        let shifts = [(100.0, 0.1), (1100.0, 0.2), (2101.0, 0.25)];
        check(&shifts.map(|(at, score)| shift(at, score, false)), 0.0, 0.3);
    }

    #[test]
    fn a_window_lasts_five_seconds_at_most() {
        let every_900_ms: Vec<_> = (0..8)
            .map(|i| shift(f64::from(i) * 900.0, 0.1, false))
            .collect();
        check(&every_900_ms, 0.0, 0.6);
    }

    #[test]
    fn a_shift_after_input_does_not_count() {
        let shifts = [shift(900.0, 0.1, false), shift(1000.0, 0.5, true)];
        check(&shifts, 0.0, 0.1);
        check(&[shift(1000.0, 0.5, true)], 0.0, 0.0);
    }

    #[test]
    fn the_input_flag_is_ignored_right_after_the_viewport_was_set() {
        let shifts = [shift(400.0, 0.2, true), shift(500.0, 0.1, true)];
        check(&shifts, 0.0, 0.3);
        check(&[shift(1400.0, 0.2, true)], 1000.0, 0.2);
    }

    #[test]
    fn after_one_shift_without_the_input_flag_it_is_used() {
        let shifts = [shift(100.0, 0.1, false), shift(200.0, 0.2, true)];
        check(&shifts, 0.0, 0.1);
    }

    #[test]
    fn an_old_trace_without_weights_gives_no_value() {
        let old = LayoutShift {
            weighted_score: None,
            ..shift(0.0, 0.0, false)
        };
        assert_eq!(worst_window(&[&old]), Err(MetricError::UnweightedShifts));
    }
}
