//! The elements that a trace names by number. They can be looked up only while the page is there.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// What a page can make us look up; checks list far fewer.
const MAX_NODES: usize = 500;

/// Numbers by how much depends on them; no two alike.
#[derive(Default)]
pub(super) struct NamedNodes {
    /// Of the largest paint, of shifts, of the viewport, of the document's size, of animations and interactions.
    telling: Vec<i64>,
    images: Vec<i64>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Args {
    data: Data,
}

/// Every place where the events below name a node.
#[derive(Deserialize)]
struct Data {
    #[serde(alias = "node_id", rename = "nodeId")]
    node: Option<i64>,
    #[serde(default)]
    impacted_nodes: Vec<OfNode>,
    #[serde(rename = "maxChildren")]
    widest: Option<OfNode>,
    #[serde(rename = "maxDepth")]
    deepest: Option<OfNode>,
}

#[derive(Deserialize)]
struct OfNode {
    #[serde(alias = "node_id", rename = "nodeId")]
    node: Option<i64>,
}

impl NamedNodes {
    pub(super) fn see(&mut self, event: &str) {
        // Few events name a node, and looking is cheaper than reading.
        if !event.contains(r#"odeId":"#) && !event.contains(r#"node_id":"#) {
            return;
        }
        let Ok(Named {
            name,
            args: Some(args),
        }) = serde_json::from_str(event)
        else {
            return;
        };
        let is_telling = match name.as_ref() {
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
        let list = match is_telling {
            true => &mut self.telling,
            false => &mut self.images,
        };
        let others = data.impacted_nodes.into_iter();
        let others = others.chain(data.widest).chain(data.deepest);
        let nodes = data.node.into_iter().chain(others.filter_map(|of| of.node));
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
            .filter(|node| !self.telling.contains(node));
        let all = self.telling.iter().chain(images).copied();
        all.take(MAX_NODES).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_wherever_events_name_them() {
        let mut nodes = NamedNodes::default();
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
            nodes.see(event);
        }
        assert_eq!(nodes.all(), [1, 2, 3, 4, 5, 9]);
    }

    #[test]
    fn a_page_cannot_make_us_look_up_more_than_the_limit() {
        let mut nodes = NamedNodes::default();
        for node in 1..2000 {
            nodes.see(&format!(
                r#"{{"args":{{"data":{{"nodeId":{node}}}}},"name":"Animation"}}"#
            ));
        }
        assert_eq!(nodes.all().len(), MAX_NODES);
    }
}
