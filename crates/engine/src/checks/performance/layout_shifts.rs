use plumbline_model::check::Savings;

use super::shift_rows::{shift_row, shift_table};
use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, Shift, ShiftClusters, impact_by_node};

check! {
    /// # What
    /// The largest layout shifts of the whole load, each with the element that shifted most.
    ///
    /// # Why
    /// Content that shifts makes readers lose their place and tap the wrong thing.
    ///
    /// # Scored
    /// Fails when the worst session window scores more than 0.1, is informative below that. Not
    /// applicable when nothing shifted.
    ///
    /// # Fix
    /// Give images, videos and frames a width and a height; reserve space for content that loads
    /// late.
    ///
    /// # Source
    /// Lighthouse 13.5, `layout-shifts`.
    id: "layout-shifts",
    pass: "Largest layout shifts",
    fail: "Largest layout shifts",
    learn: "https://web.dev/articles/optimize-cls",
    run: run,
}

/// The layout shift score that gets 0.9 on the metric's curve.
const GOOD: f64 = 0.1;
const LISTED: usize = 15;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let clusters = facts.get::<ShiftClusters>()?;
    let Some(worst) = clusters.worst() else {
        return Ok(Outcome::not_applicable());
    };
    let all = || clusters.0.iter().flat_map(|cluster| &cluster.shifts);
    let impacts = impact_by_node(all());
    let mut worst_first: Vec<&Shift> = all().collect();
    worst_first.sort_by(|a, b| b.score.total_cmp(&a.score));
    let summary = format!(
        "{} found.",
        count(worst_first.len(), "layout shift", "layout shifts")
    );
    worst_first.truncate(LISTED);
    let rows = worst_first
        .iter()
        .map(|shift| shift_row(facts, shift, &impacts));
    let outcome = if worst <= GOOD {
        Outcome::informative(summary)
    } else {
        Outcome::fail(summary)
    };
    Ok(outcome
        .with(shift_table().rows(rows).into())
        .with_savings(Savings {
            cls: Some(worst),
            ..Savings::default()
        }))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    #[test]
    fn the_fifteen_largest_are_listed() {
        let none = PageLoad::new().judge(CHECK);
        assert_eq!(none.verdict, Verdict::NotApplicable);
        let many = (0..20).fold(PageLoad::new(), |page, at| page.shift(500 + at, 0.001, 9));
        let outcome = many.judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Informative);
        assert_eq!(outcome.summary.as_deref(), Some("20 layout shifts found."));
        assert_eq!(outcome.details.unwrap().len(), 15);
        let large = PageLoad::new().shift(500, 0.3, 9).judge(CHECK);
        assert_eq!(large.verdict, Verdict::Fail);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
