//! The scripts of the page: figures of their texts, their coverage, and the modules they were built
//! from.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumbline_source::{LegacyCode, legacy_code, script_token_units};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};

use super::coverage::{Coverage, ScriptCoverage};
use super::source_maps::{self, Maps, SourceMap};
use super::{Gathered, error_text, to_artifact};
use crate::page::{Caller, Page, ParsedScript};
use crate::protocol::CallError;

const DEADLINE: Duration = Duration::from_secs(5);
/// Timeout of reading all texts.
const TEXTS_DEADLINE: Duration = Duration::from_secs(10);
/// Maximum total size of the texts in UTF-16 units; beyond it only lengths are known.
const MAX_TEXT_UNITS: u64 = 64_000_000;
/// Minimum size of a script that is searched for legacy code (Lighthouse 13.5,
/// legacy-javascript-insight).
const MIN_LEGACY_UNITS: u64 = 5_000;
/// The longest text that is read, in UTF-16 units: escaped, it fits into a message of the browser.
const MAX_SCRIPT_UNITS: u64 = 16_000_000;
/// Maximum size of texts that are requested ahead, in UTF-16 units; a single one may be larger.
const AHEAD_UNITS: u64 = 8_000_000;
/// Length of the preview of an inline script, which has no URL: Lighthouse's 40 with the ellipsis.
const PREVIEW_CHARS: usize = 39;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Script {
    url: String,
    frame: String,
    is_inline: bool,
    length: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_map: Option<SourceMap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<Coverage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_length: Option<usize>,
    /// Beginning of an inline script, which has no URL of its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    preview: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    legacy: Option<Legacy>,
}

/// Figures of a script's text, which itself is not kept.
#[derive(Default)]
pub(super) struct Text {
    token_length: usize,
    preview: String,
    /// Legacy code, if the script is large enough.
    pub(super) legacy: Option<LegacyCode>,
    /// Length of each line in UTF-16 units, if a source map needs it.
    pub(super) lines: Vec<u32>,
}

#[derive(Serialize)]
struct Legacy {
    bytes: f64,
    signals: Vec<Signal>,
}

#[derive(Serialize)]
struct Signal {
    name: &'static str,
    line: u32,
    column: u32,
}

/// Every live script, and the figures of its text once they are available.
pub(super) struct ListedScripts {
    scripts: Vec<ParsedScript>,
    texts: JoinHandle<Result<Vec<Option<Text>>, JoinError>>,
}

/// Enables the debugger immediately: Chromium then reports every script.
pub(super) fn enable(page: &Caller) -> impl Future<Output = Result<Value, CallError>> + use<> {
    let enabled = page.call_within::<Value>(DEADLINE, "Debugger.enable", json!({}));
    // Some pages pause themselves if they are debugged.
    page.send("Debugger.setSkipAllPauses", json!({"skip": true}));
    enabled
}

/// Returns the reported scripts. Their texts are requested, and other evidence need not wait for
/// them.
pub(super) async fn parsed(
    page: &mut Page<'_>,
    enabled: impl Future<Output = Result<Value, CallError>>,
) -> Result<ListedScripts, String> {
    let caller = page.caller();
    page.drive(enabled)
        .await
        .map_err(|error| error_text(&error))?;
    let scripts = page.take_scripts().into_vec();
    page.keep_mapped_scripts(&scripts);
    let (first_requested_sender, first_requested) = oneshot::channel();
    let requests = scripts.iter().map(TextRequest::of).collect();
    let texts = tokio::spawn(texts(caller, requests, first_requested_sender));
    // Later calls come after them. A failure here is reported with the texts.
    let _ = first_requested.await;
    Ok(ListedScripts { scripts, texts })
}

pub(super) async fn gather(
    page: &Caller,
    page_url: &str,
    listed: Result<ListedScripts, String>,
    mut coverage: HashMap<String, ScriptCoverage>,
) -> Gathered {
    let ListedScripts { scripts, texts } = listed?;
    let texts = texts.await.and_then(|analysed| analysed);
    let texts = texts.map_err(|error| error.to_string())?;
    let maps = Arc::new(Maps::of(page, page_url));
    let described: Vec<_> = scripts
        .into_iter()
        .zip(texts)
        .map(|(parsed, text)| {
            let coverage = coverage.remove(&parsed.script_id);
            tokio::spawn(describe(Arc::clone(&maps), parsed, text, coverage))
        })
        .collect();
    let mut scripts = Vec::with_capacity(described.len());
    for script in described {
        scripts.push(script.await.map_err(|error| error.to_string())?);
    }
    to_artifact(&scripts)
}

