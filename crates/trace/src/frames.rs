//! The frame tree, and the frame that an event belongs to.

use std::collections::HashMap;

use serde::Deserialize;

use crate::event::TraceEvent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub id: String,
    pub url: String,
    pub parent: Option<String>,
}

/// The frames of the inspected page: the main frame and all below it, in any process.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    pub main_id: String,
    pub in_page: Vec<Frame>,
}

impl Frames {
    /// Returns true for the main frame and the frames below it. A trace without frame information
    /// still has a main frame.
    pub fn contains(&self, id: &str) -> bool {
        id == self.main_id || self.in_page.iter().any(|frame| frame.id == id)
    }
}

/// A frame as the browser process reports it when tracing starts or the frame commits a document.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamedFrame {
    #[serde(default)]
    pub(crate) frame: String,
    pub(crate) url: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) process_id: Option<i64>,
}

/// Returns the main frame and the frames below it. Later reports replace earlier ones: a frame that
/// commits again has a new URL and may have a new parent.
pub(crate) fn page_frames<'a>(
    reports: impl Iterator<Item = &'a NamedFrame>,
    main_id: &str,
) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut position: HashMap<&str, usize> = HashMap::new();
    for frame in reports {
        let frame_now = Frame {
            id: frame.frame.clone(),
            url: frame.url.clone().unwrap_or_default(),
            parent: frame.parent.clone().filter(|parent| !parent.is_empty()),
        };
        match position.get(frame.frame.as_str()) {
            Some(&at) => frames[at] = frame_now,
            None => {
                position.insert(&frame.frame, frames.len());
                frames.push(frame_now);
            }
        }
    }
    let parents: HashMap<&str, &str> = frames
        .iter()
        .filter_map(|frame| Some((frame.id.as_str(), frame.parent.as_deref()?)))
        .collect();
    let root_of = |id: &str| {
        let mut at = id.to_owned();
        // A tree is no deeper than its number of members; this ends a cycle in a broken trace.
        for _ in 0..=parents.len() {
            match parents.get(at.as_str()) {
                Some(parent) => at = (*parent).to_owned(),
                None => break,
            }
        }
        at
    };
    // Without a report of the main frame, the other frames are not trusted either.
    let has_main_frame = frames.iter().any(|frame| frame.id == main_id);
    let in_page: Vec<bool> = frames
        .iter()
        .map(|frame| has_main_frame && root_of(&frame.id) == main_id)
        .collect();
    let mut is_in_page = in_page.into_iter();
    frames.retain(|_| is_in_page.next().unwrap_or(false));
    frames
}

/// The three places in which events name their frame, tried in Lighthouse's order
/// (trace-processor.js, `getFrameId`).
#[derive(Debug, Default, Deserialize)]
pub(crate) struct FrameArgs {
    pub(crate) frame: Option<String>,
    data: Option<FrameData>,
}

#[derive(Debug, Deserialize)]
struct FrameData {
    frame: Option<String>,
    #[serde(rename = "frameID")]
    frame_id: Option<String>,
}

impl FrameArgs {
    pub(crate) fn id(self) -> Option<String> {
        let (in_data, in_data_id) = self.data.map_or((None, None), |d| (d.frame, d.frame_id));
        [in_data, in_data_id, self.frame]
            .into_iter()
            .flatten()
            .find(|id| !id.is_empty())
    }
}

pub(crate) fn frame_of(event: &TraceEvent) -> Option<String> {
    event.args::<FrameArgs>()?.id()
}
