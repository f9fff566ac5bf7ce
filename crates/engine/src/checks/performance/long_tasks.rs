use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};
use plumbline_trace::{Trace, WorkSpan};

use super::attribution_cell;
use crate::checks::{Outcome, check, count};
use crate::facts::{DeviceWork, Facts, Missing, ScriptUrls};
use crate::metrics::Measured;

check! {
    /// # What
    /// The longest main-thread tasks, when they started, and the script or page they are attributed
    /// to.
    ///
    /// # Why
    /// While a task runs the main thread can neither handle input nor paint.
    ///
    /// # Scored
    /// Informative. Counts tasks of 50 ms or more, and lists up to 20. Not applicable without any.
    ///
    /// # Fix
    /// Load less JavaScript, split long tasks (`scheduler.yield()`), and move work to a worker.
    ///
    /// # Source
    /// Lighthouse 13.5, `long-tasks`, with observed rather than simulated times, scaled to the
    /// emulated device.
    id: "long-tasks",
    pass: "Long main-thread tasks",
    fail: "Long main-thread tasks",
    learn: "https://web.dev/articles/optimize-long-tasks",
    run: run,
}

const LISTED: usize = 20;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let scripts = facts.get::<ScriptUrls>()?;
    let work = facts.get::<DeviceWork>()?;
    let mut long: Vec<&WorkSpan> = work.long_tasks().collect();
    if long.is_empty() {
        return Ok(Outcome::not_applicable());
    }
    long.sort_by(|a, b| b.duration_us().total_cmp(&a.duration_us()));
    let summary = format!("{} found.", count(long.len(), "long task", "long tasks"));
    long.truncate(LISTED);
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("startTime", "Start", Unit::Ms),
        ("duration", "Duration", Unit::Ms),
    ])
    .rows(long.iter().map(|work| {
        Row::new([
            attribution_cell(scripts.attribution(work)),
            Cell::Ms(trace.since_origin_ms(work.start_us)),
            Cell::Ms(work.duration_us() / 1000.0),
        ])
    }));
    Ok(Outcome::informative(summary)
        .with(table.into())
        .with_savings(Savings {
            tbt_ms: facts.get::<Measured>()?.tbt.ok(),
            ..Savings::default()
        }))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::performance::mainthread_work_breakdown;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;
    use crate::media::report_media;

    #[test]
    fn the_longest_tasks_come_first_with_the_script_that_ran() {
        let outcome = PageLoad::new()
            .script("https://a.test/a.js")
            .task(500, 60, "https://a.test/a.js")
            .task(700, 90, "https://a.test/b.js")
            .task(900, 49, "https://a.test/a.js")
            .judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Informative);
        assert_eq!(outcome.details.as_ref().unwrap().len(), 2);
        let text = serde_json::to_string(&outcome.details).unwrap();
        assert!(text.find("b.js").unwrap() < text.find("a.js").unwrap());
    }

    #[test]
    fn cpu_contention_is_not_part_of_a_task() {
        let task = || PageLoad::new().task(500, 90, "https://a.test/a.js");
        let disturbed = |until_ms| task().with_contention(510, until_ms).judge(CHECK).verdict;
        assert_eq!(disturbed(549), Verdict::Informative);
        assert_eq!(disturbed(551), Verdict::NotApplicable);
    }

    #[test]
    fn the_chart_of_the_main_thread_has_the_figures_of_the_checks() {
        let load = || {
            PageLoad::new()
                .task(500, 90, "https://a.test/a.js")
                .task(700, 90, "https://a.test/a.js")
                .with_contention(510, 555)
                .visit()
        };
        let shown = report_media(&load().bundle()).unwrap().main_thread;
        assert_eq!(shown.long_tasks, [(700.0, 90.0)]);
        assert_eq!(shown.long_task_count, 1);
        let summary = load().judge(CHECK).summary;
        assert_eq!(summary.as_deref(), Some("1 long task found."));
        let work = load().judge(mainthread_work_breakdown::CHECK).figure;
        assert_eq!(
            work.unwrap().value.round(),
            shown.total_ms.iter().sum::<f64>()
        );
        let drawn: u32 = shown.slices.iter().flatten().sum();
        assert!((134..=136).contains(&drawn), "{drawn} ms are drawn");
        let traced = shown.as_traced.unwrap();
        assert_eq!(traced.long_task_count, 2);
        assert_eq!(traced.total_ms.iter().sum::<f64>(), 180.0);
    }

    #[test]
    fn short_tasks_are_not_listed() {
        let short = PageLoad::new().task(500, 49, "https://a.test/a.js");
        assert_eq!(short.judge(CHECK).verdict, Verdict::NotApplicable);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
