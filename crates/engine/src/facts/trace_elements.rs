use plumbline_model::check::Node;
use serde::Deserialize;

use super::{ArtifactFact, Facts};

/// The elements that the trace refers to by node id, resolved at the end of the load. Elements that
/// were removed by then are missing.
#[derive(Debug, Default, Deserialize)]
pub struct TraceElements(pub Vec<TraceElement>);

impl ArtifactFact for TraceElements {
    const NAME: &'static str = "trace-elements";
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TraceElement {
    pub node_id: i64,
    pub node: Node,
}

impl TraceElements {
    /// Returns the element of a node id; `None` for older bundles without this artifact.
    pub fn of(facts: &Facts, node_id: Option<i64>) -> Option<Node> {
        let elements = facts.get::<Self>().ok()?;
        let element = elements
            .0
            .iter()
            .find(|element| Some(element.node_id) == node_id)?;
        Some(element.node.clone())
    }
}
