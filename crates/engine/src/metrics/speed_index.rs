//! Speed Index: the average time until the visible parts of the page are displayed.

use plumbline_trace::{Milestone, Trace};

use super::visual_progress::{ProgressFrame, visual_progress};
use super::{MetricError, lcp};

/// Computes the Speed Index from the trace's screenshots like speedline-core in its fast mode,
/// which Lighthouse uses. Lighthouse takes the last screenshot of a trace for the complete page
/// even if Chromium stopped recording before it was complete; here a page that was still loading
/// then has no Speed Index, unless the trace has pictures of later frames.
pub fn speed_index(trace: &Trace) -> Result<f64, MetricError> {
    if let Some(end_us) = trace.screenshots_end_us
        && is_loading_at(trace, end_us)
    {
        return Err(MetricError::ScreenshotsEnded);
    }
    let frames: Vec<ProgressFrame> = trace
        .screenshots
        .iter()
        .map(|shot| ProgressFrame::new(shot.ts_us / 1000.0, shot))
        .collect();
    if frames.is_empty() {
        return Err(MetricError::NoScreenshots);
    }
    let start_ms = trace.navigation.time_origin_us / 1000.0;
    let progress = visual_progress(start_ms, &frames)?;
    let si_ms = area_above(start_ms, &progress);
    if si_ms == 0.0 {
        return Err(MetricError::NoVisualChange);
    }
    Ok(si_ms)
}

/// Returns whether the load event or the largest content came later. A page that only animates
/// after both is complete.
fn is_loading_at(trace: &Trace, at_us: f64) -> bool {
    let origin_us = trace.navigation.time_origin_us;
    let has_loaded = trace
        .first_us(Milestone::Load)
        .is_some_and(|us| us <= at_us);
    let is_larger_later =
        lcp::largest_contentful_paint(trace).is_ok_and(|ms| origin_us + ms * 1000.0 > at_us);
    !has_loaded || is_larger_later
}

/// Returns the area above the curve of visual progress: everything until the first change, then the
/// missing part of each step. Each point is a time in milliseconds and the percentage displayed
/// from then on.
fn area_above(start_ms: f64, progress: &[(f64, f64)]) -> f64 {
    let changed = progress.iter().find(|(_, percent)| *percent > 0.0);
    let first_change_ms = changed.map_or(start_ms, |(at_ms, _)| *at_ms);
    progress
        .windows(2)
        .map(|step| (step[0], step[1].0))
        .filter(|(_, until_ms)| *until_ms > first_change_ms)
        .fold(
            first_change_ms - start_ms,
            |area_ms, ((at_ms, percent), until_ms)| {
                area_ms + (until_ms - at_ms) * (1.0 - percent / 100.0)
            },
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(progress: &[(f64, f64)], expected_ms: f64) {
        let si_ms = area_above(1000.0, progress);
        assert!(
            (si_ms - expected_ms).abs() < 1e-9,
            "{si_ms} is not {expected_ms}"
        );
    }

    #[test]
    fn a_page_that_appears_at_once_has_the_speed_index_of_that_moment() {
        check(&[(1000.0, 0.0), (1800.0, 100.0)], 800.0);
    }

    #[test]
    fn showing_half_a_page_half_a_second_earlier_saves_a_quarter_of_a_second() {
        check(&[(1000.0, 0.0), (1500.0, 50.0), (2000.0, 100.0)], 750.0);
    }

    #[test]
    fn progress_that_is_undone_counts_again() {
        check(
            &[
                (1000.0, 0.0),
                (1100.0, 100.0),
                (1200.0, 60.0),
                (1300.0, 100.0),
            ],
            140.0,
        );
    }

    #[test]
    fn a_page_that_never_changes_has_no_speed_index() {
        check(&[(1000.0, 100.0), (1800.0, 100.0)], 0.0);
    }
}
