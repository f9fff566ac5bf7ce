//! The tree of frames, and how an event says which frame it belongs to.

use std::collections::HashMap;

use serde::Deserialize;

use crate::event::Event;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub id: String,
    pub url: String,
    pub parent: Option<String>,
}

/// The frames of the inspected page: the main frame and all below it, in whatever process they live.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    pub main_id: String,
    pub in_page: Vec<Frame>,
}

impl Frames {
    /// Whether the frame is the main frame or below it. A trace that tells nothing about its frames still has
    /// a main frame.
    pub fn contains(&self, id: &str) -> bool {
        id == self.main_id || self.in_page.iter().any(|frame| frame.id == id)
    }
}

/// A frame as the browser process names it when tracing starts or when the frame commits a document.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamedFrame {
    #[serde(default)]
    pub(crate) frame: String,
    pub(crate) url: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) process_id: Option<i64>,
}

/// Later names win: a frame that commits again has a new address and may have moved.
pub(crate) fn page_frames<'a>(
    named: impl Iterator<Item = &'a NamedFrame>,
    main_id: &str,
) -> Vec<Frame> {
    let mut known: Vec<Frame> = Vec::new();
    let mut position: HashMap<&str, usize> = HashMap::new();
    for frame in named {
        let frame_now = Frame {
            id: frame.frame.clone(),
            url: frame.url.clone().unwrap_or_default(),
            parent: frame.parent.clone().filter(|parent| !parent.is_empty()),
        };
        match position.get(frame.frame.as_str()) {
            Some(&at) => known[at] = frame_now,
            None => {
                position.insert(&frame.frame, known.len());
                known.push(frame_now);
            }
        }
    }
    let parents: HashMap<&str, &str> = known
        .iter()
        .filter_map(|frame| Some((frame.id.as_str(), frame.parent.as_deref()?)))
        .collect();
    let root_of = |id: &str| {
        let mut at = id.to_owned();
        // A tree is never deeper than it has members; a cycle in a broken trace ends here.
        for _ in 0..=parents.len() {
            match parents.get(at.as_str()) {
                Some(parent) => at = (*parent).to_owned(),
                None => break,
            }
        }
        at
    };
    // Frames around a main frame that the trace does not name are not trusted either.
    let main_is_known = known.iter().any(|frame| frame.id == main_id);
    let in_page: Vec<bool> = known
        .iter()
        .map(|frame| main_is_known && root_of(&frame.id) == main_id)
        .collect();
    let mut keep = in_page.into_iter();
    known.retain(|_| keep.next().unwrap_or(false));
    known
}

/// Where an event names its frame differs by event: these three places are all that Lighthouse knows
/// (trace-processor.js, `getFrameId`), tried in this order.
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

pub(crate) fn frame_of(event: &Event) -> Option<String> {
    event.args::<FrameArgs>()?.id()
}
