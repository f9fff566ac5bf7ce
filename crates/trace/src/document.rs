//! Facts about documents: their size, their viewport, and large updates.

use serde::Deserialize;

use crate::event::TraceEvent;
use crate::frames::Frames;
use crate::navigation::Thread;

/// Number of elements of a document, and its deepest and widest element.
#[derive(Debug, Clone, PartialEq)]
pub struct DomSize {
    pub ts_us: f64,
    pub process_id: i64,
    pub frame: String,
    pub elements: f64,
    pub deepest: Option<(i64, f64)>,
    /// The node id of the element with the most children, and their number.
    pub widest: Option<(i64, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateKind {
    Layout,
    Style,
}

/// A style recalculation or layout that took at least `LARGE_US`.
#[derive(Debug, Clone, PartialEq)]
pub struct LargeUpdate {
    pub kind: UpdateKind,
    pub thread: Thread,
    pub start_us: f64,
    pub dur_us: f64,
    /// Number of boxes laid out, or of elements styled.
    pub count: f64,
}

/// Minimum duration of a large update.
const LARGE_US: f64 = 10_000.0;

#[derive(Debug, Clone, Default)]
pub struct Documents {
    pub sizes: Vec<DomSize>,
    pub large_updates: Vec<LargeUpdate>,
    /// `<meta name=viewport>` elements of the main frame: time of parsing and node id.
    pub viewport_metas: Vec<(f64, i64)>,
    /// Commits of the main frame to the compositor: time, and whether the layout was optimised for
    /// mobile.
    pub commits: Vec<(f64, bool)>,
    metas: Vec<(f64, String, i64)>,
    all_commits: Vec<(f64, String, bool)>,
}

#[derive(Deserialize)]
struct InData<T> {
    data: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatsData {
    frame: String,
    total_elements: f64,
    max_children: Option<MaxChildren>,
    max_depth: Option<MaxDepth>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MaxChildren {
    node_id: i64,
    num_children: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MaxDepth {
    node_id: i64,
    depth: f64,
}

#[derive(Deserialize)]
struct MetaData {
    frame: String,
    node_id: i64,
}

#[derive(Deserialize)]
struct CommitArgs {
    frame: String,
    #[serde(default)]
    is_mobile_optimized: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayoutArgs {
    begin_data: LayoutData,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LayoutData {
    dirty_objects: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StyleArgs {
    element_count: f64,
}

impl Documents {
    pub(crate) fn record(&mut self, event: &TraceEvent) {
        match event.name.as_ref() {
            "DOMStats" => self
                .sizes
                .extend(event.args::<InData<StatsData>>().map(|args| {
                    DomSize {
                        ts_us: event.ts_us,
                        process_id: event.process,
                        frame: args.data.frame,
                        elements: args.data.total_elements,
                        deepest: args.data.max_depth.map(|max| (max.node_id, max.depth)),
                        widest: args
                            .data
                            .max_children
                            .map(|max| (max.node_id, max.num_children)),
                    }
                })),
            "ParseMetaViewport" => {
                let args = event.args::<InData<MetaData>>();
                self.metas
                    .extend(args.map(|args| (event.ts_us, args.data.frame, args.data.node_id)));
            }
            "BeginCommitCompositorFrame" => {
                let args = event.args::<CommitArgs>();
                self.all_commits
                    .extend(args.map(|args| (event.ts_us, args.frame, args.is_mobile_optimized)));
            }
            "Layout" => self.record_update(event, UpdateKind::Layout, || {
                let args: LayoutArgs = event.args()?;
                Some(args.begin_data.dirty_objects)
            }),
            "UpdateLayoutTree" => self.record_update(event, UpdateKind::Style, || {
                let args: StyleArgs = event.args()?;
                Some(args.element_count)
            }),
            _ => {}
        }
    }

    fn record_update(
        &mut self,
        event: &TraceEvent,
        kind: UpdateKind,
        count: impl FnOnce() -> Option<f64>,
    ) {
        let dur_us = event.dur_us.unwrap_or(0.0);
        if dur_us < LARGE_US {
            return;
        }
        self.large_updates.extend(count().map(|count| LargeUpdate {
            kind,
            thread: event.thread(),
            start_us: event.ts_us,
            dur_us,
            count,
        }));
    }

    pub(crate) fn of_page(mut self, frames: &Frames, threads: &[Thread]) -> Self {
        let main = |frame: &str| frame == frames.main_id;
        self.sizes.retain(|size| main(&size.frame));
        self.sizes.sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us));
        self.large_updates
            .retain(|update| threads.contains(&update.thread));
        self.large_updates
            .sort_by(|a, b| a.start_us.total_cmp(&b.start_us));
        self.viewport_metas = std::mem::take(&mut self.metas)
            .into_iter()
            .filter(|(_, frame, _)| main(frame))
            .map(|(ts_us, _, node)| (ts_us, node))
            .collect();
        self.viewport_metas.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.commits = std::mem::take(&mut self.all_commits)
            .into_iter()
            .filter(|(_, frame, _)| main(frame))
            .map(|(ts_us, _, fits)| (ts_us, fits))
            .collect();
        self.commits.sort_by(|a, b| a.0.total_cmp(&b.0));
        self
    }
}