async fn describe(
    maps: Arc<Maps>,
    parsed: ParsedScript,
    text: Option<Text>,
    coverage: Option<ScriptCoverage>,
) -> Script {
    let is_read = text.is_some();
    let summary = coverage.as_ref().map(|coverage| coverage.coverage);
    let (text, coverage) = (text.unwrap_or_default(), coverage.unwrap_or_default());
    let (text, source_map) = if parsed.source_map_url.is_empty() {
        (text, None)
    } else {
        source_maps::read_map(&maps, &parsed, text, coverage).await
    };
    Script {
        coverage: summary,
        is_inline: parsed.is_inline(),
        url: parsed.embedder_name,
        frame: parsed.execution_context_aux_data.frame_id,
        length: parsed.length,
        source_map,
        token_length: is_read.then_some(text.token_length),
        preview: text.preview,
        legacy: text.legacy.and_then(Legacy::of),
    }
}

impl Legacy {
    fn of(legacy_code: LegacyCode) -> Option<Self> {
        let bytes = legacy_code.bytes();
        let signals = legacy_code.signals.into_iter().map(|signal| Signal {
            name: signal.name,
            line: signal.line,
            column: signal.column,
        });
        let signals: Vec<Signal> = signals.collect();
        (!signals.is_empty()).then_some(Self { bytes, signals })
    }
}

impl ParsedScript {
    pub(super) fn is_inline(&self) -> bool {
        self.start_line != 0 || self.start_column != 0
    }
}

/// Data needed to request and analyse a script's text.
struct TextRequest {
    script_id: String,
    length: u64,
    is_inline: bool,
    has_map: bool,
}

impl TextRequest {
    fn of(script: &ParsedScript) -> Self {
        Self {
            script_id: script.script_id.clone(),
            length: script.length,
            is_inline: script.is_inline(),
            has_map: source_maps::is_useful(script),
        }
    }
}

/// Requests the texts, some ahead of the one that is awaited, and passes each to a thread that
/// analyses them sequentially, in the order of the scripts. Disables the debugger as soon as the
/// last is requested.
async fn texts(
    page: Caller,
    scripts: Vec<TextRequest>,
    first_requested_sender: oneshot::Sender<()>,
) -> Result<Vec<Option<Text>>, JoinError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Source {
        script_source: String,
    }
    // One text is analysed while another waits: more would only take memory.
    let (sender, mut receiver) = mpsc::channel::<(TextRequest, Option<String>)>(1);
    let analysis = tokio::task::spawn_blocking(move || {
        let mut texts = Vec::new();
        while let Some((script, source)) = receiver.blocking_recv() {
            texts.push(source.map(|source| Text::of(&source, &script)));
        }
        texts
    });
    let deadline = Instant::now() + TEXTS_DEADLINE;
    let (mut remaining_units, mut ahead_units) = (MAX_TEXT_UNITS, 0);
    let mut waiting = scripts.into_iter();
    let mut in_flight = VecDeque::new();
    let mut is_over = false;
    let mut first_requested = Some(first_requested_sender);
    loop {
        while ahead_units < AHEAD_UNITS
            && let Some(script) = waiting.next()
        {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let is_readable = script.length <= remaining_units.min(MAX_SCRIPT_UNITS);
            let call = (is_readable && !remaining.is_zero()).then(|| {
                remaining_units -= script.length;
                ahead_units += script.length;
                let params = json!({"scriptId": script.script_id});
                page.call_within::<Source>(remaining, "Debugger.getScriptSource", params)
            });
            in_flight.push_back((script, call));
        }
        if !is_over && waiting.len() == 0 {
            // Answered after the texts: calls are answered in order.
            page.send("Debugger.disable", json!({}));
            is_over = true;
        }
        if let Some(first_requested) = first_requested.take() {
            let _ = first_requested.send(());
        }
        let Some((script, call)) = in_flight.pop_front() else {
            break;
        };
        let source = match call {
            Some(call) => {
                ahead_units -= script.length;
                call.await.ok()
            }
            None => None,
        };
        let text = source.map(|source| source.script_source);
        let text = text.filter(|text| !text.is_empty());
        // The receiver is gone only if the analysis has failed, which is reported below.
        let _ = sender.send((script, text)).await;
    }
    drop(sender);
    analysis.await
}

impl Text {
    fn of(source: &str, script: &TextRequest) -> Self {
        let units = |line: &str| u32::try_from(line.encode_utf16().count()).unwrap_or(u32::MAX);
        Self {
            token_length: script_token_units(source),
            preview: if script.is_inline {
                source.chars().take(PREVIEW_CHARS).collect()
            } else {
                String::new()
            },
            legacy: (script.length >= MIN_LEGACY_UNITS).then(|| legacy_code(source)),
            lines: if script.has_map {
                source.split('\n').map(units).collect()
            } else {
                Vec::new()
            },
        }
    }
}
