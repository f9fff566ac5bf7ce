use plumbline_model::check::{Cell, Findings, Row, Unit};
use plumbline_trace::{Trace, WorkSpan};

use crate::checks::{Outcome, check, count};
use crate::facts::{DeviceWork, Facts, Missing};

check! {
    /// # What
    /// Every main-thread task that took more than 5 ms, with its start and duration.
    ///
    /// # Why
    /// The list shows when the main thread was busy.
    ///
    /// # Scored
    /// Always informative.
    ///
    /// # Fix
    /// Nothing to fix here; see the long tasks.
    ///
    /// # Source
    /// Lighthouse 13.5, `main-thread-tasks`.
    id: "main-thread-tasks",
    pass: "Main-thread tasks",
    fail: "Main-thread tasks",
    run: run,
}

const MIN_LISTED_US: f64 = 5_000.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let work = facts.get::<DeviceWork>()?;
    let is_listed = |work: &&WorkSpan| work.parent.is_none() && work.duration_us() > MIN_LISTED_US;
    let tasks: Vec<&WorkSpan> = work.spans.iter().filter(is_listed).collect();
    let table = Findings::new([
        ("startTime", "Start", Unit::Ms),
        ("duration", "Duration", Unit::Ms),
    ])
    .rows(tasks.iter().map(|work| {
        Row::new([
            Cell::Ms(trace.since_origin_ms(work.start_us)),
            Cell::Ms(work.duration_us() / 1000.0),
        ])
    }));
    let tasks = count(tasks.len(), "task", "tasks");
    Ok(Outcome::informative(format!("{tasks} of more than 5 ms.")).with(table.into()))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    #[test]
    fn tasks_of_more_than_five_milliseconds_are_listed() {
        let page =
            PageLoad::new()
                .task(500, 6, "https://a.test/a.js")
                .task(700, 5, "https://a.test/a.js");
        let outcome = page.judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Informative);
        assert_eq!(outcome.details.unwrap().len(), 1);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
