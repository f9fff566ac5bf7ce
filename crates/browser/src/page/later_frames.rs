//! Pictures of frames after those in Chromium's trace, which ends after
//! [`MAX_SCREENSHOTS`](plumbline_trace::MAX_SCREENSHOTS) of them.

use std::time::{Duration, Instant};

use plumbline_clock::PageTime;
use plumbline_trace::MAX_SCREENSHOT_PX;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Page, VisitError};
use crate::protocol::ProtocolEvent;

/// The time in which a page that draws all the time, 60 times a second, does not reach the most
/// screenshots of a trace.
const DELAY: Duration = Duration::from_secs(7);
/// The minimum time between two pictures at first.
const MIN_INTERVAL_US: f64 = 100_000.0;
/// The most pictures that are kept. When there are more, every second one is dropped, and the
/// interval is doubled.
const MAX_FRAMES: usize = 100;
/// The JPEG quality of a picture: that of screenshots in a trace.
const QUALITY: u32 = 80;
/// The most time that a visit waits for the picture of its end.
const CLOSING_DEADLINE: Duration = Duration::from_secs(3);

/// Returns the parameters of `Page.startScreencast`.
fn start_params() -> Value {
    json!({
        "format": "jpeg",
        "quality": QUALITY,
        "maxWidth": MAX_SCREENSHOT_PX,
        "maxHeight": MAX_SCREENSHOT_PX,
    })
}

/// A picture of a frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LaterFrame {
    /// The time on the clock of the trace.
    pub ts_us: f64,
    /// A JPEG file in Base64.
    pub encoded: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScreencastFrame {
    data: String,
    session_id: i64,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    /// Wall time in seconds.
    #[serde(default)]
    timestamp: Option<f64>,
}

/// Collects pictures of frames from the time at which the trace may have no more of them.
#[derive(Debug)]
pub(crate) struct LaterFrames {
    /// The time to begin; `None` if it has passed, or if no pictures are wanted.
    due: Option<PageTime>,
    is_collecting: bool,
    /// The time of the visit's end on the clock of the trace, if that has come.
    end_us: Option<f64>,
    /// The difference between wall time and the clock of the trace.
    wall_offset_us: Option<f64>,
    interval_us: f64,
    kept: Vec<LaterFrame>,
    /// The last frame, if it is not kept because it followed another one too soon.
    last: Option<LaterFrame>,
    /// The first picture after the end.
    closing: Option<LaterFrame>,
}

impl LaterFrames {
    pub(super) fn none() -> Self {
        Self {
            due: None,
            is_collecting: false,
            end_us: None,
            wall_offset_us: None,
            interval_us: MIN_INTERVAL_US,
            kept: Vec::new(),
            last: None,
            closing: None,
        }
    }

    /// Records that a trace with screenshots was started.
    pub(super) fn trace_started(&mut self, now: PageTime) {
        self.due = Some(now + DELAY);
    }

    /// Returns the time at which collecting has to begin.
    pub(crate) fn due(&self) -> Option<PageTime> {
        self.due
    }

    /// Records that collecting has begun.
    pub(super) fn begin(&mut self) {
        self.due = None;
        self.is_collecting = true;
    }

    /// Records the end of the visit. The next picture is the closing one.
    fn end(&mut self, now: PageTime) {
        self.end_us = Some(now.as_nanos() as f64 / 1000.0);
    }

    /// Records the same moment on both clocks, in seconds.
    pub(super) fn set_clocks(&mut self, wall_s: f64, monotonic_s: f64) {
        self.wall_offset_us = Some((wall_s - monotonic_s) * 1e6);
    }

    /// Adds the picture of an event. Returns the id with which its receipt is to be acknowledged.
    pub(super) fn add(&mut self, event: &ProtocolEvent) -> Option<i64> {
        let frame = event.read::<ScreencastFrame>()?;
        if let (Some(wall_s), Some(offset_us)) = (frame.metadata.timestamp, self.wall_offset_us) {
            self.add_frame(LaterFrame {
                ts_us: wall_s * 1e6 - offset_us,
                encoded: frame.data,
            });
        }
        Some(frame.session_id)
    }

    fn add_frame(&mut self, frame: LaterFrame) {
        if self.end_us.is_some_and(|end_us| frame.ts_us >= end_us) {
            self.closing.get_or_insert(frame);
            return;
        }
        let previous = self.kept.last();
        if previous.is_some_and(|previous| frame.ts_us < previous.ts_us + self.interval_us) {
            self.last = Some(frame);
            return;
        }
        self.last = None;
        self.kept.push(frame);
        if self.kept.len() > MAX_FRAMES {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.interval_us *= 2.0;
        }
    }

