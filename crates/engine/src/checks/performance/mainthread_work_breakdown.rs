use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};
use plumbline_model::scoring::Curve;
use plumbline_trace::WorkKind;

use super::format_duration;
use crate::checks::{Outcome, check};
use crate::facts::{DeviceWork, Facts, Missing};
use crate::metrics::Measured;

check! {
    /// # What
    /// How long the main thread was busy, by kind of work.
    ///
    /// # Why
    /// Parsing, styling, layout, painting and scripts share one thread, which cannot respond to
    /// input meanwhile.
    ///
    /// # Scored
    /// Passes up to about 2 s in total (a score of 0.9 on a curve through 2,017 ms and 4,000 ms).
    ///
    /// # Fix
    /// Load less JavaScript, simplify styles and the DOM, and move work to a worker.
    ///
    /// # Source
    /// Lighthouse 13.5, `mainthread-work-breakdown`, with observed rather than simulated times,
    /// scaled to the emulated device.
    id: "mainthread-work-breakdown",
    pass: "Main-thread work is low",
    fail: "Main-thread work is high",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/mainthread-work-breakdown/",
    run: run,
}

const CURVE: Curve = Curve {
    p10: 2017.0,
    median: 4000.0,
};
const PASSES: f64 = 0.9;

fn label(kind: WorkKind) -> &'static str {
    match kind {
        WorkKind::ParseHtml => "Parsing HTML and CSS",
        WorkKind::StyleAndLayout => "Style and layout",
        WorkKind::Rendering => "Rendering",
        WorkKind::ScriptParsing => "Script parsing and compilation",
        WorkKind::ScriptEvaluation => "Script evaluation",
        WorkKind::GarbageCollection => "Garbage collection",
        WorkKind::Other => "Other",
    }
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let work = facts.get::<DeviceWork>()?;
    let mut kinds: Vec<(WorkKind, f64)> = Vec::new();
    for work in &work.spans {
        let self_ms = work.self_us / 1000.0;
        match kinds.iter_mut().find(|(kind, _)| *kind == work.kind) {
            Some((_, total_ms)) => *total_ms += self_ms,
            None => kinds.push((work.kind, self_ms)),
        }
    }
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    let total_ms: f64 = kinds.iter().map(|(_, ms)| ms).sum();
    let table = Findings::new([
        ("groupLabel", "Kind of work", Unit::Text),
        ("duration", "Time spent", Unit::Ms),
    ])
    .rows(
        kinds
            .into_iter()
            .map(|(kind, ms)| Row::new([Cell::text(label(kind)), Cell::Ms(ms)])),
    );
    let summary = format!("The main thread is busy for {}.", format_duration(total_ms));
    let outcome = if CURVE.score(total_ms) >= PASSES {
        Outcome::pass().with_summary(summary)
    } else {
        Outcome::fail(summary)
    };
    let outcome = outcome.with_figure(total_ms, Unit::Ms);
    Ok(outcome.with(table.into()).with_savings(Savings {
        tbt_ms: facts.get::<Measured>()?.tbt.ok(),
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
    fn more_than_two_seconds_of_work_fail() {
        let busy = |ms| {
            PageLoad::new()
                .task(500, ms, "https://a.test/a.js")
                .judge(CHECK)
        };
        assert_eq!(busy(1900).verdict, Verdict::Pass);
        assert_eq!(busy(2100).verdict, Verdict::Fail);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
