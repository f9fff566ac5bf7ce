//! The places in scripts at which styles or layout were forced, found while a trace is received.

use std::collections::BTreeMap;

use plumbline_trace::{CodeLocation, forced_work};

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

impl TracedPlaces {
    pub(super) fn add_event(&mut self, event: &str) {
        let work = forced_work(event);
        let Some((place, us)) = work.and_then(|(at, us)| Some((ScriptPlace::of(at)?, us))) else {
            return;
        };
        if self.0.len() < MAX_PLACES || self.0.contains_key(&place) {
            *self.0.entry(place).or_default() += us;
        }
    }

    pub(super) fn all(&self) -> Vec<ScriptPlace> {
        let long = self.0.iter().filter(|(_, us)| **us >= MIN_TOTAL_US);
        long.map(|(place, _)| place.clone()).collect()
    }
}

impl ScriptPlace {
    /// Returns the place of a position in a script with a URL.
    fn of(location: CodeLocation) -> Option<Self> {
        Some(Self {
            line: u32::try_from(location.line).ok()?,
            column: u32::try_from(location.column).ok()?,
            url: Some(location.url).filter(|url| !url.is_empty())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: &str = r#"{"name":"Layout","ph":"X","ts":20,"dur":5000,"pid":1,"tid":1,
        "args":{"beginData":{"stackTrace":[{"url":"a.js","lineNumber":3,"columnNumber":9}]}}}"#;

    fn places(events: &[&str]) -> Vec<ScriptPlace> {
        let mut places = TracedPlaces::default();
        events.iter().for_each(|event| places.add_event(event));
        places.all()
    }

    #[test]
    fn a_place_is_listed_once() {
        let expected = [ScriptPlace {
            url: "a.js".to_owned(),
            line: 2,
            column: 8,
        }];
        assert_eq!(places(&[LAYOUT, LAYOUT]), expected);
    }

    #[test]
    fn short_work_is_added_up() {
        let short = LAYOUT.replace("5000", "600");
        assert_eq!(places(&[&short]), []);
        assert_eq!(places(&[&short, &short]).len(), 1);
    }

    #[test]
    fn a_script_without_a_url_has_no_place() {
        assert_eq!(places(&[&LAYOUT.replace("a.js", "")]), []);
    }
}
