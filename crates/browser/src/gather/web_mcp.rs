//! The page's tools for agents (WebMCP), and its forms, which can be such tools.

use std::future::Future;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::scripted::{self, IsolatedWorld};
use super::trace_elements::{self, Element};
use super::{Gathered, error_text, to_artifact};
use crate::page::{Caller, WebMcpTool};

const DEADLINE: Duration = Duration::from_secs(10);

/// Maximum number of elements of issues that are described.
const MAX_ELEMENTS: usize = 500;

/// The prefix of the types of issues about WebMCP.
const ISSUE_PREFIX: &str = "FormModelContext";

/// The result of the script.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scripted {
    is_supported: bool,
    forms: Box<RawValue>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WebMcp {
    is_supported: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    forms: Option<Box<RawValue>>,
    tools: Vec<Tool>,
    elements: Vec<Element>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    description: String,
    input_schema: Option<Box<RawValue>>,
    is_declared: bool,
    node: Option<Box<RawValue>>,
    location: Option<Location>,
}

#[derive(Serialize)]
struct Location {
    url: String,
    line: i64,
    column: i64,
}

/// Starts the script immediately. The tools are `None` if the browser does not report any.
pub(super) fn gather(
    page: &Caller,
    world: &IsolatedWorld,
    tools: Option<Vec<WebMcpTool>>,
    issues: &[Box<RawValue>],
) -> impl Future<Output = Gathered> + use<> {
    let script = scripted::evaluate::<Scripted>(page, world, include_str!("web-mcp.js"), DEADLINE);
    let issue_nodes = issue_nodes(issues);
    let (page, world) = (page.clone(), world.clone());
    async move {
        let Scripted {
            is_supported,
            forms,
        } = script.await?;
        let (true, Some(tools)) = (is_supported, tools) else {
            return to_artifact(&WebMcp::default());
        };
        let declaring = tools.iter().filter_map(|tool| tool.backend_node_id);
        let mut nodes: Vec<i64> = declaring.chain(issue_nodes).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let (elements, _) = trace_elements::describe(&page, world?, nodes)
            .await
            .map_err(|error| error_text(&error))?;
        let tools = tools.into_iter().map(|tool| describe(tool, &elements));
        to_artifact(&WebMcp {
            is_supported,
            forms: Some(forms),
            tools: tools.collect(),
            elements,
        })
    }
}

fn describe(tool: WebMcpTool, elements: &[Element]) -> Tool {
    let element = elements
        .iter()
        .find(|element| Some(element.node_id) == tool.backend_node_id);
    let frames = tool.stack_trace.map(|stack| stack.call_frames);
    let frame = frames.and_then(|frames| frames.into_iter().next());
    Tool {
        name: tool.name,
        description: tool.description,
        input_schema: tool.input_schema,
        is_declared: tool.backend_node_id.is_some(),
        node: element.map(|element| element.node.clone()),
        location: frame.map(|frame| Location {
            url: frame.url,
            line: frame.line_number,
            column: frame.column_number,
        }),
    }
}

/// Returns the ids of the elements that issues about WebMCP refer to.
fn issue_nodes(issues: &[Box<RawValue>]) -> Vec<i64> {
    #[derive(Deserialize)]
    struct Issue {
        details: Details,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Details {
        generic_issue_details: Generic,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Generic {
        error_type: String,
        violating_node_id: i64,
    }
    let generic = issues.iter().filter_map(|issue| {
        let issue: Issue = serde_json::from_str(issue.get()).ok()?;
        Some(issue.details.generic_issue_details)
    });
    generic
        .filter(|issue| issue.error_type.starts_with(ISSUE_PREFIX))
        .map(|issue| issue.violating_node_id)
        .take(MAX_ELEMENTS)
        .collect()
}
