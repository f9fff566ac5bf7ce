//! Screenshots of the page while it loads.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use serde::Deserialize;

use crate::event::TraceEvent;

/// A screenshot of the viewport, taken when a frame was drawn.
#[derive(Debug, Clone)]
pub struct TracedScreenshot {
    pub ts_us: f64,
    /// The image in Base64.
    encoded: String,
}

#[derive(Deserialize)]
struct ScreenshotArgs {
    snapshot: String,
}

impl TracedScreenshot {
    /// Reads the screenshot of an event. Recent Chromium writes instant events and older versions
    /// object snapshots, with the image in the same argument.
    pub(crate) fn of(event: &TraceEvent) -> Option<Self> {
        let args = event.args::<ScreenshotArgs>()?;
        Some(Self {
            ts_us: event.ts_us,
            encoded: args.snapshot,
        })
    }

    /// Returns the image as in the trace: a JPEG file in Base64.
    pub fn base64(&self) -> &str {
        &self.encoded
    }

    /// Decodes the image as a JPEG file; returns `None` if the trace has no valid Base64.
    pub fn jpeg(&self) -> Option<Vec<u8>> {
        STANDARD_PAD_INDIFFERENT.decode(&self.encoded).ok()
    }
}

/// The most screenshots that Chromium records in one trace (`kMaximumNumberOfScreenshots` in
/// content/browser/devtools/devtools_traceable_screenshot.h). A visit adds pictures of later
/// frames.
pub const MAX_SCREENSHOTS: usize = 450;

/// The largest width and height of a screenshot in a trace.
pub const MAX_SCREENSHOT_PX: u32 = 500;

/// The times of the screenshots and of the frames that the page drew.
#[derive(Debug, Default)]
pub(crate) struct FrameTimes {
    screenshots: usize,
    last_screenshot_us: f64,
    last_drawn_us: f64,
}

impl FrameTimes {
    /// Records that a frame was drawn.
    pub(crate) fn draw(&mut self, ts_us: f64) {
        self.last_drawn_us = self.last_drawn_us.max(ts_us);
    }

    /// Records a screenshot.
    pub(crate) fn screenshot(&mut self, ts_us: f64) {
        self.screenshots += 1;
        self.last_screenshot_us = self.last_screenshot_us.max(ts_us);
    }

    /// Returns the time of the last screenshot if Chromium recorded as many as it can and the page
    /// drew frames afterwards.
    pub(crate) fn screenshots_end_us(&self) -> Option<f64> {
        let are_missing =
            self.screenshots >= MAX_SCREENSHOTS && self.last_drawn_us > self.last_screenshot_us;
        are_missing.then_some(self.last_screenshot_us)
    }
}

/// Returns the screenshots since the time origin in order, without consecutive duplicates.
pub(crate) fn distinct_from(
    mut shots: Vec<TracedScreenshot>,
    time_origin_us: f64,
) -> Vec<TracedScreenshot> {
    shots.retain(|shot| shot.ts_us >= time_origin_us);
    shots.sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us));
    shots.dedup_by(|later, earlier| later.encoded == earlier.encoded);
    shots
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shot(ts_us: f64, picture: &str) -> TracedScreenshot {
        TracedScreenshot {
            ts_us,
            encoded: picture.to_owned(),
        }
    }

    #[test]
    fn screenshots_before_the_navigation_and_repeated_ones_are_omitted() {
        let shots = vec![
            shot(30.0, "B"),
            shot(10.0, "A"),
            shot(20.0, "A"),
            shot(25.0, "A"),
            shot(40.0, "A"),
        ];
        let times_us: Vec<f64> = distinct_from(shots, 20.0)
            .iter()
            .map(|shot| shot.ts_us)
            .collect();
        assert_eq!(times_us, [20.0, 30.0, 40.0]);
    }

    #[test]
    fn screenshots_are_missing_if_the_page_draws_after_the_last_possible_one() {
        let times = |screenshots: usize, drawn_us: f64| {
            let mut times = FrameTimes::default();
            (1..=screenshots).for_each(|at| times.screenshot(at as f64));
            times.draw(drawn_us);
            times.draw(0.0);
            times.screenshots_end_us()
        };
        assert_eq!(times(MAX_SCREENSHOTS, 451.0), Some(450.0));
        assert_eq!(times(MAX_SCREENSHOTS, 450.0), None);
        assert_eq!(times(MAX_SCREENSHOTS - 1, 1000.0), None);
    }

    #[test]
    fn invalid_base64_is_no_screenshot() {
        assert_eq!(shot(0.0, "not base64!").jpeg(), None);
    }

    proptest! {
        #[test]
        fn encoded_bytes_are_decoded_unchanged(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(shot(0.0, &STANDARD_PAD_INDIFFERENT.encode(&bytes)).jpeg(), Some(bytes));
        }
    }
}
