//! How much of each script ran while the page loaded.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::visit::Caller;

const DEADLINE: Duration = Duration::from_secs(10);

/// How much ran, and which parts did not: from where to where, in order and apart.
#[derive(Debug, Clone, Default)]
pub(super) struct Ran {
    pub(super) coverage: Coverage,
    pub(super) unused: Vec<(u64, u64)>,
}

/// In UTF-16 units; `total` reaches to the end of the last function that V8 knows of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Coverage {
    pub(super) total: u64,
    pub(super) unused: u64,
}

#[derive(Deserialize)]
struct Taken {
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

/// By the id of the script, and stops counting: what is sent from here on is ours. Scripts made at run time have no
/// address and are left out. Empty where it cannot be had: then scripts are listed without.
pub(super) fn take(page: &Caller) -> impl Future<Output = HashMap<String, Ran>> + use<> {
    let taken = page.call_within::<Taken>(DEADLINE, "Profiler.takePreciseCoverage", json!({}));
    // Calls are answered one after the other: what has been taken is not lost.
    for method in ["Profiler.stopPreciseCoverage", "Profiler.disable"] {
        page.send(method, json!({}));
    }
    async move {
        match taken.await {
            Ok(taken) => taken
                .result
                .into_iter()
                .filter(|script| !script.url.is_empty())
                .map(|script| (script.script_id, ran(&script.functions)))
                .collect(),
            Err(error) => {
                tracing::debug!(%error, "no coverage");
                HashMap::new()
            }
        }
    }
}

fn ran(functions: &[Function]) -> Ran {
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
    Ran { coverage, unused }
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
        let found = ran(&[
            function(0, 100, 1),
            function(10, 30, 0),
            function(15, 20, 0),
            function(25, 40, 0),
            function(50, 60, 1),
        ]);
        assert_eq!(found.unused, [(10, 40)]);
        assert_eq!(
            found.coverage,
            Coverage {
                total: 100,
                unused: 30
            }
        );
        assert_eq!(ran(&[]).coverage, Coverage::default());
    }
}