    /// Returns the pictures in order, and leaves none. The last one has the time of the end. It is
    /// that of the last frame if no picture was taken at the end.
    fn take(&mut self) -> Vec<LaterFrame> {
        let mut frames = std::mem::take(&mut self.kept);
        frames.extend(self.last.take());
        let closing = self.closing.take().or_else(|| frames.last().cloned());
        if let (Some(mut closing), Some(end_us)) = (closing, self.end_us) {
            let last_us = frames.last().map_or(end_us, |last| last.ts_us);
            closing.ts_us = end_us.max(last_us);
            frames.push(closing);
        }
        frames
    }
}

impl Page<'_> {
    pub(super) fn start_screencast(&self) {
        let caller = self.caller();
        caller.send("Page.startScreencast", start_params());
    }

    /// Ends collecting, and returns the pictures, with one of the end. Chromium drops the picture
    /// of a frame while others are not acknowledged, and takes no other one before the page
    /// changes again; but a new screencast begins with a picture.
    pub(super) async fn take_later_frames(&mut self) -> Result<Vec<LaterFrame>, VisitError> {
        if !self.later_frames.is_collecting {
            return Ok(Vec::new());
        }
        self.caller().send("Page.stopScreencast", json!({}));
        self.later_frames.end(self.clock.now());
        self.start_screencast();
        let deadline = Instant::now() + CLOSING_DEADLINE;
        while self.later_frames.closing.is_none() && self.next_event(deadline).await? {}
        self.caller().send("Page.stopScreencast", json!({}));
        Ok(self.later_frames.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(wall_s: f64, picture: &str) -> ProtocolEvent {
        let params = json!({"data": picture, "sessionId": 7, "metadata": {"timestamp": wall_s, "pageScaleFactor": 1}});
        ProtocolEvent::for_test("Page.screencastFrame", &params)
    }

    fn started() -> LaterFrames {
        let mut frames = LaterFrames::none();
        frames.set_clocks(1000.0, 10.0);
        frames
    }

    fn times_ms(frames: &[LaterFrame]) -> Vec<f64> {
        let to_ms = |frame: &LaterFrame| (frame.ts_us / 1000.0).round();
        frames.iter().map(to_ms).collect()
    }

    #[test]
    fn pictures_have_the_time_of_the_trace_and_the_last_one_is_that_of_the_end() {
        let mut frames = started();
        for (wall_s, picture) in [(1000.5, "A"), (1000.55, "B"), (1000.6, "C"), (1000.65, "D")] {
            assert_eq!(frames.add(&event(wall_s, picture)), Some(7));
        }
        frames.end(PageTime::from_nanos(11_000_000_000));
        let taken = frames.take();
        assert_eq!(times_ms(&taken), [10_500.0, 10_600.0, 10_650.0, 11_000.0]);
        assert_eq!(taken[3].encoded, "D");
        assert!(frames.take().is_empty());
    }

    #[test]
    fn the_first_picture_after_the_end_is_the_closing_one() {
        let mut frames = started();
        frames.add(&event(1000.5, "A"));
        frames.end(PageTime::from_nanos(11_000_000_000));
        for (wall_s, picture) in [(1000.9, "B"), (1001.2, "C"), (1001.4, "D")] {
            frames.add(&event(wall_s, picture));
        }
        let taken = frames.take();
        assert_eq!(times_ms(&taken), [10_500.0, 10_900.0, 11_000.0]);
        assert_eq!(taken[2].encoded, "C");
    }

    #[test]
    fn a_long_animation_has_few_pictures_from_its_begin_to_its_end() {
        let mut frames = started();
        for at in 0..6000 {
            frames.add(&event(1000.0 + f64::from(at) / 60.0, "A"));
        }
        frames.end(PageTime::from_nanos(110_000_000_000));
        let taken = frames.take();
        assert!(
            (50..=MAX_FRAMES + 2).contains(&taken.len()),
            "{}",
            taken.len()
        );
        let times_ms = times_ms(&taken);
        assert_eq!(
            (times_ms[0], times_ms[times_ms.len() - 1]),
            (10_000.0, 110_000.0)
        );
        assert!(times_ms.windows(2).all(|pair| pair[1] - pair[0] < 3300.0));
    }

    #[test]
    fn pictures_without_a_known_time_are_acknowledged_and_not_kept() {
        let mut frames = LaterFrames::none();
        assert_eq!(frames.add(&event(1000.0, "A")), Some(7));
        assert!(frames.take().is_empty());
    }
}
