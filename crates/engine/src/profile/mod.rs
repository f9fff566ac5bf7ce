//! The functions that a load spent its time in, from the trace of a visit with a sampling profiler.

mod call_tree;

use std::collections::HashMap;

use plumbline_bundle::{CodePlace, FunctionTime, ProfileRecords, ProfiledReflow, ProfiledTask};
use plumbline_trace::{CodeLocation, Trace, TraceError, WorkSpan};

use crate::facts::long_tasks;
use call_tree::{CallTree, Times};

/// The most long tasks that are listed.
const MAX_TASKS: usize = 20;
/// The most functions that are listed for a task.
const MAX_TASK_FUNCTIONS: usize = 5;
/// The most functions that are listed for the whole load.
const MAX_FUNCTIONS: usize = 10;
/// The most places of forced reflows that are listed.
const MAX_REFLOWS: usize = 10;
/// The shortest time that is listed: a few samples of the profiler.
const MIN_TIME_US: f64 = 1000.0;

/// Computes the records of a profiled load from its trace. They have no original places.
pub fn profile(trace: &[u8]) -> Result<ProfileRecords, TraceError> {
    let trace = Trace::read(trace)?;
    if trace.profiles.is_empty() {
        return Ok(ProfileRecords::failed("The browser wrote no profile."));
    }
    let origin_us = trace.navigation.time_origin_us;
    let tree = CallTree::of(&trace.profiles);
    let is_of_load = |work: &&WorkSpan| work.parent.is_none() && work.end_us > origin_us;
    let tasks = trace.work.iter().filter(is_of_load);
    let whole: Vec<(f64, f64)> = tasks.map(|work| (work.start_us, work.end_us)).collect();
    let whole = tree.times(whole);
    let mut long: Vec<&WorkSpan> = long_tasks(&trace.work).filter(is_of_load).collect();
    let task_count = u32::try_from(long.len()).unwrap_or(u32::MAX);
    long.sort_by(|a, b| b.duration_us().total_cmp(&a.duration_us()));
    long.truncate(MAX_TASKS);
    long.sort_by(|a, b| a.start_us.total_cmp(&b.start_us));
    let tasks = long.into_iter().map(|task| {
        let times = tree.times(vec![(task.start_us, task.end_us)]);
        ProfiledTask {
            start_ms: in_ms(task.start_us - origin_us),
            duration_ms: in_ms(task.duration_us()),
            functions: top_functions(&times, MAX_TASK_FUNCTIONS),
            path: tree.path(&times).into_iter().map(function_time).collect(),
        }
    });
    Ok(ProfileRecords {
        tasks: tasks.collect(),
        task_count,
        reflows: reflows(&trace, &tree),
        functions: top_functions(&whole, MAX_FUNCTIONS),
        script_ms: in_ms(whole.script_us),
        end_ms: in_ms(tree.end_us() - origin_us),
        error: None,
    })
}

/// Returns the functions with the most time of their own, the most expensive first.
fn top_functions(times: &Times<'_>, max: usize) -> Vec<FunctionTime> {
    let functions = times.functions.iter();
    let mut top: Vec<_> = functions
        .filter(|time| time.self_us >= MIN_TIME_US)
        .cloned()
        .collect();
    top.sort_by(|a, b| b.self_us.total_cmp(&a.self_us));
    top.truncate(max);
    top.into_iter().map(function_time).collect()
}

fn function_time(time: call_tree::FunctionTimes<'_>) -> FunctionTime {
    let function = CodePlace {
        function_at: Some((unsigned(time.function.line), unsigned(time.function.column))),
        ..place(time.function)
    };
    FunctionTime {
        self_ms: in_ms(time.self_us),
        total_ms: in_ms(time.total_us),
        hottest: time.hottest.map(|(line, column)| CodePlace {
            line: unsigned(line),
            column: unsigned(column),
            ..function.clone()
        }),
        function,
    }
}

fn place(location: &CodeLocation) -> CodePlace {
    CodePlace {
        function: location.function.clone(),
        url: location.url.clone(),
        line: unsigned(location.line),
        column: unsigned(location.column),
        original: None,
        script_id: location.script_id.clone(),
        function_at: None,
    }
}

/// Returns the places that forced styles and layout, the most expensive first.
fn reflows(trace: &Trace, tree: &CallTree<'_>) -> Vec<ProfiledReflow> {
    let origin_us = trace.navigation.time_origin_us;
    let mut by_place: HashMap<(&str, i64, i64), ProfiledReflow> = HashMap::new();
    for reflow in &trace.reflows {
        let Some(location) = &reflow.place else {
            continue;
        };
        if reflow.start_us + reflow.dur_us <= origin_us || location.url.is_empty() {
            continue;
        }
        let key = (location.script_id.as_str(), location.line, location.column);
        let sum = by_place.entry(key).or_insert_with(|| {
            let function = tree.function_around(location);
            ProfiledReflow {
                place: CodePlace {
                    function_at: function.map(|at| (unsigned(at.line), unsigned(at.column))),
                    ..place(location)
                },
                ..ProfiledReflow::default()
            }
        });
        sum.count += 1;
        sum.total_ms += reflow.dur_us / 1000.0;
    }
    let mut reflows: Vec<ProfiledReflow> = by_place.into_values().collect();
    let key = |of: &ProfiledReflow| (of.place.url.clone(), of.place.line, of.place.column);
    reflows.sort_by(|a, b| {
        let by_time = b.total_ms.total_cmp(&a.total_ms);
        by_time.then_with(|| key(a).cmp(&key(b)))
    });
    reflows.retain(|reflow| reflow.total_ms * 1000.0 >= MIN_TIME_US);
    reflows.truncate(MAX_REFLOWS);
    for reflow in &mut reflows {
        reflow.total_ms = in_ms(reflow.total_ms * 1000.0);
    }
    reflows
}

/// Returns milliseconds, rounded to tenths: the profiler takes samples less often.
fn in_ms(us: f64) -> f64 {
    (us / 100.0).round() / 10.0
}

fn unsigned(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests;
