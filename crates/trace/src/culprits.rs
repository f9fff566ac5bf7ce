//! What happened around layout shifts and may explain them.

use serde::Deserialize;

use crate::event::Event;
use crate::frames::frame_of;
use crate::navigation::Thread;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    pub start_us: f64,
    pub dur_us: f64,
}

impl Span {
    pub fn end_us(&self) -> f64 {
        self.start_us + self.dur_us
    }
}

/// Of all frames and processes but for nodes, each list in order of time.
#[derive(Debug, Clone, Default)]
pub struct Culprits {
    /// Layout shifts are found while the page is prepared for painting.
    pub pre_paints: Vec<Span>,
    /// When an image without a size of its own was laid out, and its node, in the page's processes: others number theirs
    /// alike.
    pub unsized_images: Vec<(f64, i64)>,
    /// The same of all processes, with each.
    unsized_seen: Vec<(i64, f64, i64)>,
    pub frames_made: Vec<Span>,
    /// When a document began to load, and in which frame.
    pub documents_begun: Vec<(f64, String)>,
}

#[derive(Deserialize)]
struct NodeArgs {
    data: NodeData,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeData {
    node_id: i64,
}

impl Culprits {
    pub(crate) fn see(&mut self, event: &Event) {
        let span = Span {
            start_us: event.ts_us,
            dur_us: event.dur_us.unwrap_or(0.0),
        };
        match event.name.as_ref() {
            "PrePaint" => self.pre_paints.push(span),
            "LayoutImageUnsized" => {
                let args: Option<NodeArgs> = event.args();
                let seen = args.map(|args| (event.process, event.ts_us, args.data.node_id));
                self.unsized_seen.extend(seen);
            }
            "RenderFrameImpl::createChildFrame" => self.frames_made.push(span),
            "domLoading" => self
                .documents_begun
                .extend(frame_of(event).map(|frame| (event.ts_us, frame))),
            _ => {}
        }
    }

    pub(crate) fn of_page(mut self, threads: &[Thread]) -> Self {
        let is_of_page = |process: i64| threads.iter().any(|thread| thread.process_id == process);
        self.unsized_images = std::mem::take(&mut self.unsized_seen)
            .into_iter()
            .filter(|(process, _, _)| is_of_page(*process))
            .map(|(_, ts_us, node)| (ts_us, node))
            .collect();
        let by_start = |a: &Span, b: &Span| a.start_us.total_cmp(&b.start_us);
        self.pre_paints.sort_by(by_start);
        self.frames_made.sort_by(by_start);
        self.unsized_images.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.documents_begun.sort_by(|a, b| a.0.total_cmp(&b.0));
        self
    }
}
