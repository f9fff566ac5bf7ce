//! Animations, and the reasons why the compositor could not run them.

use std::collections::HashMap;

use serde::Deserialize;

use crate::event::TraceEvent;
use crate::navigation::Thread;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Animation {
    pub node_id: i64,
    /// The animation's name, or the property that it is a transition of; empty if it has none.
    pub name: String,
    /// Chromium's reasons as bits (compositor_animations.h, `FailureReason`); 0 if it was
    /// composited.
    pub failure_mask: i64,
    pub unsupported_properties: Vec<String>,
}

#[derive(Debug, Default)]
struct AnimationState {
    start: Option<Start>,
    failure: Option<CompositingFailure>,
}

#[derive(Debug)]
struct Start {
    node_id: i64,
    name: String,
}

#[derive(Debug)]
struct CompositingFailure {
    mask: i64,
    properties: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct AnimationEvents {
    animations: Vec<(Thread, AnimationState)>,
    by_id: HashMap<(Thread, String), usize>,
}

#[derive(Deserialize)]
struct Args {
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    id: Option<String>,
    node_id: Option<i64>,
    display_name: Option<String>,
    composite_failed: Option<i64>,
    unsupported_properties: Option<Vec<String>>,
}

impl AnimationEvents {
    pub(crate) fn record(&mut self, event: &TraceEvent) {
        if event.name != "Animation" {
            return;
        }
        let Some(id) = event.local_id().filter(|id| !id.is_empty()) else {
            return;
        };
        let thread = event.thread();
        let at = *self
            .by_id
            .entry((thread, id.into_owned()))
            .or_insert_with(|| {
                self.animations.push((thread, AnimationState::default()));
                self.animations.len() - 1
            });
        let state = &mut self.animations[at].1;
        let Some(Args { data }) = event.args() else {
            return;
        };
        if event.phase == b'b' {
            // An animation without an id cannot be distinguished from others.
            let has_id = data.id.is_some_and(|id| !id.is_empty());
            state.start = data
                .node_id
                .filter(|node| has_id && *node != 0)
                .map(|node_id| Start {
                    node_id,
                    name: data.display_name.unwrap_or_default(),
                });
        } else if event.phase == b'n'
            && let Some(mask) = data.composite_failed
        {
            state.failure = Some(CompositingFailure {
                mask,
                properties: data.unsupported_properties.unwrap_or_default(),
            });
        }
    }

    pub(crate) fn of_threads(self, threads: &[Thread]) -> Vec<Animation> {
        self.animations
            .into_iter()
            .filter(|(thread, _)| threads.contains(thread))
            .filter_map(|(_, state)| {
                let start = state.start?;
                let (failure_mask, unsupported_properties) =
                    state.failure.map_or((0, Vec::new()), |failure| {
                        (failure.mask, failure.properties)
                    });
                Some(Animation {
                    node_id: start.node_id,
                    name: start.name,
                    failure_mask,
                    unsupported_properties,
                })
            })
            .collect()
    }
}
