use std::collections::{HashMap, HashSet};

use plumbline_model::check::{Cell, Details, Findings, Row, SourceLocation, Unit};
use plumbline_model::report::Conditions;
use plumbline_trace::{CodeLocation, ForcedReflow, Trace};

use super::format_duration;
use crate::checks::{Outcome, check};
use crate::facts::{DeviceWork, Facts, Missing, OriginalPlaces};
use crate::metrics::processor::Processor;

check! {
    /// # What
    /// Scripts that forced the browser to compute styles or layout synchronously, and for how long.
    ///
    /// # Why
    /// Reading a size or a position after changing the DOM forces this work immediately, often
    /// repeatedly.
    ///
    /// # Scored
    /// Fails when a task spent 30 ms or more on forced reflows, measured on a CPU without slowdown.
    ///
    /// # Fix
    /// Read sizes and positions first, then change the DOM, or defer reading to the next frame
    /// (`requestAnimationFrame`).
    ///
    /// # Source
    /// Lighthouse 13.5, `forced-reflow-insight` (trace_engine, insights/ForcedReflow.js and
    /// handlers/WarningsHandler.js). Lighthouse loads the page without CPU slowdown, so its
    /// threshold is applied to times without slowdown. It also counts layout that overlaps script
    /// parsing on another thread; here the script has to run on the same thread.
    id: "forced-reflow-insight",
    pass: "No long forced reflow",
    fail: "Forced reflow",
    learn: "https://developer.chrome.com/docs/performance/insights/forced-reflow",
    run: run,
}

/// The reflow time from which a task counts as long, on a CPU without slowdown.
const LONG_US: f64 = 30_000.0;

/// The total reflow time of one position in the code.
struct ReflowLocation<'t> {
    place: Option<&'t CodeLocation>,
    total_us: f64,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let origin_us = trace.navigation.time_origin_us;
    let long = long_tasks(facts, &trace.reflows);
    let is_counted = |reflow: &&ForcedReflow| {
        long.contains(&reflow.task)
            && reflow.frame.as_ref() == Some(&trace.frames.main_id)
            && origin_us < reflow.start_us + reflow.dur_us
    };
    let reflows: Vec<&ForcedReflow> = trace.reflows.iter().filter(is_counted).collect();
    if reflows.is_empty() {
        return Ok(Outcome::pass());
    }
    let work = facts.get::<DeviceWork>()?;
    let on_device_us = |reflow: &ForcedReflow| reflow.dur_us * work.factor_at(reflow.start_us);
    let locations = locations(
        reflows
            .iter()
            .map(|reflow| (reflow.place.as_ref(), on_device_us(reflow))),
    );
    let functions = reflows
        .iter()
        .filter_map(|reflow| Some((Some(reflow.called.as_ref()?), on_device_us(reflow))));
    let mut top: Option<ReflowLocation> = None;
    for function in self::locations(functions) {
        if top
            .as_ref()
            .is_none_or(|largest| function.total_us > largest.total_us)
        {
            top = Some(function);
        }
    }
    let total_us: f64 = reflows.iter().map(|reflow| on_device_us(reflow)).sum();
    let total_ms = total_us / 1000.0;
    let tables = top
        .into_iter()
        .map(|top| table(facts, "Top function call", [top]));
    let details = Details::parts(tables.chain([table(facts, "Source", locations)]));
    Ok(Outcome::fail(format!(
        "Scripts forced {} of style and layout work.",
        format_duration(total_ms)
    ))
    .with(details))
}

/// Returns the tasks whose reflows together take long on a CPU without slowdown: by the thread's
/// CPU time where its work was sampled, otherwise by the duration.
fn long_tasks(facts: &Facts, reflows: &[ForcedReflow]) -> HashSet<usize> {
    let sampled = facts.get::<Processor>().ok();
    let sampled = sampled.and_then(|processor| processor.rate_beside_cpu_time());
    let slowed_by = facts
        .get::<Conditions>()
        .map_or(1.0, |conditions| conditions.cpu.rate);
    let mut work_us: HashMap<usize, f64> = HashMap::new();
    for reflow in reflows {
        let on_device_us = match (reflow.cpu_us, sampled) {
            (Some(cpu_us), Some(rate)) => cpu_us * rate,
            _ => reflow.dur_us,
        };
        *work_us.entry(reflow.task).or_default() += on_device_us / slowed_by;
    }
    let long = work_us.into_iter().filter(|(_, us)| *us >= LONG_US);
    long.map(|(task, _)| task).collect()
}

