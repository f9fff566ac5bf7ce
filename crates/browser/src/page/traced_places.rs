//! The places in scripts at which styles or layout were forced, found while a trace is received.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

/// The most places that are kept.
const MAX_PLACES: usize = 200;
/// The least time for styles and layout of a place that is reported.
const MIN_TOTAL_US: f64 = 1000.0;

/// A place in a script; lines and columns are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ScriptPlace {
    pub(crate) url: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// The time for styles and layout that each place forced, in microseconds.
#[derive(Default)]
pub(super) struct TracedPlaces(BTreeMap<ScriptPlace, f64>);

#[derive(Deserialize)]
struct TraceEvent<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default)]
    dur: f64,
    #[serde(borrow)]
    args: Args<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args<'a> {
    #[serde(borrow)]
    data: Option<Data<'a>>,
    #[serde(borrow)]
    begin_data: Option<Data<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow)]
    stack_trace: Option<Vec<Call<'a>>>,
}

/// A call on a stack, whose line and column are counted from 1.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call<'a> {
    #[serde(borrow, default)]
    url: Cow<'a, str>,
    #[serde(default)]
    line_number: i64,
    #[serde(default)]
    column_number: i64,
}

impl TracedPlaces {
    pub(super) fn add_event(&mut self, event: &str) {
        // Few events have a stack, and searching is cheaper than parsing.
        if !event.contains(r#""stackTrace""#) {
            return;
        }
        let Ok(event) = serde_json::from_str::<TraceEvent>(event) else {
            return;
        };
        if !matches!(&*event.name, "Layout" | "UpdateLayoutTree") {
            return;
        }
        let parts = [event.args.data, event.args.begin_data];
        let mut stacks = parts.into_iter().flatten().filter_map(|it| it.stack_trace);
        let calls = stacks.next().into_iter().flatten();
        let mut places = calls
            .filter(|call| !call.url.is_empty())
            .filter_map(|call| call.place());
        let Some(place) = places.next() else {
            return;
        };
        if self.0.len() < MAX_PLACES || self.0.contains_key(&place) {
            *self.0.entry(place).or_default() += event.dur;
        }
    }

    pub(super) fn all(&self) -> Vec<ScriptPlace> {
        let long = self.0.iter().filter(|(_, us)| **us >= MIN_TOTAL_US);
        long.map(|(place, _)| place.clone()).collect()
    }
}

impl Call<'_> {
    fn place(&self) -> Option<ScriptPlace> {
        let from_zero = |number: i64| u32::try_from(number - 1).ok();
        Some(ScriptPlace {
            url: self.url.to_string(),
            line: from_zero(self.line_number)?,
            column: from_zero(self.column_number)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: &str = r#"{"name":"Layout","dur":5000,"args":{"beginData":{"stackTrace":[
        {"url":"","lineNumber":-1,"columnNumber":-1},
        {"url":"a.js","lineNumber":3,"columnNumber":9}]}}}"#;

    fn places(events: &[&str]) -> Vec<ScriptPlace> {
        let mut places = TracedPlaces::default();
        events.iter().for_each(|event| places.add_event(event));
        places.all()
    }

    #[test]
    fn the_first_call_in_a_script_is_the_place() {
        let expected = [ScriptPlace {
            url: "a.js".to_owned(),
            line: 2,
            column: 8,
        }];
        assert_eq!(places(&[LAYOUT, LAYOUT]), expected);
        let styles = LAYOUT
            .replace("Layout", "UpdateLayoutTree")
            .replace("beginData", "data");
        assert_eq!(places(&[&styles]), expected);
    }

    #[test]
    fn short_work_is_added_up() {
        let short = LAYOUT.replace("5000", "600");
        assert_eq!(places(&[&short]), []);
        assert_eq!(places(&[&short, &short]).len(), 1);
    }

    #[test]
    fn other_events_are_left_out() {
        let other = LAYOUT.replace("Layout", "TimerInstall");
        assert_eq!(places(&[&other, "{}", r#"{"stackTrace"#]), []);
    }
}
