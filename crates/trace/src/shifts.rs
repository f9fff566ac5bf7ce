//! Layout shifts of the page's frames.

use serde::Deserialize;

use crate::event::Event;
use crate::frames::{Frames, frame_of};

#[derive(Debug, Clone, PartialEq)]
pub struct LayoutShift {
    pub ts_us: f64,
    pub frame: String,
    pub in_main_frame: bool,
    /// The shift's score, weighted by the frame's share of the page. Chromium before 90 did not say.
    pub weighted_score: Option<f64>,
    pub had_recent_input: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Shifts {
    /// In order of time, from the whole trace.
    pub all: Vec<LayoutShift>,
    viewports: Vec<(f64, String)>,
    /// When the main frame's viewport was first set. Chromium takes this for an interaction and marks the
    /// shifts after it as expected by the user.
    pub first_viewport_us: Option<f64>,
}

#[derive(Deserialize)]
struct ShiftArgs {
    data: Option<ShiftData>,
}

#[derive(Deserialize)]
struct ShiftData {
    is_main_frame: Option<bool>,
    weighted_score_delta: Option<f64>,
    #[serde(default)]
    had_recent_input: bool,
}

impl Shifts {
    pub(crate) fn see(&mut self, event: &Event) {
        match event.name.as_ref() {
            "viewport" => self
                .viewports
                .extend(frame_of(event).map(|frame| (event.ts_us, frame))),
            "LayoutShift" => {
                let data = event.args::<ShiftArgs>().and_then(|args| args.data);
                let Some((data, frame)) = data.zip(frame_of(event)) else {
                    return;
                };
                let Some(in_main_frame) = data.is_main_frame else {
                    return;
                };
                self.all.push(LayoutShift {
                    ts_us: event.ts_us,
                    frame,
                    in_main_frame,
                    weighted_score: data.weighted_score_delta,
                    had_recent_input: data.had_recent_input,
                });
            }
            _ => {}
        }
    }

    pub(crate) fn of_page(mut self, frames: &Frames) -> Self {
        self.all.retain(|shift| frames.contains(&shift.frame));
        self.all.sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us));
        self.first_viewport_us = self
            .viewports
            .iter()
            .filter(|(_, frame)| *frame == frames.main_id)
            .map(|(ts_us, _)| *ts_us)
            .min_by(f64::total_cmp);
        self.viewports = Vec::new();
        self
    }
}
