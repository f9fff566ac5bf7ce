use serde::Deserialize;
use serde_json::value::RawValue;

use crate::protocol::ProtocolEvent;

/// Maximum number of tools; Lighthouse warns above 40.
const MAX_TOOLS: usize = 1_000;

/// The tools that the page offers to agents (WebMCP), as the browser reports them.
#[derive(Default)]
pub(crate) struct WebMcpTools {
    tools: Vec<WebMcpTool>,
    /// Whether the browser knows this part of the protocol.
    pub(super) is_enabled: bool,
    is_stopped: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebMcpTool {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) input_schema: Option<Box<RawValue>>,
    /// The form that declares the tool; `None` for a tool that a script registered.
    #[serde(default)]
    pub(crate) backend_node_id: Option<i64>,
    #[serde(default)]
    pub(crate) stack_trace: Option<StackTrace>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StackTrace {
    #[serde(default)]
    pub(crate) call_frames: Vec<CallFrame>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallFrame {
    #[serde(default)]
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) line_number: i64,
    #[serde(default)]
    pub(crate) column_number: i64,
}

#[derive(Deserialize)]
struct ToolsAdded {
    #[serde(default)]
    tools: Vec<WebMcpTool>,
}

#[derive(Deserialize)]
struct ToolsRemoved {
    #[serde(default)]
    tools: Vec<RemovedTool>,
}

#[derive(Deserialize)]
struct RemovedTool {
    #[serde(default)]
    name: String,
}

impl WebMcpTools {
    /// Records an event and returns how many bytes of it are kept. As in Lighthouse, a name stands
    /// for the tool that was added last with it.
    pub(super) fn record(&mut self, event: &ProtocolEvent) -> usize {
        if self.is_stopped {
            return 0;
        }
        match event.method.as_str() {
            "WebMCP.toolsAdded" => {
                let Some(ToolsAdded { tools }) = event.read() else {
                    return 0;
                };
                for tool in tools {
                    let known = self.tools.iter().position(|known| known.name == tool.name);
                    match known {
                        Some(at) => self.tools[at] = tool,
                        None if self.tools.len() < MAX_TOOLS => self.tools.push(tool),
                        None => {}
                    }
                }
                event.params.get().len()
            }
            "WebMCP.toolsRemoved" => {
                if let Some(ToolsRemoved { tools }) = event.read() {
                    let is_removed = |name: &str| tools.iter().any(|tool| tool.name == name);
                    self.tools.retain(|tool| !is_removed(&tool.name));
                }
                0
            }
            _ => 0,
        }
    }

    /// Stops recording and returns the tools, or `None` if the browser does not report any.
    pub(super) fn stop(&mut self) -> Option<Vec<WebMcpTool>> {
        self.is_stopped = true;
        self.is_enabled.then(|| std::mem::take(&mut self.tools))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(events: &[(&str, &[&str])]) -> Option<Vec<String>> {
        let mut tools = WebMcpTools {
            is_enabled: true,
            ..WebMcpTools::default()
        };
        for (method, names) in events {
            let named: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            tools.record(&ProtocolEvent::for_test(method, &json!({"tools": named})));
        }
        let tools = tools.stop()?.into_iter();
        Some(tools.map(|tool| tool.name).collect())
    }

    #[test]
    fn tools_are_added_replaced_and_removed_by_name() {
        let tools = names(&[
            ("WebMCP.toolsAdded", &["a", "b"]),
            ("WebMCP.toolsAdded", &["b", "c"]),
            ("WebMCP.toolsRemoved", &["a"]),
        ]);
        assert_eq!(tools, Some(vec!["b".to_owned(), "c".to_owned()]));
    }

    #[test]
    fn tools_after_the_stop_are_not_recorded() {
        let mut tools = WebMcpTools::default();
        assert!(tools.stop().is_none());
        let params = json!({"tools": [{"name": "a"}]});
        assert_eq!(
            tools.record(&ProtocolEvent::for_test("WebMCP.toolsAdded", &params)),
            0
        );
    }
}
