//! User interactions and their latency. A plain page load has none.

use std::collections::HashMap;

use serde::Deserialize;

use crate::event::TraceEvent;

/// One event of an interaction, from the input to the next paint. Times are microseconds of the
/// trace's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Interaction {
    pub id: i64,
    pub kind: InteractionKind,
    pub start_us: f64,
    pub end_us: f64,
    /// Start of the page's event listeners.
    pub processing_start_us: f64,
    pub processing_end_us: f64,
    pub node_id: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InteractionKind {
    Pointer,
    Keyboard,
    Other,
}

impl Interaction {
    pub fn duration_us(&self) -> f64 {
        self.end_us - self.start_us
    }
}

impl InteractionKind {
    fn of(event_type: &str) -> Self {
        match event_type {
            "pointerdown" | "touchstart" | "pointerup" | "touchend" | "mousedown" | "mouseup"
            | "click" => Self::Pointer,
            "keydown" | "keypress" | "keyup" => Self::Keyboard,
            _ => Self::Other,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct InteractionEvents {
    /// Time, id and data of each event; only begin events have data.
    events: Vec<(f64, String, Option<Data>)>,
}

#[derive(Deserialize)]
struct Args {
    data: Data,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Data {
    #[serde(rename = "type")]
    kind: String,
    duration: f64,
    interaction_id: i64,
    time_stamp: f64,
    processing_start: f64,
    processing_end: f64,
    node_id: Option<i64>,
}

impl InteractionEvents {
    pub(crate) fn record(&mut self, event: &TraceEvent) {
        if event.name != "EventTiming" {
            return;
        }
        let id = event.id.clone().into_owned();
        if event.phase == b'e' {
            self.events.push((event.ts_us, id, None));
        } else if event.phase == b'b'
            && let Some(Args { data }) = event.args()
            && data.duration >= 1.0
            && data.interaction_id != 0
        {
            self.events.push((event.ts_us, id, Some(data)));
        }
    }

    /// Returns the interactions in order of their start. Of events of one kind that end together
    /// only the earliest is kept, with the listener time of all (trace_engine,
    /// handlers/UserInteractionsHandler.js).
    pub(crate) fn all(mut self) -> Vec<Interaction> {
        self.events.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut open: HashMap<String, Vec<(f64, Data)>> = HashMap::new();
        let mut interactions = Vec::new();
        for (ts_us, id, data) in self.events {
            let of_id = open.entry(id).or_default();
            match data {
                Some(data) => of_id.push((ts_us, data)),
                None => {
                    interactions.extend(
                        of_id
                            .pop()
                            .and_then(|(start_us, data)| interaction(start_us, ts_us, data)),
                    );
                }
            }
        }
        interactions.sort_by(|a, b| {
            let by_start = a.start_us.total_cmp(&b.start_us);
            by_start.then(b.end_us.total_cmp(&a.end_us))
        });
        merge_simultaneous(interactions)
    }
}

fn interaction(start_us: f64, end_us: f64, data: Data) -> Option<Interaction> {
    let is_whole = !data.kind.is_empty()
        && data.time_stamp != 0.0
        && data.processing_start != 0.0
        && data.processing_end != 0.0;
    let at_us = |ms: f64| start_us + (ms - data.time_stamp) * 1000.0;
    is_whole.then(|| Interaction {
        id: data.interaction_id,
        kind: InteractionKind::of(&data.kind),
        start_us,
        end_us,
        processing_start_us: at_us(data.processing_start),
        processing_end_us: at_us(data.processing_end),
        node_id: data.node_id,
    })
}

fn merge_simultaneous(interactions: Vec<Interaction>) -> Vec<Interaction> {
    let mut merged: Vec<Interaction> = Vec::new();
    for interaction in interactions {
        let same = merged
            .iter_mut()
            .find(|other| other.kind == interaction.kind && other.end_us == interaction.end_us);
        let Some(other) = same else {
            merged.push(interaction);
            continue;
        };
        let processing_us = |of: &Interaction| of.processing_end_us - of.processing_start_us;
        let is_twin = interaction.start_us == other.start_us && interaction.id == other.id;
        if is_twin && processing_us(&interaction) > processing_us(other) {
            let earlier = std::mem::replace(other, interaction.clone());
            other.processing_start_us = other.processing_start_us.min(earlier.processing_start_us);
            other.processing_end_us = other.processing_end_us.max(earlier.processing_end_us);
        } else {
            other.processing_start_us = other
                .processing_start_us
                .min(interaction.processing_start_us);
            other.processing_end_us = other.processing_end_us.max(interaction.processing_end_us);
        }
    }
    merged
}
