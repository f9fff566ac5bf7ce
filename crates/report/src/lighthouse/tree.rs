//! The chains of critical requests, in the format that Lighthouse's renderer draws as a tree.

use serde_json::{Map, Value, json};

/// Returns the chains in the details of `network-dependency-tree-insight`, which are its first
/// part. Returns `None` if the details have another format.
pub(super) fn network_tree(details: &Value) -> Option<Value> {
    let root = details["items"][0]["rows"].as_array()?.first()?;
    let end_ms = end_ms(root);
    let mut number = 0;
    Some(json!({
        "type": "list-section",
        "value": {
            "type": "network-tree",
            "chains": chains(std::slice::from_ref(root), Some(end_ms), &mut number),
            "longestChain": { "duration": end_ms },
        },
    }))
}

/// The end of the request itself.
fn own_ms(row: &Value) -> f64 {
    row["cells"][2]["ms"].as_f64().unwrap_or_default()
}

fn children(row: &Value) -> &[Value] {
    row["subRows"].as_array().map_or(&[], Vec::as_slice)
}

/// The end of the latest request of the chain.
fn end_ms(row: &Value) -> f64 {
    children(row).iter().map(end_ms).fold(own_ms(row), f64::max)
}

/// Converts rows and their children. The first row whose chain ends at `longest_ms` is on the
/// longest chain.
fn chains(rows: &[Value], longest_ms: Option<f64>, number: &mut u32) -> Map<String, Value> {
    let longest =
        longest_ms.and_then(|longest_ms| rows.iter().position(|row| end_ms(row) == longest_ms));
    let mut converted = Map::new();
    for (index, row) in rows.iter().enumerate() {
        *number += 1;
        let id = number.to_string();
        let is_longest = longest == Some(index);
        let chain = json!({
            "url": row["cells"][0]["url"],
            "navStartToEndTime": own_ms(row),
            "transferSize": row["cells"][1]["bytes"],
            "isLongest": is_longest,
            "children": chains(children(row), longest_ms.filter(|_| is_longest), number),
        });
        converted.insert(id, chain);
    }
    converted
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
