//! The choice of the median run.

use serde_json::Value;

/// Returns the index of the median run as Lighthouse CI chooses it (@lhci/utils,
/// src/representative-runs.js): the run with the smallest squared distance to the median First
/// Contentful Paint and the median Time to Interactive, the first of several. A missing value
/// counts as 0; of an even number of values the upper of the two middle ones is the median.
pub fn median_run(runs: &[Value]) -> Option<usize> {
    let of = |id: &str| -> Vec<f64> {
        let value = |run: &Value| run["audits"][id]["numericValue"].as_f64().unwrap_or(0.0);
        runs.iter().map(value).collect()
    };
    nearest_to_medians(&of("first-contentful-paint"), &of("interactive"))
}

fn nearest_to_medians(paints_ms: &[f64], interactives_ms: &[f64]) -> Option<usize> {
    let median = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    };
    let (paint, interactive) = (median(paints_ms)?, median(interactives_ms)?);
    let distance = |index: usize| {
        let (a, b) = (
            paint - paints_ms[index],
            interactive - interactives_ms[index],
        );
        a * a + b * b
    };
    (0..paints_ms.len()).min_by(|a, b| distance(*a).total_cmp(&distance(*b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_nearest_to_both_medians_is_the_median_run() {
        for (paints, interactives, expected) in [
            (&[100.0][..], &[200.0][..], Some(0)),
            (&[], &[], None),
            (&[3.0, 1.0, 2.0], &[30.0, 10.0, 20.0], Some(2)),
            // No run has both medians: the nearest is chosen.
            (&[1.0, 2.0, 3.0], &[20.0, 30.0, 10.0], Some(0)),
            // The median of four values is the third smallest.
            (&[1.0, 2.0, 3.0, 4.0], &[0.0, 0.0, 0.0, 0.0], Some(2)),
            (&[5.0, 5.0], &[5.0, 5.0], Some(0)),
        ] {
            assert_eq!(
                nearest_to_medians(paints, interactives),
                expected,
                "{paints:?}"
            );
        }
    }
}
