//! The coverage of intervals: the share of them that contains the mean of further audits.

use std::collections::BTreeMap;

use super::Figure;
use crate::report::Report;

/// The number of intervals of one figure, and how many of them contain the mean of further audits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    pub intervals: usize,
    pub containing: usize,
}

impl Coverage {
    /// Returns the share of intervals that contain the mean.
    pub fn share(self) -> f64 {
        self.containing as f64 / self.intervals.max(1) as f64
    }
}

/// Returns the coverage of the intervals of audits by figure. `further` has other audits of the
/// same pages in the same order.
pub fn coverage(
    audits: &[Vec<Report>],
    further: &[Vec<Report>],
) -> BTreeMap<&'static str, Coverage> {
    let mut found: BTreeMap<&'static str, Coverage> = BTreeMap::new();
    for (page, further) in audits.iter().zip(further) {
        for figure in Figure::all() {
            let values = further.iter().filter_map(|report| figure.value(report));
            let values: Vec<f64> = values.collect();
            if values.is_empty() {
                continue;
            }
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let intervals = page.iter();
            let intervals = intervals.filter_map(|report| report.intervals.get(figure.name()));
            let coverage = found.entry(figure.name()).or_default();
            for interval in intervals {
                coverage.intervals += 1;
                coverage.containing += usize::from(interval.contains(mean));
            }
        }
    }
    found
}
