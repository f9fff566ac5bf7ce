use serde::Deserialize;

use crate::protocol::ProtocolEvent;

const MAX_SCRIPTS: usize = 5_000;

/// Scripts that the debugger reports while it is enabled.
#[derive(Default)]
pub(crate) struct Scripts(Vec<ParsedScript>);

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ParsedScript {
    #[serde(default)]
    pub(crate) script_id: String,
    #[serde(default)]
    pub(crate) start_line: u32,
    #[serde(default)]
    pub(crate) start_column: u32,
    #[serde(default)]
    pub(crate) execution_context_aux_data: ScriptContext,
    #[serde(default)]
    pub(crate) embedder_name: String,
    #[serde(default)]
    pub(crate) length: u64,
    #[serde(default, rename = "sourceMapURL")]
    pub(crate) source_map_url: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ScriptContext {
    pub(crate) frame_id: String,
}

impl Scripts {
    /// Records a script and returns how many bytes of the event are kept.
    pub(super) fn record(&mut self, event: &ProtocolEvent) -> usize {
        match event.read::<ParsedScript>() {
            Some(script) if self.0.len() < MAX_SCRIPTS && !script.embedder_name.is_empty() => {
                let texts = script.embedder_name.len() + script.source_map_url.len();
                self.0.push(script);
                texts + size_of::<ParsedScript>()
            }
            _ => 0,
        }
    }

    pub(crate) fn into_vec(self) -> Vec<ParsedScript> {
        self.0
    }
}
