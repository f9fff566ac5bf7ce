use serde::Deserialize;

use super::node::or_default;
use super::{Artifact, Node};

/// What axe-core said about the page.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Axe {
    pub version: String,
    pub violations: Vec<AxeRule>,
    /// Where axe-core could not decide, or broke.
    pub incomplete: Vec<AxeRule>,
    /// Ids of rules that had nothing to look at.
    pub not_applicable: Vec<String>,
    /// Ids of rules that found nothing wrong.
    pub passes: Vec<String>,
}

impl Artifact for Axe {
    const NAME: &'static str = "axe";
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AxeRule {
    pub id: String,
    pub impact: Option<String>,
    /// Why the rule broke.
    pub error: Option<String>,
    pub nodes: Vec<AxeNode>,
    /// How many nodes there were, when fewer are listed.
    pub node_count: Option<usize>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AxeNode {
    pub node: Node,
    /// axe-core's own words on what to do about this node.
    #[serde(deserialize_with = "or_default")]
    pub failure_summary: String,
    pub related_nodes: Vec<Node>,
}
