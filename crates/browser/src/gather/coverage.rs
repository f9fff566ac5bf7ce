//! JavaScript coverage: how much of each script ran while the page loaded.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::page::Caller;

const DEADLINE: Duration = Duration::from_secs(10);

/// Coverage of a script, and the ranges that did not run, in order and without overlap.
#[derive(Debug, Clone, Default)]
pub(super) struct ScriptCoverage {
    pub(super) coverage: Coverage,
    pub(super) unused: Vec<(u64, u64)>,
}

/// Coverage in UTF-16 units; `total` reaches to the end of the last function that V8 knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Coverage {
    pub(super) total: u64,
    pub(super) unused: u64,
}

#[derive(Deserialize)]
struct CoverageResult {
    result: Vec<Script>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Script {
    script_id: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    functions: Vec<Function>,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    ranges: Vec<Range>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Range {
    start_offset: u64,
    end_offset: u64,
    count: u64,
}

/// Takes the coverage by script id and stops counting, because later scripts are our own. Scripts
/// created at run time have no URL and are left out. Empty if it is unavailable: scripts are then
/// listed without it.
pub(super) fn take(page: &Caller) -> impl Future<Output = HashMap<String, ScriptCoverage>> + use<> {
    let call =
        page.call_within::<CoverageResult>(DEADLINE, "Profiler.takePreciseCoverage", json!({}));
    // Calls are answered in order: the coverage taken before is not lost.
    for method in ["Profiler.stopPreciseCoverage", "Profiler.disable"] {
        page.send(method, json!({}));
    }
    async move {
        match call.await {
            Ok(coverage) => coverage
                .result
                .into_iter()
                .filter(|script| !script.url.is_empty())
                .map(|script| (script.script_id, coverage_of(&script.functions)))
                .collect(),
            Err(error) => {
                tracing::debug!(%error, "no coverage");
                HashMap::new()
            }
        }
    }
}

fn coverage_of(functions: &[Function]) -> ScriptCoverage {
    let ranges = || functions.iter().flat_map(|function| &function.ranges);
    let mut uncalled: Vec<(u64, u64)> = ranges()
        .filter(|range| range.count == 0)
        .map(|range| (range.start_offset, range.end_offset))
        .collect();
    uncalled.sort_unstable();
    let mut unused: Vec<(u64, u64)> = Vec::new();
    for (start, end) in uncalled {
        match unused.last_mut() {
            Some((_, to)) if start <= *to => *to = end.max(*to),
            _ => unused.push((start, end)),
        }
    }
    let coverage = Coverage {
        total: ranges().map(|range| range.end_offset).max().unwrap_or(0),
        unused: unused
            .iter()
            .map(|(start, end)| end.saturating_sub(*start))
            .sum(),
    };
    ScriptCoverage { coverage, unused }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_within_unused_ones_count_once() {
        let function = |start_offset, end_offset, count| Function {
            ranges: vec![Range {
                start_offset,
                end_offset,
                count,
            }],
        };
        let result = coverage_of(&[
            function(0, 100, 1),
            function(10, 30, 0),
            function(15, 20, 0),
            function(25, 40, 0),
            function(50, 60, 1),
        ]);
        assert_eq!(result.unused, [(10, 40)]);
        assert_eq!(
            result.coverage,
            Coverage {
                total: 100,
                unused: 30
            }
        );
        assert_eq!(coverage_of(&[]).coverage, Coverage::default());
    }
}
