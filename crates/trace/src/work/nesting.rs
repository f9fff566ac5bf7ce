//! Builds nested spans from events.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{BackgroundWork, WorkEvent, WorkKind};
use crate::event_kinds::event_kind;
use crate::reflows::{CodeLocation, ForcedReflow, function_called};

/// Tolerance for contradicting timestamps of a span and one nested in it.
const SLACK_US: f64 = 1000.0;

/// A nested span before attribution.
#[derive(Debug)]
pub(super) struct NestedSpan<'s> {
    pub(super) name: &'s str,
    pub(super) args: Option<&'s RawValue>,
    pub(super) start_us: f64,
    pub(super) end_us: f64,
    pub(super) self_us: f64,
    pub(super) parent: Option<usize>,
    pub(super) is_unended: bool,
    pub(super) kind: WorkKind,
    pub(super) background: Option<BackgroundWork>,
    has_children: bool,
}

/// Spans in order, and the span that installed each timer.
pub(super) struct NestedSpans<'s> {
    pub(super) spans: Vec<NestedSpan<'s>>,
    pub(super) timers: HashMap<i64, usize>,
}

impl NestedSpans<'_> {
    /// Returns the function whose call is directly around a reflow.
    pub(super) fn caller_of(&self, reflow: &ForcedReflow) -> Option<CodeLocation> {
        let from = self
            .spans
            .partition_point(|span| span.start_us < reflow.start_us);
        let span = self.spans[from..]
            .iter()
            .take_while(|span| span.start_us == reflow.start_us)
            .find(|span| {
                event_kind(span.name).is_reflow && span.end_us == reflow.start_us + reflow.dur_us
            })?;
        let enclosing = &self.spans[span.parent?];
        (enclosing.name == "FunctionCall")
            .then(|| function_called(enclosing.args))
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

pub(super) fn nest<'s>(events: &'s [WorkEvent<'_>], trace_end_us: f64) -> NestedSpans<'s> {
    let mut spans = spans(events, trace_end_us);
    spans.sort_by(|a, b| {
        let longer_first = (b.end_us - b.start_us).total_cmp(&(a.end_us - a.start_us));
        a.start_us.total_cmp(&b.start_us).then(longer_first)
    });
    assign_parents(&mut spans);
    let timers = installers(events, &spans);
    for at in 0..spans.len() {
        let duration_us = spans[at].end_us - spans[at].start_us;
        spans[at].self_us += duration_us;
        if let Some(parent) = spans[at].parent {
            spans[parent].self_us -= duration_us;
            if event_kind(spans[at].name).work.is_none() {
                spans[at].kind = spans[parent].kind;
            }
        }
    }
    NestedSpans { spans, timers }
}

/// Returns a span per complete event and per pair of begin and end events. A span without an
/// end lasts until the end of the trace.
fn spans<'s>(events: &'s [WorkEvent<'_>], trace_end_us: f64) -> Vec<NestedSpan<'s>> {
    let mut spans: Vec<NestedSpan> = Vec::with_capacity(events.len());
    let mut in_pairs: Vec<&WorkEvent> = Vec::new();
    for event in events {
        match event.phase {
            b'X' => spans.push(NestedSpan::of(event, event.ts_us + event.dur_us)),
            b'B' | b'E' => in_pairs.push(event),
            _ => {}
        }
    }
    // Of events at the same time the ends come first, because they end earlier spans.
    in_pairs.sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us).then(b.phase.cmp(&a.phase)));
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    for event in in_pairs {
        let open_with_name = open.entry(event.name.as_ref()).or_default();
        if event.phase == b'B' {
            open_with_name.push(spans.len());
            spans.push(NestedSpan {
                is_unended: true,
                ..NestedSpan::of(event, trace_end_us)
            });
        } else if let Some(at) = open_with_name.pop() {
            spans[at].end_us = event.ts_us;
            spans[at].is_unended = false;
        }
    }
    spans
}

impl<'s> NestedSpan<'s> {
    fn of(event: &'s WorkEvent<'_>, end_us: f64) -> Self {
        Self {
            name: &event.name,
            args: event.args,
            start_us: event.ts_us,
            end_us,
            self_us: 0.0,
            parent: None,
            is_unended: false,
            kind: event_kind(&event.name).work.unwrap_or(WorkKind::Other),
            background: event_kind(&event.name).background,
            has_children: false,
        }
    }
}

/// Finds each span's parent and corrects impossible nesting: a parent is extended to a child
/// that ends slightly later; a child that starts slightly earlier swaps places with its parent;
/// anything else is cut off.
fn assign_parents(spans: &mut [NestedSpan]) {
    let mut enclosing: Option<usize> = None;
    for at in 0..spans.len() {
        while let Some(parent) = enclosing
            && spans[parent].end_us <= spans[at].start_us
        {
            enclosing = spans[parent].parent;
        }
        if let Some(parent) = enclosing {
            nest_inside(spans, parent, at);
        }
        enclosing = Some(at);
    }
}

fn nest_inside(spans: &mut [NestedSpan], parent: usize, at: usize) {
    let excess_us = spans[at].end_us - spans[parent].end_us;
    if excess_us > 0.0 && excess_us < SLACK_US {
        let end_us = spans[at].end_us;
        let mut ancestor = Some(parent);
        while let Some(index) = ancestor
            && spans[index].end_us < end_us
        {
            spans[index].end_us = end_us;
            ancestor = spans[index].parent;
        }
    } else if excess_us > 0.0 {
        let starts_together = spans[at].start_us - spans[parent].start_us < SLACK_US;
        let can_swap = !spans[at].is_unended
            && starts_together
            && !spans[parent].has_children
            && parent + 1 == at;
        if can_swap {
            // Their positions in the list are swapped too, so that parents stay before their
            // children.
            let grandparent = spans[parent].parent;
            spans.swap(parent, at);
            spans[parent].start_us = spans[at].start_us;
            spans[parent].parent = grandparent;
        } else {
            spans[at].end_us = spans[parent].end_us;
        }
    }
    spans[at].parent = Some(parent);
    spans[parent].has_children = true;
}

/// Returns the innermost span in which each timer was installed; if an id is reused, the later
/// one counts.
fn installers(events: &[WorkEvent<'_>], spans: &[NestedSpan]) -> HashMap<i64, usize> {
    let mut installations: Vec<(f64, i64)> = events
        .iter()
        .filter(|event| event.name == "TimerInstall")
        .filter_map(|event| Some((event.ts_us, timer_of(event.args)?)))
        .collect();
    installations.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut timers = HashMap::new();
    for (ts_us, timer) in installations {
        let next = spans.partition_point(|span| span.start_us < ts_us);
        let mut enclosing = next.checked_sub(1);
        while let Some(at) = enclosing
            && spans[at].end_us < ts_us
        {
            enclosing = spans[at].parent;
        }
        if let Some(at) = enclosing {
            timers.insert(timer, at);
        }
    }
    timers
}
