//! Elements that the trace names by node id: largest paints, layout shifts, animations.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::scripted::NODES;
use super::{Gathered, error_text, to_artifact};
use crate::page::{Caller, EvaluateResponse};
use crate::protocol::CallError;

const DEADLINE: Duration = Duration::from_secs(3);

/// Maximum number of frames. Advertisements come in dozens; only those of the first frames are
/// described.
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

/// An element of the page and its node id in the protocol.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Element {
    pub(super) node_id: i64,
    pub(super) node: Box<RawValue>,
}

/// The frames inside the page's own process.
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

/// Describes the nodes. Nodes that are gone, or in frames beyond the maximum, are left out.
pub(super) async fn gather(page: &Caller, nodes: Vec<i64>) -> Gathered {
    let context = page
        .create_world(DEADLINE)
        .await
        .map_err(|error| error_text(&error))?;
    let (mut elements, remaining_nodes) = describe(page, context, nodes)
        .await
        .map_err(|e| error_text(&e))?;
    if !remaining_nodes.is_empty() {
        let deadline = Instant::now() + DEADLINE;
        in_frames(page, remaining_nodes, deadline, &mut elements).await;
    }
    to_artifact(&elements)
}

/// Describes nodes in frames as far as time allows, after those of the main frame.
async fn in_frames(
    page: &Caller,
    mut remaining_nodes: Vec<i64>,
    deadline: Instant,
    elements: &mut Vec<Element>,
) {
    let remaining = || deadline.saturating_duration_since(Instant::now());
    remaining_nodes.truncate(MAX_NODES_IN_FRAMES);
    for frame in frames_inside(page).await {
        if remaining_nodes.is_empty() {
            return;
        }
        // A frame that has gone meanwhile has no world.
        let Ok(context) = page.create_world_in(&frame, remaining()).await else {
            continue;
        };
        let describing = describe(page, context, remaining_nodes.clone());
        let Ok(Ok((frame_elements, rest))) = tokio::time::timeout(remaining(), describing).await
        else {
            return;
        };
        elements.extend(frame_elements);
        remaining_nodes = rest;
    }
}

/// Returns the frame ids from the outside in; empty if Chromium does not report them.
async fn frames_inside(page: &Caller) -> Vec<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        frame_tree: FrameTree,
    }
    let call = page.call_within::<Answer>(DEADLINE, "Page.getFrameTree", json!({}));
    let mut trees = call
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

/// Describes the nodes that are in the document of this context, and returns the ids of the others.
pub(super) async fn describe(
    page: &Caller,
    context: i64,
    nodes: Vec<i64>,
) -> Result<(Vec<Element>, Vec<i64>), CallError> {
    let calls: Vec<_> = nodes
        .iter()
        .map(|node| {
            let params = json!({"backendNodeId": node, "executionContextId": context});
            page.call_within::<Resolved>(DEADLINE, "DOM.resolveNode", params)
        })
        .collect();
    let (mut ids, mut objects, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (node_id, call) in nodes.into_iter().zip(calls) {
        let object = call.await.ok();
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
    let descriptions: EvaluateResponse = page.call_within(DEADLINE, method, params).await?;
    let nodes: Vec<Option<Box<RawValue>>> = descriptions.value(method)?;
    let elements = ids.into_iter().zip(nodes);
    let elements = elements.filter_map(|(node_id, node)| {
        Some(Element {
            node_id,
            node: node?,
        })
    });
    Ok((elements.collect(), others))
}
