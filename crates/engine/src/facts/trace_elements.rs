use serde::Deserialize;

use super::{Artifact, Facts, Node};

/// The elements that the trace names by number, looked up when the page was quiet. One that had gone by then
/// is not among them.
#[derive(Debug, Default, Deserialize)]
pub struct TraceElements(pub Vec<TraceElement>);

impl Artifact for TraceElements {
    const NAME: &'static str = "trace-elements";
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TraceElement {
    pub node_id: i64,
    pub node: Node,
}

impl TraceElements {
    /// An older bundle has no such artifact: then no element is known by its number.
    pub fn of(facts: &Facts, node_id: Option<i64>) -> Option<Node> {
        let elements = facts.get::<Self>().ok()?;
        let found = elements
            .0
            .iter()
            .find(|element| Some(element.node_id) == node_id)?;
        Some(found.node.clone())
    }
}
