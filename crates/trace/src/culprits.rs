//! Events around layout shifts that may explain them.

use serde::Deserialize;

use crate::event::TraceEvent;
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

/// Possible causes of layout shifts, each list in order of time. All frames and processes are
/// included, except in lists with node ids.
#[derive(Debug, Clone, Default)]
pub struct Culprits {
    /// Pre-paint phases, in which layout shifts are detected.
    pub pre_paints: Vec<Span>,
    /// Layouts of images without explicit dimensions: time and node id. Only those of the page's
    /// processes, because every process numbers its nodes independently.
    pub unsized_images: Vec<(f64, i64)>,
    /// Layouts of images without explicit dimensions in all processes: process, time and node id.
    unsized_in_any_process: Vec<(i64, f64, i64)>,
    pub frames_made: Vec<Span>,
    /// Starts of document loads: time and frame id.
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
    pub(crate) fn record(&mut self, event: &TraceEvent) {
        let span = Span {
            start_us: event.ts_us,
            dur_us: event.dur_us.unwrap_or(0.0),
        };
        match event.name.as_ref() {
            "PrePaint" => self.pre_paints.push(span),
            "LayoutImageUnsized" => {
                let args: Option<NodeArgs> = event.args();
                let image = args.map(|args| (event.process, event.ts_us, args.data.node_id));
                self.unsized_in_any_process.extend(image);
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
        self.unsized_images = std::mem::take(&mut self.unsized_in_any_process)
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
