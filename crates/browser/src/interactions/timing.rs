//! Computes the parts of an interaction from the entries of the performance timeline.

use std::collections::BTreeMap;

use plumbline_bundle::{InputKind, InteractionScript, InteractionTiming};
use serde::Deserialize;

/// The precision of an event's duration: events whose next paints differ by less belong to one.
const PAINT_PRECISION_MS: f64 = 8.0;
/// Maximum number of scripts of one interaction.
const MAX_SCRIPTS: usize = 5;
/// Maximum length of texts that a page determines.
const MAX_CHARS: usize = 500;

/// The entries of the performance timeline about inputs, as `observe.js` collects them.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Timeline {
    events: Vec<EventEntry>,
    frames: Vec<FrameEntry>,
}

/// An entry of the Event Timing API. Times are in milliseconds since the navigation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventEntry {
    name: String,
    start: f64,
    duration: f64,
    processing_start: f64,
    processing_end: f64,
    /// Id of the interaction; 0 for an event that is not part of one.
    interaction: u64,
    target: Option<String>,
}

impl EventEntry {
    fn paint(&self) -> f64 {
        self.start + self.duration
    }
}

/// An entry of the Long Animation Frames API.
#[derive(Debug, Clone, Deserialize)]
struct FrameEntry {
    scripts: Vec<ScriptEntry>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScriptEntry {
    url: String,
    function: String,
    /// -1 if the browser does not report it.
    position: f64,
    invoker: String,
    start: f64,
    duration: f64,
    forced_layout: f64,
}

impl Timeline {
    /// Returns the slowest interaction; `None` if there was none.
    ///
    /// The rules are those of web-vitals: the longest event determines the duration, and all events
    /// that were painted with it count as its processing, because a slow `mouseup` handler delays
    /// the `click` after it. `pointer` is the kind of input that pointer events come from.
    pub(crate) fn slowest(&self, pointer: InputKind) -> Option<InteractionTiming> {
        let interactions = self.events.iter().filter(|event| event.interaction > 0);
        let mut longest_by_id: BTreeMap<u64, &EventEntry> = BTreeMap::new();
        for event in interactions {
            let longest = longest_by_id.entry(event.interaction).or_insert(event);
            if event.duration > longest.duration {
                *longest = event;
            }
        }
        let mut longest = longest_by_id.into_values();
        let first = longest.next()?;
        let longest = longest.fold(first, |longest, event| {
            if event.duration > longest.duration {
                event
            } else {
                longest
            }
        });
        let painted_together = self.events.iter().filter(|event| {
            (event.paint() - longest.paint()).abs() <= PAINT_PRECISION_MS
                && event.processing_end >= longest.start
        });
        let (processing_start, processing_end) = painted_together.fold(
            (longest.processing_start, longest.processing_end),
            |(start, end), event| {
                (
                    start.min(event.processing_start),
                    end.max(event.processing_end),
                )
            },
        );
        let start = longest.start;
        let processing_start = processing_start.max(start);
        let processing_end = processing_end.max(processing_start);
        // A duration is rounded, and may end before the handlers do.
        let paint = longest.paint().max(processing_end);
        Some(InteractionTiming {
            input: if longest.name.starts_with("key") {
                InputKind::Key
            } else {
                pointer
            },
            event: longest.name.clone(),
            target: longest.target.clone(),
            duration_ms: rounded(paint - start),
            input_delay_ms: rounded(processing_start - start),
            processing_ms: rounded(processing_end - processing_start),
            presentation_delay_ms: rounded(paint - processing_end),
            scripts: self.scripts(start, paint),
        })
    }

    /// Returns the time of the last paint after an interaction; 0 if there was none.
    pub(crate) fn last_paint(&self) -> f64 {
        let interactions = self.events.iter().filter(|event| event.interaction > 0);
        interactions.map(EventEntry::paint).fold(0.0, f64::max)
    }

