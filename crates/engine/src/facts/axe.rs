use plumbline_model::check::Node;
use serde::Deserialize;

use super::ArtifactFact;
use super::null::or_default;

/// The results of axe-core on the page.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Axe {
    pub version: String,
    pub violations: Vec<AxeRule>,
    /// The rules that axe-core could not decide, or that failed with an error.
    pub incomplete: Vec<AxeRule>,
    /// The ids of rules that did not apply to any element.
    pub not_applicable: Vec<String>,
    /// The ids of rules that passed.
    pub passes: Vec<String>,
}

impl ArtifactFact for Axe {
    const NAME: &'static str = "axe";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AxeRule {
    pub id: String,
    pub impact: Option<String>,
    /// The error with which the rule failed.
    pub error: Option<String>,
    pub nodes: Vec<AxeNode>,
    /// The total number of nodes, if fewer are listed.
    pub node_count: Option<usize>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AxeNode {
    pub node: Node,
    /// The advice of axe-core for this node.
    #[serde(deserialize_with = "or_default")]
    pub failure_summary: String,
    pub related_nodes: Vec<Node>,
}
