use plumbline_model::check::Node;
use serde::Deserialize;
use serde_json::Value;

use super::ArtifactFact;
use super::null::or_default;

/// The tools that the page offers to agents through WebMCP, and its forms, which can be such tools.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebMcp {
    /// Whether the browser has WebMCP. Otherwise nothing else is gathered.
    pub is_supported: bool,
    pub forms: Vec<WebMcpForm>,
    pub tools: Vec<WebMcpTool>,
    /// The elements that issues about WebMCP refer to.
    pub elements: Vec<WebMcpElement>,
}

impl ArtifactFact for WebMcp {
    const NAME: &'static str = "web-mcp";
}

/// A form with its annotations.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebMcpForm {
    #[serde(deserialize_with = "or_default")]
    pub tool_name: String,
    #[serde(deserialize_with = "or_default")]
    pub tool_description: String,
    pub node: Node,
}

/// A tool that a script registered, or that an annotated form declares.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebMcpTool {
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    pub input_schema: Option<Value>,
    /// Whether a form declares the tool.
    pub is_declared: bool,
    /// The form that declares the tool, if it still exists.
    pub node: Option<Node>,
    /// The place where a script registered the tool, with zero-based line and column.
    pub location: Option<WebMcpLocation>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebMcpLocation {
    #[serde(deserialize_with = "or_default")]
    pub url: String,
    #[serde(deserialize_with = "or_default")]
    pub line: u32,
    #[serde(deserialize_with = "or_default")]
    pub column: u32,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebMcpElement {
    pub node_id: i64,
    pub node: Node,
}
