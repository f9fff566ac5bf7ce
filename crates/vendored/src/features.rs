//! Features of the web platform and when they became part of Baseline: the table of web-features.
//!
//! The data is embedded under the Apache License 2.0, reduced to ids, statuses and dates.

use std::collections::HashMap;
use std::sync::OnceLock;

pub const VERSION: &str = env!("FEATURES_VERSION");

const TABLE: &str = include_str!(concat!(env!("OUT_DIR"), "/features.tsv"));

/// The availability of a feature in the browsers of Baseline, as of [`VERSION`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// The feature is missing in at least one of the browsers.
    Limited,
    /// All browsers have the feature since this date, such as `2024-09-16`.
    Since(&'static str),
}

/// Returns the availability of a feature by its id; `None` for an unknown one.
pub fn baseline(feature: &str) -> Option<Baseline> {
    static FEATURES: OnceLock<HashMap<&'static str, Baseline>> = OnceLock::new();
    let features = FEATURES.get_or_init(|| {
        let lines = TABLE.lines().filter_map(|line| line.split_once('\t'));
        let read = |(id, date)| match date {
            "" => (id, Baseline::Limited),
            date => (id, Baseline::Since(date)),
        };
        lines.map(read).collect()
    });
    features.get(feature).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_found_by_id() {
        assert_eq!(baseline("a"), Some(Baseline::Since("2015-07-29")));
        assert_eq!(baseline("accelerometer"), Some(Baseline::Limited));
        assert_eq!(baseline("no-such-feature"), None);
        assert!(TABLE.lines().count() > 1000);
    }
}
