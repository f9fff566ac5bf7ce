use plumbline_trace::WorkKind;

use super::seconds;
use crate::checks::{Cell, Findings, Outcome, Row, Savings, Unit, check};
use crate::facts::{DeviceWork, Facts, Missing, TRACE};
use crate::metrics::Measured;
use crate::scoring::Curve;

check! {
    /// # What
    /// What the main thread spent its time on, by kind of work.
    ///
    /// # Why
    /// One thread parses, styles, lays out, paints and runs scripts: what one takes, the others wait for.
    ///
    /// # Scored
    /// Passes up to about 2 s in all (0.9 on a curve through 2,017 ms and 4,000 ms).
    ///
    /// # Fix
    /// Load less script, simplify styles and the document, and move work to a worker.
    ///
    /// # Source
    /// Lighthouse 13.5, `mainthread-work-breakdown`, with observed rather than simulated times, as long as the
    /// device would have taken.
    id: "mainthread-work-breakdown",
    pass: "The main thread has little to do",
    fail: "The main thread has much to do",
    needs: [TRACE],
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
    for work in &work.0 {
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
    let summary = format!("{} of work.", seconds(total_ms));
    let outcome = match CURVE.score(total_ms) >= PASSES {
        true => Outcome::pass().because(summary),
        false => Outcome::fail(summary),
    };
    let outcome = outcome.measuring(total_ms, Unit::Ms);
    Ok(outcome.with(table.into()).saving(Savings {
        tbt_ms: facts.get::<Measured>()?.tbt.ok(),
        ..Savings::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    #[test]
    fn two_seconds_of_work_are_enough() {
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
