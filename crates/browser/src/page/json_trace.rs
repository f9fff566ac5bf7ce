//! The trace of a visit in the form of JSON events.

use std::ops::Range;

use plumbline_trace::MAX_SCREENSHOTS;
use serde::Deserialize;
use serde_json::{Value, json};

use super::later_frames::LaterFrame;
use super::traced_nodes::TracedNodes;
use super::traced_places::{ScriptPlace, TracedPlaces};
use crate::protocol::{LimitExceeded, Reservation};

const BEGIN: &[u8] = br#"{"traceEvents":["#;
const END: &[u8] = b"]}";

/// Maximum size of a trace. Judging one needs up to five times as much memory as its text, which a
/// trace of nothing but short tasks does. The largest trace of an ordinary page seen has 8 MB.
pub(super) const MAX_BYTES: usize = 40_000_000;

/// A trace that grows by its events.
pub(super) struct JsonTrace {
    bytes: Vec<u8>,
    reservation: Reservation,
    nodes: TracedNodes,
    places: TracedPlaces,
    screenshots: Screenshots,
}

/// The events with screenshots.
#[derive(Default)]
struct Screenshots {
    count: usize,
    last_us: f64,
    /// The place of the last one in the trace.
    last: Range<usize>,
    /// The time at which the page last drew a frame.
    last_drawn_us: f64,
}

impl JsonTrace {
    pub(super) const TOO_LARGE: LimitExceeded = LimitExceeded::Trace {
        limit_mb: MAX_BYTES / 1_000_000,
    };

    pub(super) fn new(reservation: Reservation) -> Self {
        Self {
            bytes: BEGIN.to_vec(),
            reservation,
            nodes: TracedNodes::default(),
            places: TracedPlaces::default(),
            screenshots: Screenshots::default(),
        }
    }

    /// Adds the events of a trace in Perfetto's format.
    pub(super) fn add_packets(&mut self, packets: &[u8]) -> Result<(), LimitExceeded> {
        // This reserves address space, and no memory until it is written to. Growing would need the
        // old and the new memory at the same time.
        self.bytes.reserve_exact(MAX_BYTES + END.len());
        plumbline_perfetto::convert(packets, MAX_BYTES, |event| self.add_event(event))
    }

    fn add_event(&mut self, event: &str) -> Result<(), LimitExceeded> {
        if self.bytes.len() + event.len() > MAX_BYTES {
            return Err(Self::TOO_LARGE);
        }
        self.nodes.add_event(event);
        self.places.add_event(event);
        self.add(event)?;
        match FrameEvent::of(event) {
            Some(FrameEvent::Screenshot(ts_us)) => {
                self.screenshots.count += 1;
                if ts_us >= self.screenshots.last_us {
                    self.screenshots.last_us = ts_us;
                    self.screenshots.last = self.bytes.len() - event.len()..self.bytes.len();
                }
            }
            Some(FrameEvent::Draw(ts_us)) => {
                let last_us = &mut self.screenshots.last_drawn_us;
                *last_us = last_us.max(ts_us);
            }
            None => {}
        }
        Ok(())
    }

    /// Reserves memory for what will be added.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), LimitExceeded> {
        self.reservation.grow(bytes)
    }

    fn add(&mut self, event: &str) -> Result<(), LimitExceeded> {
        self.reserve(event.len())?;
        if self.bytes.len() > BEGIN.len() {
            self.bytes.extend_from_slice(b",\n");
        }
        self.bytes.extend_from_slice(event.as_bytes());
        Ok(())
    }

    /// Adds the pictures of frames after the last screenshot, in the form of a screenshot, if
    /// Chromium recorded as many screenshots as it can.
    pub(super) fn add_later_frames(
        &mut self,
        frames: Vec<LaterFrame>,
    ) -> Result<(), LimitExceeded> {
        if self.screenshots.count < MAX_SCREENSHOTS {
            return Ok(());
        }
        let last = &self.bytes[self.screenshots.last.clone()];
        let mut event: Value =
            serde_json::from_slice(last).map_err(|_| LimitExceeded::LostTrace)?;
        for frame in with_last_drawn(frames, self.screenshots.last_drawn_us) {
            if frame.ts_us > self.screenshots.last_us {
                event["ts"] = json!(frame.ts_us);
                event["args"]["snapshot"] = json!(frame.encoded);
                let text = event.to_string();
                // Without the last one, the trace is known to have no picture of the end.
                if self.bytes.len() + text.len() > MAX_BYTES {
                    break;
                }
                self.add(&text)?;
            }
        }
        Ok(())
    }

    /// Returns the ids of the elements that the trace refers to.
    pub(super) fn traced_nodes(&self) -> Vec<i64> {
        self.nodes.all()
    }

    /// Returns the places in scripts at which styles or layout were forced.
    pub(super) fn traced_places(&self) -> Vec<ScriptPlace> {
        self.places.all()
    }

    /// Returns the trace and leaves nothing of it.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.extend_from_slice(END);
        bytes
    }
}

/// Returns the pictures with another one for the last frame that the page drew, if they have none
/// of it: then the closing picture shows that frame.
fn with_last_drawn(mut frames: Vec<LaterFrame>, drawn_us: f64) -> Vec<LaterFrame> {
    if let [.., previous, closing] = &frames[..] {
        let is_missing = previous.ts_us < drawn_us && drawn_us < closing.ts_us;
        if is_missing && previous.encoded != closing.encoded {
            let drawn = LaterFrame {
                ts_us: drawn_us,
                ..closing.clone()
            };
            frames.insert(frames.len() - 1, drawn);
        }
    }
    frames
}

