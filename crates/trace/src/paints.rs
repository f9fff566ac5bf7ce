//! Paint and document milestones of the page's frames.

use serde::Deserialize;

use crate::event::{TraceEvent, WithData};
use crate::frames::{FrameArgs, Frames, frame_of};
use crate::navigation::Navigation;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Milestone {
    FirstPaint,
    FirstContentfulPaint,
    DomContentLoaded,
    Load,
}

impl Milestone {
    fn from_event_name(name: &str) -> Option<Self> {
        Some(match name {
            "firstPaint" => Self::FirstPaint,
            "firstContentfulPaint" => Self::FirstContentfulPaint,
            "domContentLoadedEventEnd" => Self::DomContentLoaded,
            "loadEventEnd" => Self::Load,
            _ => return None,
        })
    }
}

/// A report of a frame's largest paint: a new candidate, or the invalidation of the last one.
#[derive(Debug, Clone, PartialEq)]
pub struct LargestPaint {
    pub ts_us: f64,
    pub frame: String,
    /// Painted area of the candidate in square pixels; `None` for an invalidation.
    pub size_px2: Option<f64>,
    pub process_id: i64,
    /// Number of candidates so far, including this one; 0 for an invalidation.
    pub index: i64,
    pub node_id: Option<i64>,
    /// Navigation that it belongs to: the request id of its document.
    pub navigation_id: String,
    /// True if its `loading` attribute is `lazy`.
    pub is_lazy: bool,
}

/// An image that was a largest-paint candidate of its document.
#[derive(Debug, Clone, PartialEq)]
pub struct LargestImage {
    pub ts_us: f64,
    pub process_id: i64,
    pub node_id: i64,
    pub url: String,
}

/// Paint events in order of time from the whole trace, including documents before the measured
/// navigation.
#[derive(Debug, Clone, Default)]
pub struct Paints {
    milestones: Vec<Mark>,
    pub largest: Vec<LargestPaint>,
    /// Times at which the browser process invalidated its largest candidate over all frames.
    pub largest_dropped_us: Vec<f64>,
    pub largest_images: Vec<LargestImage>,
}

#[derive(Debug, Clone)]
struct Mark {
    milestone: Milestone,
    ts_us: f64,
    frame: String,
    /// The navigation that it belongs to: the request id of its document, if the event names it.
    navigation_id: Option<String>,
}

#[derive(Deserialize)]
struct MarkArgs {
    data: Option<MarkData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MarkData {
    navigation_id: Option<String>,
}

#[derive(Deserialize)]
struct LargestArgs {
    data: Option<LargestData>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LargestData {
    size: Option<f64>,
    candidate_index: i64,
    node_id: Option<i64>,
    navigation_id: String,
    loading_attr: Option<String>,
}

#[derive(Deserialize)]
struct ImageData {
    #[serde(rename = "DOMNodeId")]
    node_id: i64,
    #[serde(rename = "imageUrl", default)]
    url: String,
}

impl Paints {
    pub(crate) fn record(&mut self, event: &TraceEvent) {
        match event.name.as_ref() {
            "largestContentfulPaint::Candidate" => {
                let data = event.args::<LargestArgs>().and_then(|args| args.data);
                self.record_largest(event, data.unwrap_or_default());
            }
            "largestContentfulPaint::Invalidate" => {
                self.record_largest(event, LargestData::default());
            }
            "LargestImagePaint::Candidate" => {
                let args: Option<WithData<ImageData>> = event.args();
                self.largest_images.extend(args.map(|args| LargestImage {
                    ts_us: event.ts_us,
                    process_id: event.process,
                    node_id: args.data.node_id,
                    url: args.data.url,
                }));
            }
            "NavStartToLargestContentfulPaint::Invalidate::AllFrames::UKM" => {
                self.largest_dropped_us.push(event.ts_us);
            }
            name => {
                if let Some(milestone) = Milestone::from_event_name(name)
                    && let Some(frame) = frame_of(event)
                {
                    let data = event.args::<MarkArgs>().and_then(|args| args.data);
                    self.milestones.push(Mark {
                        milestone,
                        ts_us: event.ts_us,
                        frame,
                        navigation_id: data.and_then(|data| data.navigation_id),
                    });
                }
            }
        }
    }

    fn record_largest(&mut self, event: &TraceEvent, data: LargestData) {
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
                size_px2: data.size,
                process_id: event.process,
                index: data.candidate_index,
                node_id: data.node_id,
                navigation_id: data.navigation_id,
                is_lazy: data.loading_attr.as_deref() == Some("lazy"),
            });
        }
    }

    pub(crate) fn of_page(mut self, frames: &Frames) -> Self {
        self.milestones.retain(|mark| frames.contains(&mark.frame));
        self.milestones.sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us));
        self.largest.retain(|paint| frames.contains(&paint.frame));
        self.largest.sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us));
        self.largest_dropped_us.sort_by(f64::total_cmp);
        self.largest_images
            .sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us));
        self
    }

    /// Returns the time at which the frame first reached the milestone in a navigation. The paints
    /// of the document before it may follow its start, because the browser shows that document
    /// until the next one has arrived.
    pub(crate) fn first_of(
        &self,
        milestone: Milestone,
        frame: &str,
        navigation: &Navigation,
    ) -> Option<f64> {
        self.milestones
            .iter()
            .find(|mark| {
                mark.milestone == milestone
                    && mark.ts_us > navigation.time_origin_us
                    && mark.frame == frame
                    && navigation.includes(mark.navigation_id.as_deref())
            })
            .map(|mark| mark.ts_us)
    }
}
