//! Which request waited for which, in the shape that Lighthouse's renderer draws as a tree.

use serde_json::{Map, Value, json};

/// The chains among the findings of `network-dependency-tree-insight`: its first part. None where it is not of that
/// shape.
pub(super) fn network_tree(details: &Value) -> Option<Value> {
    let root = details["items"][0]["rows"].as_array()?.first()?;
    let until_ms = until_ms(root);
    let mut number = 0;
    Some(json!({
        "type": "list-section",
        "value": {
            "type": "network-tree",
            "chains": chains(std::slice::from_ref(root), Some(until_ms), &mut number),
            "longestChain": { "duration": until_ms },
        },
    }))
}

fn own_ms(row: &Value) -> f64 {
    row["cells"][2]["ms"].as_f64().unwrap_or_default()
}

fn below(row: &Value) -> &[Value] {
    row["subRows"].as_array().map_or(&[], Vec::as_slice)
}

fn until_ms(row: &Value) -> f64 {
    below(row).iter().map(until_ms).fold(own_ms(row), f64::max)
}

/// The first that lasts until `longest_ms` is on the longest chain; below the others nothing is.
fn chains(rows: &[Value], longest_ms: Option<f64>, number: &mut u32) -> Map<String, Value> {
    let longest =
        longest_ms.and_then(|longest_ms| rows.iter().position(|row| until_ms(row) == longest_ms));
    let mut chains = Map::new();
    for (at, row) in rows.iter().enumerate() {
        *number += 1;
        let id = number.to_string();
        let is_longest = longest == Some(at);
        let chain = json!({
            "url": row["cells"][0]["url"],
            "navStartToEndTime": own_ms(row),
            "transferSize": row["cells"][1]["bytes"],
            "isLongest": is_longest,
            "children": chains_below(row, longest_ms.filter(|_| is_longest), number),
        });
        chains.insert(id, chain);
    }
    chains
}

fn chains_below(row: &Value, longest_ms: Option<f64>, number: &mut u32) -> Map<String, Value> {
    chains(below(row), longest_ms, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(url: &str, ms: f64, below: Vec<Value>) -> Value {
        json!({ "cells": [{ "url": url }, { "bytes": 10.0 }, { "ms": ms }], "subRows": below })
    }

    #[test]
    fn the_longest_chain_is_marked_down_to_its_end() {
        let root = row(
            "d",
            100.0,
            vec![
                row("a", 150.0, vec![row("b", 300.0, vec![])]),
                row("c", 200.0, vec![]),
            ],
        );
        let tree = network_tree(&json!({ "items": [{ "rows": [root] }] })).unwrap();
        let tree = &tree["value"];
        assert_eq!(tree["longestChain"]["duration"], 300.0);
        let document = &tree["chains"]["1"];
        assert_eq!(document["isLongest"], true);
        assert_eq!(
            document["children"]["2"]["children"]["3"]["isLongest"],
            true
        );
        assert_eq!(document["children"]["4"]["isLongest"], false);
        assert_eq!(network_tree(&json!({})), None);
    }
}