/// Sums up durations by position, in the order in which the positions first occur.
fn locations<'t>(
    reflows: impl Iterator<Item = (Option<&'t CodeLocation>, f64)>,
) -> Vec<ReflowLocation<'t>> {
    let key = |place: Option<&'t CodeLocation>| {
        place.map(|at| (at.script_id.as_str(), at.line, at.column))
    };
    let mut locations: Vec<ReflowLocation> = Vec::new();
    for (place, dur_us) in reflows {
        match locations
            .iter_mut()
            .find(|location| key(location.place) == key(place))
        {
            Some(location) => location.total_us += dur_us,
            None => locations.push(ReflowLocation {
                place,
                total_us: dur_us,
            }),
        }
    }
    locations
}

fn table<'t>(
    facts: &Facts,
    label: &str,
    locations: impl IntoIterator<Item = ReflowLocation<'t>>,
) -> Details {
    let cell = |location: &ReflowLocation| match location.place {
        None => Cell::text("Unattributed"),
        Some(place) => {
            let location = SourceLocation {
                url: place.url.clone(),
                line: u32::try_from(place.line).unwrap_or(0),
                column: u32::try_from(place.column).unwrap_or(0),
                function: place.function.clone(),
                original: None,
            };
            Cell::Source(OriginalPlaces::add_to(facts, location))
        }
    };
    Findings::new([
        ("source", label, Unit::Source),
        ("reflowTime", "Reflow time", Unit::Ms),
    ])
    .rows(
        locations
            .into_iter()
            .map(|location| Row::new([cell(&location), Cell::Ms(location.total_us / 1000.0)])),
    )
    .into()
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    #[test]
    fn a_slow_device_takes_longer_for_the_same_work() {
        let forced = |dur_ms| {
            PageLoad::new()
                .slowed_by(4.0)
                .forced_layout(500, dur_ms, "https://a.test/a.js")
                .judge(CHECK)
        };
        assert_eq!(forced(119).verdict, Verdict::Pass);
        assert_eq!(forced(120).verdict, Verdict::Fail);
    }

    #[test]
    fn time_lost_to_a_pacer_or_contention_is_not_work() {
        let forced = |cpu_ms| {
            PageLoad::new()
                .slowed_by(4.0)
                .paced()
                .forced_layout_of(500, 400, cpu_ms, "https://a.test/a.js")
                .judge(CHECK)
        };
        assert_eq!(forced(29).verdict, Verdict::Pass);
        assert_eq!(forced(30).verdict, Verdict::Fail);
    }

    #[test]
    fn processor_time_on_a_page_clock_contains_the_slowdown() {
        let forced = |cpu_ms| {
            PageLoad::new()
                .slowed_by(4.0)
                .with_page_clock()
                .forced_layout_of(500, 400, cpu_ms, "https://a.test/a.js")
                .judge(CHECK)
        };
        assert_eq!(forced(119).verdict, Verdict::Pass);
        assert_eq!(forced(120).verdict, Verdict::Fail);
    }

    #[test]
    fn thirty_milliseconds_in_a_task_fail() {
        let forced = |dur_ms| {
            PageLoad::new()
                .forced_layout(500, dur_ms, "https://a.test/a.js")
                .judge(CHECK)
        };
        let outcome = forced(30);
        assert_eq!(outcome.verdict, Verdict::Fail);
        let text = serde_json::to_string(&outcome.details.unwrap()).unwrap();
        assert!(text.contains("https://a.test/a.js"), "{text}");
        assert_eq!(forced(29).verdict, Verdict::Pass);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
