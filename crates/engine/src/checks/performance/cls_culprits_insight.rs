use plumbline_model::check::{Cell, Details, Row, Savings};

use super::shift_rows::{shift_row, shift_table};
use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, ShiftClusters, impact_by_node};

check! {
    /// # What
    /// Which elements shifted while the page loaded, by session window, and their likely causes: a
    /// web font, an image without dimensions, an inserted frame.
    ///
    /// # Why
    /// Content that shifts makes readers lose their place and tap the wrong thing.
    ///
    /// # Scored
    /// Fails when the worst session window scores 0.1 or more, is informative below that, and
    /// passes when nothing shifted.
    ///
    /// # Fix
    /// Give images, videos and frames a width and a height; reserve space for content that loads
    /// late; match the metrics of fallback fonts (`size-adjust`).
    ///
    /// # Source
    /// Lighthouse 13.5, `cls-culprits-insight` (trace_engine, insights/CLSCulprits.js).
    id: "cls-culprits-insight",
    pass: "Layout shift culprits",
    fail: "Layout shift culprits",
    learn: "https://developer.chrome.com/docs/performance/insights/cls-culprit",
    run: run,
}

/// A session window that scores less is good (web.dev/articles/cls).
const POOR: f64 = 0.1;
const LISTED_PER_WINDOW: usize = 5;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let clusters = facts.get::<ShiftClusters>()?;
    let tables = clusters.0.iter().map(|cluster| {
        let mut worst_first: Vec<_> = cluster.shifts.iter().collect();
        worst_first.sort_by(|a, b| b.score.total_cmp(&a.score));
        worst_first.truncate(LISTED_PER_WINDOW);
        let impacts = impact_by_node(worst_first.iter().copied());
        let total = Row::new([Cell::text("Total"), Cell::Number(cluster.score)]);
        let rows = worst_first
            .iter()
            .map(|shift| shift_row(facts, shift, &impacts));
        let table = shift_table().rows([total]).rows(rows);
        Details::from(table)
    });
    let details = Details::parts(tables);
    let windows = count(clusters.0.len(), "window", "windows");
    let outcome = match clusters.worst() {
        None => Outcome::pass().with_summary("Nothing shifted."),
        Some(worst) => {
            let summary = format!("{windows} of layout shifts; the worst scores {worst:.3}.");
            if worst < POOR {
                Outcome::informative(summary)
            } else {
                Outcome::fail(summary)
            }
        }
    };
    Ok(outcome.with(details).with_savings(Savings {
        cls: Some(0.0),
        ..Savings::default()
    }))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::Outcome;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    fn text(outcome: &Outcome) -> String {
        serde_json::to_string(outcome.details.as_ref().unwrap()).unwrap()
    }

    #[test]
    fn the_worst_cluster_decides() {
        assert_eq!(PageLoad::new().judge(CHECK).verdict, Verdict::Pass);
        let small = PageLoad::new().shift(500, 0.05, 9);
        assert_eq!(small.judge(CHECK).verdict, Verdict::Informative);
        let large = PageLoad::new().shift(500, 0.05, 9).shift(600, 0.06, 9);
        assert_eq!(large.judge(CHECK).verdict, Verdict::Fail);
        let apart = PageLoad::new().shift(500, 0.05, 9).shift(1600, 0.06, 9);
        assert_eq!(apart.judge(CHECK).verdict, Verdict::Informative);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }

    #[test]
    fn a_font_that_loaded_right_before_is_listed() {
        let font = "https://a.test/f.woff2";
        let attribution = PageLoad::new()
            .font(font, 100, 450)
            .pre_paint(490, 30)
            .shift(500, 0.2, 9)
            .element(9, "body > p")
            .judge(CHECK);
        assert!(text(&attribution).contains(font) && text(&attribution).contains("body > p"));
        let long_before = PageLoad::new()
            .font(font, 100, 450)
            .pre_paint(990, 30)
            .shift(1000, 0.2, 9)
            .judge(CHECK);
        assert!(!text(&long_before).contains(font));
    }

    #[test]
    fn an_unsized_image_that_is_painted_next_is_listed() {
        let attribution = PageLoad::new()
            .unsized_image(5, 480)
            .pre_paint(490, 30)
            .shift(500, 0.2, 9)
            .painted_image(5, 530)
            .element(5, "body > img")
            .judge(CHECK);
        assert!(text(&attribution).contains("body > img"));
    }
}