    /// Returns the scripts that ran in a time, longest first.
    fn scripts(&self, start: f64, end: f64) -> Vec<InteractionScript> {
        let scripts = self.frames.iter().flat_map(|frame| &frame.scripts);
        let mut scripts: Vec<InteractionScript> = scripts
            .filter_map(|script| {
                let (from, to) = (script.start, script.start + script.duration);
                let duration = to.min(end) - from.max(start);
                (duration > 0.0).then(|| InteractionScript {
                    url: shortened(&script.url),
                    function: shortened(&script.function),
                    position: (script.position >= 0.0).then_some(script.position as u64),
                    invoker: shortened(&script.invoker),
                    duration_ms: rounded(duration),
                    forced_layout_ms: rounded(script.forced_layout),
                })
            })
            .collect();
        scripts.sort_by(|a, b| b.duration_ms.total_cmp(&a.duration_ms));
        scripts.truncate(MAX_SCRIPTS);
        scripts
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

/// Rounds a time to a tenth of a millisecond, the precision of the page's clock.
pub(crate) fn rounded(ms: f64) -> f64 {
    (ms.max(0.0) * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(name: &str, interaction: u64, start: f64, duration: f64, handlers: [f64; 2]) -> Value {
        json!({
            "name": name, "start": start, "duration": duration, "processingStart": handlers[0],
            "processingEnd": handlers[1], "interaction": interaction, "target": "button",
        })
    }

    fn slowest(events: Value, frames: Value) -> Option<InteractionTiming> {
        let timeline = json!({ "events": events, "frames": frames });
        let timeline: Timeline = serde_json::from_value(timeline).unwrap();
        timeline.slowest(InputKind::Tap)
    }

    #[test]
    fn the_three_parts_add_up_to_the_duration() {
        let events = json!([event("click", 7, 1000.0, 304.0, [1100.5, 1250.0])]);
        let timing = slowest(events, json!([])).unwrap();
        let parts = (
            timing.input_delay_ms,
            timing.processing_ms,
            timing.presentation_delay_ms,
        );
        assert_eq!(parts, (100.5, 149.5, 54.0));
        assert_eq!(timing.duration_ms, 304.0);
        assert_eq!(
            (timing.event.as_str(), timing.input),
            ("click", InputKind::Tap)
        );
    }

    #[test]
    fn the_slowest_interaction_counts_and_events_without_one_do_not() {
        let events = json!([
            event("mouseover", 0, 1.0, 900.0, [2.0, 890.0]),
            event("pointerup", 1, 10.0, 40.0, [12.0, 20.0]),
            event("keydown", 2, 2000.0, 160.0, [2010.0, 2100.0]),
            event("keyup", 2, 2050.0, 24.0, [2050.0, 2060.0]),
        ]);
        let timing = slowest(events, json!([])).unwrap();
        assert_eq!(
            (timing.event.as_str(), timing.input),
            ("keydown", InputKind::Key)
        );
        assert_eq!(
            slowest(
                json!([event("mouseover", 0, 1.0, 900.0, [2.0, 890.0])]),
                json!([])
            ),
            None
        );
    }

    #[test]
    fn handlers_of_events_that_are_painted_together_are_one_processing() {
        let events = json!([
            event("pointerup", 3, 100.0, 264.0, [104.0, 105.0]),
            event("mouseup", 0, 100.0, 264.0, [105.0, 305.0]),
            event("click", 3, 100.0, 264.0, [305.0, 355.0]),
            // Painted before.
            event("pointerdown", 3, 20.0, 32.0, [21.0, 30.0]),
        ]);
        let timing = slowest(events, json!([])).unwrap();
        let parts = (
            timing.input_delay_ms,
            timing.processing_ms,
            timing.presentation_delay_ms,
        );
        assert_eq!(parts, (4.0, 251.0, 9.0));
    }

    #[test]
    fn a_duration_that_is_rounded_down_ends_no_earlier_than_its_handlers() {
        let events = json!([event("click", 1, 0.0, 96.0, [1.0, 99.0])]);
        let timing = slowest(events, json!([])).unwrap();
        assert_eq!(timing.duration_ms, 99.0);
        assert_eq!(timing.presentation_delay_ms, 0.0);
    }

    #[test]
    fn scripts_count_for_the_time_that_they_ran_during_the_interaction() {
        let script = |url: &str, start: f64, duration: f64, position: f64| {
            json!({
                "url": url, "function": "run", "position": position, "invoker": "BUTTON.onclick",
                "start": start, "duration": duration, "forcedLayout": 3.0,
            })
        };
        let frames = json!([
            { "scripts": [script("before", 0.0, 100.0, 1.0), script("timer", 50.0, 120.0, 2.0)] },
            { "scripts": [script("handler", 170.0, 100.0, -1.0)] },
            { "scripts": [script("after", 300.0, 50.0, 1.0)] },
        ]);
        let events = json!([event("click", 1, 100.0, 200.0, [170.0, 270.0])]);
        let scripts = slowest(events, frames).unwrap().scripts;
        let all: Vec<_> = scripts
            .iter()
            .map(|script| (script.url.as_str(), script.duration_ms, script.position))
            .collect();
        assert_eq!(all, [("handler", 100.0, None), ("timer", 70.0, Some(2))]);
    }
}
