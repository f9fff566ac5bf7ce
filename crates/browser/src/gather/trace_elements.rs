//! The elements that the trace names by number: what was painted largest, what moved, what was animated.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::scripted::NODES;
use super::{Gathered, gathered, missing};
use crate::protocol::CallError;
use crate::visit::{Caller, Evaluated};

const DEADLINE: Duration = Duration::from_secs(3);

/// Advertisements come in dozens; what they move is listed of the first.
const MAX_FRAMES: usize = 10;
const MAX_NODES_IN_FRAMES: usize = 100;

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

/// The frames that the page's own process shows inside it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame: Frame,
    #[serde(default)]
    child_frames: Vec<FrameTree>,
}

#[derive(Deserialize)]
struct Frame {
    id: String,
}

/// A node that has gone is left out, and so is one that frames hold who come after the first few.
pub(super) async fn gather(page: &Caller, nodes: Vec<i64>) -> Gathered {
    let context = page
        .world(DEADLINE)
        .await
        .map_err(|error| missing(&error))?;
    let (mut elements, left) = described(page, context, nodes)
        .await
        .map_err(|e| missing(&e))?;
    if !left.is_empty() {
        let given_up = Instant::now() + DEADLINE;
        in_frames(page, left, given_up, &mut elements).await;
    }
    gathered(&elements)
}

/// As far as time allows: what the main frame holds is known by now.
async fn in_frames(
    page: &Caller,
    mut left: Vec<i64>,
    given_up: Instant,
    elements: &mut Vec<Element>,
) {
    let remaining = || given_up.saturating_duration_since(Instant::now());
    left.truncate(MAX_NODES_IN_FRAMES);
    for frame in frames_inside(page).await {
        if left.is_empty() {
            return;
        }
        // A frame that has gone meanwhile has no world.
        let Ok(context) = page.world_in(&frame, remaining()).await else {
            continue;
        };
        let looking = described(page, context, left.clone());
        let Ok(Ok((found, rest))) = tokio::time::timeout(remaining(), looking).await else {
            return;
        };
        elements.extend(found);
        left = rest;
    }
}

/// Their ids, from the outside in; none where Chromium does not tell.
async fn frames_inside(page: &Caller) -> Vec<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        frame_tree: FrameTree,
    }
    let answer = page.call_within::<Answer>(DEADLINE, "Page.getFrameTree", json!({}));
    let mut trees = answer
        .await
        .map_or_else(|_| Vec::new(), |answer| answer.frame_tree.child_frames);
    let mut ids = Vec::new();
    while !trees.is_empty() && ids.len() < MAX_FRAMES {
        let mut inner = Vec::new();
        for tree in trees {
            ids.push(tree.frame.id);
            inner.extend(tree.child_frames);
        }
        trees = inner;
    }
    ids.truncate(MAX_FRAMES);
    ids
}

/// Those of the nodes that stand in the document of this context, and the numbers of the others.
async fn described(
    page: &Caller,
    context: i64,
    nodes: Vec<i64>,
) -> Result<(Vec<Element>, Vec<i64>), CallError> {
    let asked: Vec<_> = nodes
        .iter()
        .map(|node| {
            let params = json!({"backendNodeId": node, "executionContextId": context});
            page.call_within::<Resolved>(DEADLINE, "DOM.resolveNode", params)
        })
        .collect();
    let (mut ids, mut objects, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (node_id, answer) in nodes.into_iter().zip(asked) {
        let object = answer.await.ok();
        match object.and_then(|resolved| resolved.object.object_id) {
            Some(id) => {
                ids.push(node_id);
                objects.push(json!({"objectId": id}));
            }
            None => others.push(node_id),
        }
    }
    if ids.is_empty() {
        return Ok((Vec::new(), others));
    }
    let describe = format!(
        "function (...nodes) {{
           const {{describe}} = {NODES};
           return nodes.map((node) => {{ try {{ return describe(node); }} catch {{ return null; }} }});
         }}"
    );
    let params = json!({"functionDeclaration": describe, "executionContextId": context,
        "arguments": objects, "returnByValue": true});
    let method = "Runtime.callFunctionOn";
    let described: Evaluated<Vec<Option<Box<RawValue>>>> =
        page.call_within(DEADLINE, method, params).await?;
    let elements = ids.into_iter().zip(described.value(method)?);
    let elements = elements.filter_map(|(node_id, node)| {
        Some(Element {
            node_id,
            node: node?,
        })
    });
    Ok((elements.collect(), others))
}
