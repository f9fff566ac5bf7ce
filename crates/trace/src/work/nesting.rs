//! Builds nested stretches from events.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Chore, WorkEvent, WorkKind};
use crate::reflows::{CodePlace, ForcedReflow, function_called};

/// Tolerance for contradicting timestamps of a stretch and one nested in it.
const SLACK_US: f64 = 1000.0;

/// A nested stretch before attribution.
#[derive(Debug)]
pub(super) struct Nested<'s> {
    pub(super) name: &'s str,
    pub(super) args: Option<&'s RawValue>,
    pub(super) start_us: f64,
    pub(super) end_us: f64,
    pub(super) self_us: f64,
    pub(super) parent: Option<usize>,
    pub(super) is_unended: bool,
    pub(super) kind: WorkKind,
    pub(super) chore: Option<Chore>,
    has_children: bool,
}

/// Stretches in order, and the stretch that installed each timer.
pub(super) struct Nest<'s> {
    pub(super) stretches: Vec<Nested<'s>>,
    pub(super) timers: HashMap<i64, usize>,
}

impl Nest<'_> {
    /// Returns the function whose call is directly around a reflow.
    pub(super) fn caller_of(&self, reflow: &ForcedReflow) -> Option<CodePlace> {
        let from = self
            .stretches
            .partition_point(|stretch| stretch.start_us < reflow.start_us);
        let stretch = self.stretches[from..]
            .iter()
            .take_while(|stretch| stretch.start_us == reflow.start_us)
            .find(|stretch| {
                matches!(stretch.name, "Layout" | "UpdateLayoutTree")
                    && stretch.end_us == reflow.start_us + reflow.dur_us
            })?;
        let around = &self.stretches[stretch.parent?];
        (around.name == "FunctionCall")
            .then(|| function_called(around.args))
            .flatten()
    }
}

#[derive(Deserialize)]
struct TimerArgs {
    data: TimerData,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TimerData {
    timer_id: i64,
}

pub(super) fn timer_of(args: Option<&RawValue>) -> Option<i64> {
    let args: TimerArgs = serde_json::from_str(args?.get()).ok()?;
    Some(args.data.timer_id)
}

pub(super) fn nest<'s>(events: &'s [WorkEvent<'_>], trace_end_us: f64) -> Nest<'s> {
    let mut stretches = stretches(events, trace_end_us);
    stretches.sort_by(|a, b| {
        let longer_first = (b.end_us - b.start_us).total_cmp(&(a.end_us - a.start_us));
        a.start_us.total_cmp(&b.start_us).then(longer_first)
    });
    place(&mut stretches);
    let timers = installers(events, &stretches);
    for at in 0..stretches.len() {
        let duration_us = stretches[at].end_us - stretches[at].start_us;
        stretches[at].self_us += duration_us;
        if let Some(parent) = stretches[at].parent {
            stretches[parent].self_us -= duration_us;
            if WorkKind::from_event_name(stretches[at].name).is_none() {
                stretches[at].kind = stretches[parent].kind;
            }
        }
    }
    Nest { stretches, timers }
}

/// Returns a stretch per complete event and per pair of begin and end events. A stretch without an
/// end lasts until the end of the trace.
fn stretches<'s>(events: &'s [WorkEvent<'_>], trace_end_us: f64) -> Vec<Nested<'s>> {
    let mut stretches: Vec<Nested> = Vec::with_capacity(events.len());
    let mut in_pairs: Vec<&WorkEvent> = Vec::new();
    for event in events {
        match event.phase {
            b'X' => stretches.push(Nested::of(event, event.ts_us + event.dur_us)),
            b'B' | b'E' => in_pairs.push(event),
            _ => {}
        }
    }
    // Of events at the same time the ends come first, because they end earlier stretches.
    in_pairs.sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us).then(b.phase.cmp(&a.phase)));
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    for event in in_pairs {
        let of_name = open.entry(event.name.as_ref()).or_default();
        if event.phase == b'B' {
            of_name.push(stretches.len());
            stretches.push(Nested {
                is_unended: true,
                ..Nested::of(event, trace_end_us)
            });
        } else if let Some(at) = of_name.pop() {
            stretches[at].end_us = event.ts_us;
            stretches[at].is_unended = false;
        }
    }
    stretches
}

impl<'s> Nested<'s> {
    fn of(event: &'s WorkEvent<'_>, end_us: f64) -> Self {
        Self {
            name: &event.name,
            args: event.args,
            start_us: event.ts_us,
            end_us,
            self_us: 0.0,
            parent: None,
            is_unended: false,
            kind: WorkKind::from_event_name(&event.name).unwrap_or(WorkKind::Other),
            chore: Chore::from_event_name(&event.name),
            has_children: false,
        }
    }
}

/// Finds each stretch's parent and corrects impossible nesting: a parent is extended to a child
/// that ends slightly later; a child that starts slightly earlier swaps places with its parent;
/// anything else is cut off.
fn place(stretches: &mut [Nested]) {
    let mut around: Option<usize> = None;
    for at in 0..stretches.len() {
        while let Some(parent) = around
            && stretches[parent].end_us <= stretches[at].start_us
        {
            around = stretches[parent].parent;
        }
        if let Some(parent) = around {
            put_inside(stretches, parent, at);
        }
        around = Some(at);
    }
}

fn put_inside(stretches: &mut [Nested], parent: usize, at: usize) {
    let outlasts_us = stretches[at].end_us - stretches[parent].end_us;
    if outlasts_us > 0.0 && outlasts_us < SLACK_US {
        let end_us = stretches[at].end_us;
        let mut wider = Some(parent);
        while let Some(of) = wider
            && stretches[of].end_us < end_us
        {
            stretches[of].end_us = end_us;
            wider = stretches[of].parent;
        }
    } else if outlasts_us > 0.0 {
        let begins_with = stretches[at].start_us - stretches[parent].start_us < SLACK_US;
        let may_trade = !stretches[at].is_unended
            && begins_with
            && !stretches[parent].has_children
            && parent + 1 == at;
        if may_trade {
            // Their positions in the list are swapped too, so that parents stay before their
            // children.
            let grandparent = stretches[parent].parent;
            stretches.swap(parent, at);
            stretches[parent].start_us = stretches[at].start_us;
            stretches[parent].parent = grandparent;
        } else {
            stretches[at].end_us = stretches[parent].end_us;
        }
    }
    stretches[at].parent = Some(parent);
    stretches[parent].has_children = true;
}

/// Returns the innermost stretch in which each timer was installed; if an id is reused, the later
/// one counts.
fn installers(events: &[WorkEvent<'_>], stretches: &[Nested]) -> HashMap<i64, usize> {
    let mut installed: Vec<(f64, i64)> = events
        .iter()
        .filter(|event| event.name == "TimerInstall")
        .filter_map(|event| Some((event.ts_us, timer_of(event.args)?)))
        .collect();
    installed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut timers = HashMap::new();
    for (ts_us, timer) in installed {
        let begun = stretches.partition_point(|stretch| stretch.start_us < ts_us);
        let mut around = begun.checked_sub(1);
        while let Some(at) = around
            && stretches[at].end_us < ts_us
        {
            around = stretches[at].parent;
        }
        if let Some(at) = around {
            timers.insert(timer, at);
        }
    }
    timers
}
