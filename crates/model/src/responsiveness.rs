//! Responsiveness in the lab: the inputs that were made on the page after its load.

use plumbline_bundle::{InteractionRecord, InteractionRecords};
use serde::{Deserialize, Serialize};

/// The limit of Interaction to Next Paint for good responsiveness (web.dev/articles/inp).
pub const GOOD_INP_MS: f64 = 200.0;
/// The limit of Interaction to Next Paint above which responsiveness is poor.
pub const POOR_INP_MS: f64 = 500.0;

/// The inputs on controls of a page, with their worst time to the next paint. It has no weight in
/// any score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Responsiveness {
    /// Interaction to Next Paint: the longest interaction; `None` if none was measured.
    pub inp_ms: Option<f64>,
    pub rating: Option<Rating>,
    #[serde(flatten)]
    pub records: InteractionRecords,
}

/// A rating by the limits of Interaction to Next Paint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rating {
    Good,
    NeedsImprovement,
    Poor,
}

impl Rating {
    /// Returns the rating of an interaction.
    pub fn of_inp(ms: f64) -> Self {
        if ms <= GOOD_INP_MS {
            Self::Good
        } else if ms <= POOR_INP_MS {
            Self::NeedsImprovement
        } else {
            Self::Poor
        }
    }
}

impl From<InteractionRecords> for Responsiveness {
    fn from(records: InteractionRecords) -> Self {
        let timings = records.interactions.iter();
        let inp_ms = timings
            .filter_map(|it| it.timing.as_ref())
            .map(|timing| timing.duration_ms)
            .reduce(f64::max);
        Self {
            inp_ms,
            rating: inp_ms.map(Rating::of_inp),
            records,
        }
    }
}

impl Responsiveness {
    /// Returns the interaction with the longest time to the next paint.
    pub fn worst(&self) -> Option<&InteractionRecord> {
        let duration = |it: &InteractionRecord| it.timing.as_ref().map(|timing| timing.duration_ms);
        let mut interactions = self.records.interactions.iter();
        interactions.find(|it| self.inp_ms.is_some() && duration(it) == self.inp_ms)
    }

    /// Returns the number of interactions that were measured.
    pub fn measured(&self) -> usize {
        let interactions = self.records.interactions.iter();
        interactions.filter(|it| it.timing.is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn interaction(name: &str, duration_ms: Option<f64>) -> serde_json::Value {
        let timing = duration_ms.map(|ms| {
            json!({
                "input": "tap", "event": "click", "durationMs": ms, "inputDelayMs": 0.0,
                "processingMs": ms, "presentationDelayMs": 0.0,
            })
        });
        json!({
            "kind": "button", "name": name, "selector": "button", "snippet": "<button>",
            "timing": timing, "notMeasured": null,
        })
    }

    fn responsiveness(interactions: &[serde_json::Value]) -> Responsiveness {
        let records = json!({ "controls": 9, "interactions": interactions });
        let records: InteractionRecords = serde_json::from_value(records).unwrap();
        records.into()
    }

    #[test]
    fn the_longest_interaction_counts() {
        let all = [
            interaction("quick", Some(16.0)),
            interaction("link", None),
            interaction("slow", Some(504.0)),
        ];
        let responsiveness = responsiveness(&all);
        assert_eq!(responsiveness.inp_ms, Some(504.0));
        assert_eq!(responsiveness.rating, Some(Rating::Poor));
        assert_eq!(responsiveness.worst().unwrap().name, "slow");
        assert_eq!(responsiveness.measured(), 2);
        let stored = serde_json::to_value(&responsiveness).unwrap();
        assert_eq!(stored["controls"], 9);
        let parsed: Responsiveness = serde_json::from_value(stored).unwrap();
        assert_eq!(parsed, responsiveness);
    }

    #[test]
    fn without_a_measured_interaction_there_is_no_rating() {
        let responsiveness = responsiveness(&[interaction("link", None)]);
        assert_eq!((responsiveness.inp_ms, responsiveness.rating), (None, None));
        assert!(responsiveness.worst().is_none());
    }

    #[test]
    fn the_limits_belong_to_the_better_rating() {
        for (ms, rating) in [
            (200.0, Rating::Good),
            (208.0, Rating::NeedsImprovement),
            (500.0, Rating::NeedsImprovement),
            (501.0, Rating::Poor),
        ] {
            assert_eq!(Rating::of_inp(ms), rating, "{ms}");
        }
    }
}
