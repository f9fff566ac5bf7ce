//! Paint and document milestones of the page's frames.

use serde::Deserialize;

use crate::event::Event;
use crate::frames::{FrameArgs, Frames, frame_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Milestone {
    FirstPaint,
    FirstContentfulPaint,
    DomContentLoaded,
    Load,
}

impl Milestone {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "firstPaint" => Self::FirstPaint,
            "firstContentfulPaint" => Self::FirstContentfulPaint,
            "domContentLoadedEventEnd" => Self::DomContentLoaded,
            "loadEventEnd" => Self::Load,
            _ => return None,
        })
    }
}

/// What a frame said about its largest paint: a new candidate, or that the last one no longer holds.
#[derive(Debug, Clone, PartialEq)]
pub struct LargestPaint {
    pub ts_us: f64,
    pub frame: String,
    /// The candidate's painted area in square pixels; nothing for an invalidation.
    pub size_px2: Option<f64>,
}

/// All in order of time, from the whole trace: also from documents before the navigation that counts.
#[derive(Debug, Clone, Default)]
pub struct Paints {
    milestones: Vec<Mark>,
    pub largest: Vec<LargestPaint>,
    /// When the browser process dropped its own largest candidate, over all frames.
    pub largest_dropped_us: Vec<f64>,
}

#[derive(Debug, Clone)]
struct Mark {
    milestone: Milestone,
    ts_us: f64,
    frame: String,
}

#[derive(Deserialize)]
struct LargestArgs {
    data: Option<LargestData>,
}

#[derive(Deserialize)]
struct LargestData {
    size: Option<f64>,
}

impl Paints {
    pub(crate) fn see(&mut self, event: &Event) {
        match event.name.as_ref() {
            "largestContentfulPaint::Candidate" => {
                let size_px2 = event.args::<LargestArgs>().and_then(|args| args.data?.size);
                self.see_largest(event, size_px2);
            }
            "largestContentfulPaint::Invalidate" => self.see_largest(event, None),
            "NavStartToLargestContentfulPaint::Invalidate::AllFrames::UKM" => {
                self.largest_dropped_us.push(event.ts_us);
            }
            name => {
                if let Some(milestone) = Milestone::named(name)
                    && let Some(frame) = frame_of(event)
                {
                    self.milestones.push(Mark {
                        milestone,
                        ts_us: event.ts_us,
                        frame,
                    });
                }
            }
        }
    }

    fn see_largest(&mut self, event: &Event, size_px2: Option<f64>) {
        let Some(args) = event.args::<FrameArgs>() else {
            return;
        };
        if args.frame.as_deref().unwrap_or_default().is_empty() {
            return;
        }
        if let Some(frame) = args.id() {
            self.largest.push(LargestPaint {
                ts_us: event.ts_us,
                frame,
                size_px2,
            });
        }
    }

    pub(crate) fn of_page(mut self, frames: &Frames) -> Self {
        self.milestones.retain(|mark| frames.contains(&mark.frame));
        self.milestones.sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us));
        self.largest.retain(|paint| frames.contains(&paint.frame));
        self.largest.sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us));
        self.largest_dropped_us.sort_by(f64::total_cmp);
        self
    }

    /// When the frame first reached the milestone after a given time.
    pub fn first_after(&self, milestone: Milestone, frame: &str, after_us: f64) -> Option<f64> {
        self.milestones
            .iter()
            .find(|mark| {
                mark.milestone == milestone && mark.ts_us > after_us && mark.frame == frame
            })
            .map(|mark| mark.ts_us)
    }
}
