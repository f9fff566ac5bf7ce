use std::collections::HashMap;

use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};
use plumbline_model::scoring::Curve;
use plumbline_trace::{Trace, WorkKind, WorkSpan};

use super::{attribution_cell, format_duration};
use crate::checks::{Outcome, check};
use crate::facts::{Attribution, DeviceWork, Facts, Missing, ScriptUrls};
use crate::metrics::Measured;
use crate::metrics::tbt::BLOCKING_MS;

check! {
    /// # What
    /// How long the main thread was busy parsing, compiling and running each script.
    ///
    /// # Why
    /// Scripts cost more than their download: the page cannot respond to input while they run.
    ///
    /// # Scored
    /// Adds up scripts that took at least 50 ms. Passes up to about 1.3 s (a score of 0.9 on a
    /// curve through 1,282 ms and 3,500 ms). Not applicable when no script took that long.
    ///
    /// # Fix
    /// Ship less JavaScript, split bundles so that only the code needed first is loaded first, and
    /// remove unused code.
    ///
    /// # Source
    /// Lighthouse 13.5, `bootup-time`, with observed rather than simulated times, scaled to the
    /// emulated device.
    id: "bootup-time",
    pass: "JavaScript execution time is low",
    fail: "JavaScript execution time is high",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/bootup-time/",
    run: run,
}

const CURVE: Curve = Curve {
    p10: 1282.0,
    median: 3500.0,
};
const PASSES: f64 = 0.9;
const LISTED_FROM_MS: f64 = 50.0;

#[derive(Default, Clone, Copy)]
struct ScriptTime {
    total_ms: f64,
    running_ms: f64,
    parsing_ms: f64,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let scripts = facts.get::<ScriptUrls>()?;
    let work = facts.get::<DeviceWork>()?;
    let mut listed = script_times(&work.spans, &scripts);
    listed.retain(|(_, spent)| spent.total_ms >= LISTED_FROM_MS);
    if listed.is_empty() {
        return Ok(Outcome::not_applicable());
    }
    listed.sort_by(|a, b| b.1.total_ms.total_cmp(&a.1.total_ms));
    let bootup_ms: f64 = listed
        .iter()
        .map(|(_, spent)| spent.running_ms + spent.parsing_ms)
        .sum();
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("total", "Total", Unit::Ms),
        ("scripting", "Evaluation", Unit::Ms),
        ("scriptParseCompile", "Parsing", Unit::Ms),
    ])
    .rows(listed.into_iter().map(|(attribution, spent)| {
        Row::new([
            attribution_cell(attribution),
            Cell::Ms(spent.total_ms),
            Cell::Ms(spent.running_ms),
            Cell::Ms(spent.parsing_ms),
        ])
    }));
    let summary = format!("JavaScript takes {} to run.", format_duration(bootup_ms));
    let outcome = if CURVE.score(bootup_ms) >= PASSES {
        Outcome::pass().with_summary(summary)
    } else {
        Outcome::fail(summary)
    };
    let outcome = outcome.with_figure(bootup_ms, Unit::Ms);
    Ok(outcome.with(table.into()).with_savings(Savings {
        tbt_ms: blocked_by_scripts_ms(&trace, &work.spans, facts.get::<Measured>()?.as_ref()),
        ..Savings::default()
    }))
}

fn is_script(work: &WorkSpan) -> bool {
    matches!(
        work.kind,
        WorkKind::ScriptEvaluation | WorkKind::ScriptParsing
    )
}

fn script_times<'w>(
    all: &'w [WorkSpan],
    scripts: &ScriptUrls,
) -> Vec<(Attribution<'w>, ScriptTime)> {
    let mut order: Vec<(Attribution, ScriptTime)> = Vec::new();
    let mut index_by_attribution: HashMap<Attribution, usize> = HashMap::new();
    for work in all {
        let attribution = scripts.attribution(work);
        let at = *index_by_attribution.entry(attribution).or_insert_with(|| {
            order.push((attribution, ScriptTime::default()));
            order.len() - 1
        });
        let spent = &mut order[at].1;
        let self_ms = work.self_us / 1000.0;
        spent.total_ms += self_ms;
        match work.kind {
            WorkKind::ScriptEvaluation => spent.running_ms += self_ms,
            WorkKind::ScriptParsing => spent.parsing_ms += self_ms,
            _ => {}
        }
    }
    order
}

/// Returns the part of the blocking time that scripts cause (Lighthouse,
/// core/computed/tbt-impact-tasks.js): the time by which a top-level task exceeds 50 ms is
/// attributed to the tasks nested in it by their duration.
fn blocked_by_scripts_ms(trace: &Trace, all: &[WorkSpan], measured: &Measured) -> Option<f64> {
    let (from_ms, until_ms) = (measured.fcp.ok()?, measured.tti.ok()?);
    let mut tops: Vec<usize> = Vec::with_capacity(all.len());
    let mut impacts: Vec<f64> = Vec::with_capacity(all.len());
    for (at, work) in all.iter().enumerate() {
        let top = work.parent.map_or(at, |parent| tops[parent]);
        tops.push(top);
        let share = work.duration_us() / all[top].duration_us();
        let threshold_ms = BLOCKING_MS * share;
        let start_ms = trace.since_origin_ms(work.start_us).max(from_ms);
        let end_ms = trace.since_origin_ms(work.end_us).min(until_ms);
        let overlap_ms = end_ms - start_ms;
        let counts = work.duration_us() / 1000.0 >= threshold_ms && overlap_ms >= threshold_ms;
        impacts.push(if counts {
            overlap_ms - threshold_ms
        } else {
            0.0
        });
    }
    let mut own = impacts.clone();
    for (at, work) in all.iter().enumerate() {
        if let Some(parent) = work.parent {
            own[parent] -= impacts[at];
        }
    }
    let scripts = all.iter().zip(own).filter(|(work, _)| is_script(work));
    Some(scripts.map(|(_, own_ms)| own_ms.max(0.0)).sum())
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    const SCRIPT: &str = "https://a.test/a.js";

    #[test]
    fn cpu_contention_is_not_attributed_to_a_script() {
        let task = || PageLoad::new().script(SCRIPT).task(500, 90, SCRIPT);
        assert_eq!(task().judge(CHECK).verdict, Verdict::Pass);
        let disturbed = |until_ms| task().with_contention(510, until_ms).judge(CHECK).verdict;
        assert_eq!(disturbed(549), Verdict::Pass);
        assert_eq!(disturbed(551), Verdict::NotApplicable);
    }

    #[test]
    fn script_time_above_the_threshold_fails() {
        let busy = |ms| {
            PageLoad::new()
                .script(SCRIPT)
                .task(500, ms, SCRIPT)
                .judge(CHECK)
        };
        assert_eq!(busy(49).verdict, Verdict::NotApplicable);
        assert_eq!(busy(1200).verdict, Verdict::Pass);
        assert_eq!(busy(1400).verdict, Verdict::Fail);
        let text = serde_json::to_string(&busy(1400).details).unwrap();
        assert!(text.contains(SCRIPT), "{text}");
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
