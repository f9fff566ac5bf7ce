//! Layout shifts of the page's frames.

use serde::Deserialize;

use crate::event::TraceEvent;
use crate::frames::{Frames, frame_of};
use crate::navigation::Thread;

#[derive(Debug, Clone, PartialEq)]
pub struct LayoutShift {
    pub ts_us: f64,
    pub frame: String,
    pub in_main_frame: bool,
    /// Score weighted by the frame's share of the page; `None` in Chromium before 90.
    pub weighted_score: Option<f64>,
    pub had_recent_input: bool,
}

/// A node that a shift moved: `[left, top, width, height]` before and after, in physical pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct MovedNode {
    pub node_id: i64,
    pub before: [f64; 4],
    pub after: [f64; 4],
}

#[derive(Debug, Clone, Default)]
pub struct Shifts {
    /// Shifts in order of time, from the whole trace.
    pub all: Vec<LayoutShift>,
    /// Nodes moved by each shift, in the same order. Empty for frames in other processes: every
    /// process numbers its nodes independently, so their ids would be confused with the page's.
    pub moved: Vec<Vec<MovedNode>>,
    /// Shifts of all frames, each with its process and moved nodes.
    shifts: Vec<(i64, LayoutShift, Vec<MovedNode>)>,
    viewports: Vec<(f64, String)>,
    /// Time at which the main frame's viewport was first set. Chromium treats this as an
    /// interaction and marks the shifts after it as expected by the user.
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
    #[serde(default)]
    impacted_nodes: Vec<ImpactedNode>,
}

#[derive(Deserialize)]
struct ImpactedNode {
    #[serde(default)]
    node_id: i64,
    old_rect: Option<[f64; 4]>,
    new_rect: Option<[f64; 4]>,
}

impl ImpactedNode {
    fn moved(self) -> Option<MovedNode> {
        let (before, after) = self.old_rect.zip(self.new_rect)?;
        (self.node_id != 0).then_some(MovedNode {
            node_id: self.node_id,
            before,
            after,
        })
    }
}

impl Shifts {
    pub(crate) fn record(&mut self, event: &TraceEvent) {
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
                let shift = LayoutShift {
                    ts_us: event.ts_us,
                    frame,
                    in_main_frame,
                    weighted_score: data.weighted_score_delta,
                    had_recent_input: data.had_recent_input,
                };
                let moved = data.impacted_nodes.into_iter();
                let moved = moved.filter_map(ImpactedNode::moved).collect();
                self.shifts.push((event.process, shift, moved));
            }
            _ => {}
        }
    }

    pub(crate) fn of_page(mut self, frames: &Frames, threads: &[Thread]) -> Self {
        let mut shifts = std::mem::take(&mut self.shifts);
        shifts.retain(|(_, shift, _)| frames.contains(&shift.frame));
        shifts.sort_by(|(_, a, _), (_, b, _)| a.ts_us.total_cmp(&b.ts_us));
        for (process, _, moved) in &mut shifts {
            if !threads.iter().any(|thread| thread.process_id == *process) {
                moved.clear();
            }
        }
        let shifts = shifts.into_iter().map(|(_, shift, moved)| (shift, moved));
        (self.all, self.moved) = shifts.unzip();
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
