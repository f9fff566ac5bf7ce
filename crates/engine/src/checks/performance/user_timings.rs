use plumbline_model::check::{Cell, Findings, Row, Unit};
use plumbline_trace::{Trace, UserTiming};

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing};

check! {
    /// # What
    /// The marks and measures that the page recorded with the User Timing API.
    ///
    /// # Why
    /// They show the page's own milestones on the same clock as the metrics.
    ///
    /// # Scored
    /// Informative. Not applicable when there are none.
    ///
    /// # Fix
    /// Nothing to fix. To add measurements, call `performance.mark()` and `performance.measure()`.
    ///
    /// # Source
    /// Lighthouse 13.5, `user-timings`.
    id: "user-timings",
    pass: "User Timing marks and measures",
    fail: "User Timing marks and measures",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/user-timings/",
    run: run,
}

/// The prefix of marks that Google's scripts set for themselves.
const IGNORED_PREFIX: &str = "goog_";

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let mut timings: Vec<&UserTiming> = trace
        .user_timings
        .iter()
        .filter(|timing| !timing.name.starts_with(IGNORED_PREFIX))
        .collect();
    if timings.is_empty() {
        return Ok(Outcome::not_applicable());
    }
    // Measures before marks, then by time.
    let start_us = |timing: &UserTiming| timing.start_us.unwrap_or(f64::INFINITY);
    timings.sort_by(|a, b| {
        let measures_first = b.end_us.is_some().cmp(&a.end_us.is_some());
        measures_first.then(start_us(a).total_cmp(&start_us(b)))
    });
    let ms = |us: Option<f64>| us.map_or(Cell::Nothing, Cell::Ms);
    let table = Findings::new([
        ("name", "Name", Unit::Text),
        ("timingType", "Type", Unit::Text),
        ("startTime", "Start", Unit::Ms),
        ("duration", "Duration", Unit::Ms),
    ])
    .rows(timings.iter().map(|timing| {
        let kind = match timing.end_us {
            Some(_) => "Measure",
            None => "Mark",
        };
        let dur_us = timing
            .end_us
            .zip(timing.start_us)
            .map(|(end, start)| end - start);
        Row::new([
            Cell::text(&timing.name),
            Cell::text(kind),
            ms(timing.start_us.map(|us| trace.since_origin_ms(us))),
            ms(dur_us.map(|us| us / 1000.0)),
        ])
    }));
    let summary = count(timings.len(), "mark or measure", "marks and measures");
    Ok(Outcome::informative(format!("{summary}.")).with(table.into()))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Details, Verdict};

    use super::CHECK;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    #[test]
    fn measures_come_before_marks() {
        let outcome = PageLoad::new()
            .mark("first", 100)
            .mark("goog_x", 150)
            .measure("whole", 200, 300)
            .judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Informative);
        let Some(Details::Findings(table)) = outcome.details else {
            panic!("no table");
        };
        let text = serde_json::to_string(&table.rows).unwrap();
        assert_eq!(table.rows.len(), 2);
        assert!(text.find("whole").unwrap() < text.find("first").unwrap());
        assert_eq!(PageLoad::new().judge(CHECK).verdict, Verdict::NotApplicable);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
