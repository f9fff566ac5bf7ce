use std::collections::{HashMap, HashSet};

use plumbline_trace::{CodePlace, ForcedReflow, Trace};

use super::seconds;
use crate::checks::{Cell, Details, Findings, Outcome, Row, SourcePlace, Unit, check};
use crate::facts::{Facts, Missing, TRACE};
use crate::metrics::processor::Processor;
use crate::report::Conditions;

check! {
    /// # What
    /// Scripts that made the browser compute styles or layout in the middle of their run, and for how long.
    ///
    /// # Why
    /// Reading a size or a position after changing the page forces that work at once, often again and again.
    ///
    /// # Scored
    /// Fails when a task spent 30 ms or more on such work, as long as a processor takes that is not slowed down for the
    /// device.
    ///
    /// # Fix
    /// Read sizes and positions first, then change the page; put off reading to the next frame
    /// (`requestAnimationFrame`).
    ///
    /// # Source
    /// Lighthouse 13.5, `forced-reflow-insight` (trace_engine, insights/ForcedReflow.js and
    /// handlers/WarningsHandler.js). Its load is not slowed down, so neither is what counts as long. It takes layout for
    /// forced that falls into another thread's parsing of a script; here the script has to be on the thread itself.
    id: "forced-reflow-insight",
    pass: "No script forces long style or layout work",
    fail: "Scripts force style and layout work",
    needs: [TRACE],
    run: run,
}

/// Of a task, on a processor that is not slowed down.
const LONG_US: f64 = 30_000.0;

/// Reflows at one place in the code.
struct Spot<'t> {
    place: Option<&'t CodePlace>,
    total_us: f64,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let origin_us = trace.navigation.time_origin_us;
    let long = long_tasks(facts, &trace.reflows);
    let ours = |reflow: &&ForcedReflow| {
        long.contains(&reflow.task)
            && reflow.frame.as_ref() == Some(&trace.frames.main_id)
            && origin_us < reflow.start_us + reflow.dur_us
    };
    let reflows: Vec<&ForcedReflow> = trace.reflows.iter().filter(ours).collect();
    if reflows.is_empty() {
        return Ok(Outcome::pass());
    }
    let spots = spots(reflows.iter().map(|of| (of.place.as_ref(), of.dur_us)));
    let functions = reflows
        .iter()
        .filter_map(|of| Some((Some(of.called.as_ref()?), of.dur_us)));
    let mut top: Option<Spot> = None;
    for function in self::spots(functions) {
        if top
            .as_ref()
            .is_none_or(|most| function.total_us > most.total_us)
        {
            top = Some(function);
        }
    }
    let total_ms = reflows.iter().map(|of| of.dur_us).sum::<f64>() / 1000.0;
    let tables = top
        .into_iter()
        .map(|top| table("Function that forced most", [top]));
    let details = Details::parts(tables.chain([table("Source", spots)]));
    Ok(Outcome::fail(format!(
        "Scripts forced {} of style and layout work.",
        seconds(total_ms)
    ))
    .with(details))
}

/// The tasks whose reflows take long together, on a processor that is not slowed down: by the thread's own clock where a
/// pacer held the page back, else by what it was slowed down by.
fn long_tasks(facts: &Facts, reflows: &[ForcedReflow]) -> HashSet<usize> {
    let is_paced = facts.get::<Processor>().is_ok_and(|of| of.is_paced());
    let slowed_by = facts.get::<Conditions>().map_or(1.0, |of| of.cpu.rate);
    let mut work_us: HashMap<usize, f64> = HashMap::new();
    for reflow in reflows {
        let cpu_us = reflow.cpu_us.filter(|_| is_paced);
        *work_us.entry(reflow.task).or_default() += cpu_us.unwrap_or(reflow.dur_us / slowed_by);
    }
    let long = work_us.into_iter().filter(|(_, us)| *us >= LONG_US);
    long.map(|(task, _)| task).collect()
}

/// Summed up by place, in the order in which the places were met.
fn spots<'t>(found: impl Iterator<Item = (Option<&'t CodePlace>, f64)>) -> Vec<Spot<'t>> {
    let key =
        |place: Option<&'t CodePlace>| place.map(|of| (of.script_id.as_str(), of.line, of.column));
    let mut spots: Vec<Spot> = Vec::new();
    for (place, dur_us) in found {
        match spots.iter_mut().find(|spot| key(spot.place) == key(place)) {
            Some(spot) => spot.total_us += dur_us,
            None => spots.push(Spot {
                place,
                total_us: dur_us,
            }),
        }
    }
    spots
}

fn table<'t>(label: &str, spots: impl IntoIterator<Item = Spot<'t>>) -> Details {
    let cell = |spot: &Spot| match spot.place {
        None => Cell::text("Unattributed"),
        Some(place) => Cell::Source(SourcePlace {
            url: place.url.clone(),
            line: u32::try_from(place.line).unwrap_or(0),
            column: u32::try_from(place.column).unwrap_or(0),
            function: place.function.clone(),
        }),
    };
    Findings::new([
        ("source", label, Unit::Source),
        ("reflowTime", "Reflow time", Unit::Ms),
    ])
    .rows(
        spots
            .into_iter()
            .map(|spot| Row::new([cell(&spot), Cell::Ms(spot.total_us / 1000.0)])),
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::Verdict;
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
    fn what_a_pacer_or_a_neighbour_took_of_the_core_is_not_work() {
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
    fn thirty_milliseconds_in_a_task_are_too_many() {
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
