//! Uses of web platform features that Chromium counts, by their ids in web-features.

use serde::Deserialize;

use crate::event::TraceEvent;

const CATEGORY: &str = "blink.webdx_feature_usage";

/// The first use of a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureUse {
    /// The id of the feature in web-features.
    pub feature: String,
    /// The document or script that uses the feature; empty if the trace does not name it.
    pub url: String,
    /// The line, counted from 0.
    pub line: u32,
    /// The column, counted from 0.
    pub column: u32,
}

#[derive(Debug, Default)]
pub(crate) struct FeatureEvents(Vec<FeatureUse>);

/// Arguments of the event. Positions are counted from 1; 0 or less means unknown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    feature: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    line_number: i64,
    #[serde(default)]
    column_number: i64,
}

impl FeatureEvents {
    pub(crate) fn record(&mut self, event: &TraceEvent) {
        if event.category != CATEGORY {
            return;
        }
        let Some(args) = event.args::<Args>() else {
            return;
        };
        let is_new = self.0.iter().all(|used| used.feature != args.feature);
        if is_new && !args.feature.is_empty() {
            let from_zero = |position: i64| u32::try_from(position - 1).unwrap_or(0);
            self.0.push(FeatureUse {
                line: from_zero(args.line_number),
                column: from_zero(args.column_number),
                feature: args.feature,
                url: args.url,
            });
        }
    }

    /// Returns the first use of each feature, in order.
    pub(crate) fn all(self) -> Vec<FeatureUse> {
        self.0
    }
}