/// An event about a frame, with its time.
enum FrameEvent {
    Screenshot(f64),
    Draw(f64),
}

impl FrameEvent {
    fn of(event: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow)]
            name: std::borrow::Cow<'a, str>,
            ts: f64,
        }
        // Searching is cheaper than parsing.
        if !event.contains(r#""Screenshot""#) && !event.contains(r#""DrawFrame""#) {
            return None;
        }
        let event = serde_json::from_str::<Named<'_>>(event).ok()?;
        match event.name.as_ref() {
            "Screenshot" => Some(Self::Screenshot(event.ts)),
            "DrawFrame" => Some(Self::Draw(event.ts)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(budget: usize) -> JsonTrace {
        JsonTrace::new(Reservation::within(budget))
    }

    fn events(trace: &mut JsonTrace) -> Vec<Value> {
        let mut text: Value = serde_json::from_slice(&trace.take()).unwrap();
        text["traceEvents"].as_array_mut().unwrap().split_off(0)
    }

    #[test]
    fn a_trace_is_joined_from_its_events() {
        let mut trace = trace(1000);
        for name in ["thread_name", "RunTask"] {
            trace.add_event(&json!({"name": name}).to_string()).unwrap();
        }
        let expected = [json!({"name": "thread_name"}), json!({"name": "RunTask"})];
        assert_eq!(events(&mut trace), expected);
    }

    #[test]
    fn a_trace_that_cannot_be_converted_was_lost() {
        let result = trace(1000).add_packets(&[0xff]);
        assert_eq!(result, Err(LimitExceeded::LostTrace));
    }

    /// Returns the times of the screenshots in a trace with so many of them, one each millisecond,
    /// and with pictures of frames before and after the last one.
    fn screenshots_with_later_frames(count: usize) -> Vec<f64> {
        let mut trace = trace(1_000_000);
        for at in 1..=count {
            let screenshot = json!({"name": "Screenshot", "ph": "O", "pid": 3, "ts": at * 1000, "args": {"snapshot": "A"}});
            trace.add_event(&screenshot.to_string()).unwrap();
        }
        let frame = |after_us: usize| LaterFrame {
            ts_us: (count * 1000 + after_us) as f64 - 500.0,
            encoded: "B".to_owned(),
        };
        let frames = [0, 1000, 2000].map(frame).into();
        trace.add_later_frames(frames).unwrap();
        let events = events(&mut trace);
        assert!(events.iter().all(|event| event["pid"] == 3));
        let later = events
            .iter()
            .filter(|event| event["args"]["snapshot"] == "B");
        later.map(|event| event["ts"].as_f64().unwrap()).collect()
    }

    #[test]
    fn a_trace_with_all_possible_screenshots_gets_pictures_of_later_frames() {
        assert_eq!(
            screenshots_with_later_frames(MAX_SCREENSHOTS),
            [450_500.0, 451_500.0]
        );
        assert!(screenshots_with_later_frames(MAX_SCREENSHOTS - 1).is_empty());
    }

    /// Returns the pictures of a page that last drew at this time, in milliseconds: one of 500 ms
    /// and the closing one of 900 ms.
    fn pictures_ms(drawn_ms: usize, closing: &str) -> Vec<(f64, String)> {
        let mut trace = trace(1_000_000);
        for at in 1..=MAX_SCREENSHOTS {
            let screenshot =
                json!({"name": "Screenshot", "ts": at * 1000, "args": {"snapshot": "A"}});
            trace.add_event(&screenshot.to_string()).unwrap();
        }
        for ts_us in [drawn_ms * 1000, 0] {
            let draw = json!({"name": "DrawFrame", "ts": ts_us});
            trace.add_event(&draw.to_string()).unwrap();
        }
        let frame = |ts_us: f64, encoded: &str| LaterFrame {
            ts_us,
            encoded: encoded.to_owned(),
        };
        trace
            .add_later_frames(vec![frame(500_000.0, "B"), frame(900_000.0, closing)])
            .unwrap();
        let events = events(&mut trace).split_off(MAX_SCREENSHOTS + 2);
        let picture = |event: &Value| {
            let encoded = event["args"]["snapshot"].as_str().unwrap();
            (event["ts"].as_f64().unwrap() / 1000.0, encoded.to_owned())
        };
        events.iter().map(picture).collect()
    }

    #[test]
    fn a_changed_picture_of_the_end_is_that_of_the_last_frame_drawn() {
        let pictures = |all: &[(f64, &str)]| -> Vec<(f64, String)> {
            let owned = all.iter().map(|(ms, encoded)| (*ms, (*encoded).to_owned()));
            owned.collect()
        };
        assert_eq!(
            pictures_ms(600, "C"),
            pictures(&[(500.0, "B"), (600.0, "C"), (900.0, "C")])
        );
        for (drawn_ms, closing) in [(600, "B"), (500, "C")] {
            assert_eq!(
                pictures_ms(drawn_ms, closing),
                pictures(&[(500.0, "B"), (900.0, closing)])
            );
        }
    }

    #[test]
    fn events_beyond_the_budget_are_not_added() {
        let mut trace = trace(100);
        let event = json!({"name": "x".repeat(60)}).to_string();
        assert_eq!(trace.add_event(&event), Ok(()));
        assert_eq!(trace.add_event(&event), Err(LimitExceeded::Held));
        assert!(trace.take().len() < 150);
    }
}
