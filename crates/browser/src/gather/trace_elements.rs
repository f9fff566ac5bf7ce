//! The elements that the trace names by number: what was painted largest, what moved, what was animated.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::scripted::NODES;
use super::{Gathered, gathered, missing};
use crate::visit::{Caller, Evaluated};

const DEADLINE: Duration = Duration::from_secs(3);

#[derive(Deserialize)]
struct Resolved {
    object: RemoteObject,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemoteObject {
    object_id: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Element {
    node_id: i64,
    node: Box<RawValue>,
}

/// A node that has gone is left out.
pub(super) async fn gather(page: &Caller, nodes: Vec<i64>) -> Gathered {
    let context = page
        .world(DEADLINE)
        .await
        .map_err(|error| missing(&error))?;
    let asked: Vec<_> = nodes
        .iter()
        .map(|node| {
            let params = json!({"backendNodeId": node, "executionContextId": context});
            page.call_within::<Resolved>(DEADLINE, "DOM.resolveNode", params)
        })
        .collect();
    let mut found = Vec::new();
    for (node_id, answer) in nodes.into_iter().zip(asked) {
        let object = answer.await.ok();
        if let Some(id) = object.and_then(|resolved| resolved.object.object_id) {
            found.push((node_id, json!({"objectId": id})));
        }
    }
    if found.is_empty() {
        return gathered::<[Element]>(&[]);
    }
    let (ids, objects): (Vec<i64>, Vec<_>) = found.into_iter().unzip();
    let describe = format!(
        "function (...nodes) {{
           const {{describe}} = {NODES};
           return nodes.map((node) => {{ try {{ return describe(node); }} catch {{ return null; }} }});
         }}"
    );
    let params = json!({"functionDeclaration": describe, "executionContextId": context,
        "arguments": objects, "returnByValue": true});
    let method = "Runtime.callFunctionOn";
    let described: Evaluated<Vec<Option<Box<RawValue>>>> = page
        .call_within(DEADLINE, method, params)
        .await
        .map_err(|error| missing(&error))?;
    let described = described.value(method).map_err(|error| missing(&error))?;
    let elements: Vec<Element> = ids
        .into_iter()
        .zip(described)
        .filter_map(|(node_id, node)| {
            Some(Element {
                node_id,
                node: node?,
            })
        })
        .collect();
    gathered(&elements)
}
