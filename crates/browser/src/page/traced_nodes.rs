//! The elements that a trace refers to by id. They can be described only while the page exists.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Maximum number of elements per list, which limits the work that a page can cause; checks list
/// far fewer.
const MAX_NODES: usize = 500;

/// Distinct ids of elements in two lists, by importance.
#[derive(Default)]
pub(super) struct TracedNodes {
    /// Elements of the largest paint, of layout shifts, of the viewport, of the document's size, of
    /// animations and of interactions.
    important: Vec<i64>,
    images: Vec<i64>,
}

#[derive(Deserialize)]
struct TraceEvent<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Args {
    data: Data,
}

/// The fields in which the events below refer to a node.
#[derive(Deserialize)]
struct Data {
    #[serde(alias = "node_id", rename = "nodeId")]
    node: Option<i64>,
    #[serde(default)]
    impacted_nodes: Vec<NodeReference>,
    #[serde(rename = "maxChildren")]
    widest: Option<NodeReference>,
    #[serde(rename = "maxDepth")]
    deepest: Option<NodeReference>,
}

#[derive(Deserialize)]
struct NodeReference {
    #[serde(alias = "node_id", rename = "nodeId")]
    node: Option<i64>,
}

impl TracedNodes {
    pub(super) fn add_event(&mut self, event: &str) {
        // Few events refer to a node, and searching is cheaper than parsing.
        if !event.contains(r#"odeId":"#) && !event.contains(r#"node_id":"#) {
            return;
        }
        let Ok(TraceEvent {
            name,
            args: Some(args),
        }) = serde_json::from_str(event)
        else {
            return;
        };
        let is_important = match name.as_ref() {
            "largestContentfulPaint::Candidate"
            | "LayoutShift"
            | "DOMStats"
            | "Animation"
            | "ParseMetaViewport"
            | "EventTiming" => true,
            "LayoutImageUnsized" | "PaintImage" => false,
            _ => return,
        };
        let Ok(Args { data }) = serde_json::from_str(args.get()) else {
            return;
        };
        let list = if is_important {
            &mut self.important
        } else {
            &mut self.images
        };
        let others = data.impacted_nodes.into_iter();
        let others = others.chain(data.widest).chain(data.deepest);
        let nodes = data
            .node
            .into_iter()
            .chain(others.filter_map(|reference| reference.node));
        for node in nodes {
            if node != 0 && list.len() < MAX_NODES && !list.contains(&node) {
                list.push(node);
            }
        }
    }

    pub(super) fn all(&self) -> Vec<i64> {
        let images = self
            .images
            .iter()
            .filter(|node| !self.important.contains(node));
        let all = self.important.iter().chain(images).copied();
        all.take(MAX_NODES).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_in_all_fields_of_events() {
        let mut nodes = TracedNodes::default();
        for event in [
            r#"{"args":{"data":{"nodeId":9}},"name":"PaintImage"}"#,
            r#"{"args":{"data":{"nodeId":1}},"name":"largestContentfulPaint::Candidate"}"#,
            r#"{"args":{"data":{"impacted_nodes":[{"node_id":2},{"node_id":1}]}},"name":"LayoutShift"}"#,
            r#"{"args":{"data":{"maxChildren":{"nodeId":3},"maxDepth":{"nodeId":4}}},"name":"DOMStats"}"#,
            r#"{"args":{"data":{"node_id":5}},"name":"ParseMetaViewport"}"#,
            r#"{"args":{"endData":{"layoutRoots":[{"nodeId":7}]}},"name":"Layout"}"#,
            r#"{"args":{"data":{"nodeId":"?"}},"name":"Animation"}"#,
            r#"{"args":{"data":{"nodeId":2}},"name":"LayoutImageUnsized"}"#,
        ] {
            nodes.add_event(event);
        }
        assert_eq!(nodes.all(), [1, 2, 3, 4, 5, 9]);
    }

    #[test]
    fn the_number_of_nodes_is_limited() {
        let mut nodes = TracedNodes::default();
        for node in 1..2000 {
            nodes.add_event(&format!(
                r#"{{"args":{{"data":{{"nodeId":{node}}}}},"name":"Animation"}}"#
            ));
        }
        assert_eq!(nodes.all().len(), MAX_NODES);
    }
}
