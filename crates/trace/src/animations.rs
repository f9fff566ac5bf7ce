//! Animations, and why the compositor could not run them.

use std::collections::HashMap;

use serde::Deserialize;

use crate::event::Event;
use crate::navigation::Thread;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Animation {
    pub node_id: i64,
    /// The animation's name, or the property that it is a transition of; empty where it has none.
    pub name: String,
    /// Chromium's reasons as bits (compositor_animations.h, `FailureReason`); 0 where it was composited.
    pub failure_mask: i64,
    pub unsupported_properties: Vec<String>,
}

#[derive(Debug, Default)]
struct Story {
    begun: Option<Begun>,
    failure: Option<Failure>,
}

#[derive(Debug)]
struct Begun {
    node_id: i64,
    name: String,
}

#[derive(Debug)]
struct Failure {
    mask: i64,
    properties: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct AnimationEvents {
    stories: Vec<(Thread, Story)>,
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
    pub(crate) fn see(&mut self, event: &Event) {
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
                self.stories.push((thread, Story::default()));
                self.stories.len() - 1
            });
        let story = &mut self.stories[at].1;
        let Some(Args { data }) = event.args() else {
            return;
        };
        if event.phase == b'b' {
            // Without an id of its own it cannot be told from others.
            let is_known = data.id.is_some_and(|id| !id.is_empty());
            story.begun = data
                .node_id
                .filter(|node| is_known && *node != 0)
                .map(|node_id| Begun {
                    node_id,
                    name: data.display_name.unwrap_or_default(),
                });
        } else if event.phase == b'n'
            && let Some(mask) = data.composite_failed
        {
            story.failure = Some(Failure {
                mask,
                properties: data.unsupported_properties.unwrap_or_default(),
            });
        }
    }

    pub(crate) fn of_threads(self, threads: &[Thread]) -> Vec<Animation> {
        self.stories
            .into_iter()
            .filter(|(thread, _)| threads.contains(thread))
            .filter_map(|(_, story)| {
                let begun = story.begun?;
                let (failure_mask, unsupported_properties) =
                    story.failure.map_or((0, Vec::new()), |failure| {
                        (failure.mask, failure.properties)
                    });
                Some(Animation {
                    node_id: begun.node_id,
                    name: begun.name,
                    failure_mask,
                    unsupported_properties,
                })
            })
            .collect()
    }
}
