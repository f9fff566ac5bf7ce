//! The scripts of the page: what their texts tell, how much of them ran, and what they were built from.

use std::collections::HashMap;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use plumbline_source::{LegacyCode, legacy_code, script_token_units};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::coverage::{Coverage, Ran};
use super::source_maps::{self, Maps, SourceMap};
use super::{Gathered, gathered, missing};
use crate::protocol::Event;
use crate::visit::{Caller, Page};

const DEADLINE: Duration = Duration::from_secs(5);
/// For reading all texts.
const TEXTS_DEADLINE: Duration = Duration::from_secs(10);
/// Of all texts together, in UTF-16 units; beyond that only lengths are known.
const MAX_TEXT_UNITS: u64 = 64_000_000;
/// Smaller scripts cannot hold enough of it to be worth a word (Lighthouse 13.5, legacy-javascript-insight).
const MIN_LEGACY_UNITS: u64 = 5_000;
/// Texts on their way: one may be large.
const AT_ONCE: usize = 8;
const PREVIEW_CHARS: usize = 40;
const MAX_SCRIPTS: usize = 5_000;

/// What the debugger reports while it is on.
#[derive(Default)]
pub(crate) struct Scripts(Vec<Parsed>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Parsed {
    #[serde(default)]
    pub(super) script_id: String,
    #[serde(default)]
    start_line: u32,
    #[serde(default)]
    start_column: u32,
    #[serde(default)]
    execution_context_aux_data: Context,
    #[serde(default)]
    pub(super) embedder_name: String,
    #[serde(default)]
    pub(super) length: u64,
    #[serde(default, rename = "sourceMapURL")]
    pub(super) source_map_url: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Context {
    frame_id: String,
}

impl Scripts {
    pub(crate) fn take(&mut self, event: &Event) {
        if self.0.len() < MAX_SCRIPTS
            && let Some(parsed) = event.read::<Parsed>()
            && !parsed.embedder_name.is_empty()
        {
            self.0.push(parsed);
        }
    }
}

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
    /// Of inline scripts, which have no address of their own.
    #[serde(skip_serializing_if = "String::is_empty")]
    preview: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    legacy: Option<Legacy>,
}

/// What is needed of a script's text, which itself is not kept.
#[derive(Default)]
pub(super) struct Text {
    token_length: usize,
    preview: String,
    /// Of scripts that are large enough.
    pub(super) legacy: Option<LegacyCode>,
    /// The length of each line in UTF-16 units, where a map will need it.
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

/// Every script that is alive, and what its text tells as soon as somebody has looked at it.
pub(super) struct Listed {
    scripts: Vec<Parsed>,
    texts: JoinHandle<Vec<Option<Text>>>,
}

/// Chromium reports scripts when the debugger is turned on.
pub(super) async fn parsed(page: &mut Page<'_>) -> Result<Listed, String> {
    page.call_within::<Value>(DEADLINE, "Debugger.enable", json!({}))
        .await
        .map_err(|error| missing(&error))?;
    let scripts = page.take_scripts().0;
    let texts = texts(page, &scripts).await;
    page.caller().send("Debugger.disable", json!({}));
    Ok(Listed { scripts, texts })
}

pub(super) async fn gather(
    page: &Caller,
    page_url: &str,
    listed: Result<Listed, String>,
    mut ran: HashMap<String, Ran>,
) -> Gathered {
    let Listed { scripts, texts } = listed?;
    let texts = texts.await.map_err(|error| error.to_string())?;
    let maps = Arc::new(Maps::of(page, page_url));
    let described: Vec<_> = scripts
        .into_iter()
        .zip(texts)
        .map(|(parsed, text)| {
            let ran = ran.remove(&parsed.script_id);
            tokio::spawn(describe(Arc::clone(&maps), parsed, text, ran))
        })
        .collect();
    let mut scripts = Vec::with_capacity(described.len());
    for script in described {
        scripts.push(script.await.map_err(|error| error.to_string())?);
    }
    gathered(&scripts)
}

async fn describe(maps: Arc<Maps>, parsed: Parsed, text: Option<Text>, ran: Option<Ran>) -> Script {
    let is_read = text.is_some();
    let coverage = ran.as_ref().map(|ran| ran.coverage);
    let (text, ran) = (text.unwrap_or_default(), ran.unwrap_or_default());
    let (text, source_map) = match parsed.source_map_url.is_empty() {
        true => (text, None),
        false => source_maps::look_into(&maps, &parsed, text, ran).await,
    };
    Script {
        coverage,
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
    fn of(found: LegacyCode) -> Option<Self> {
        let bytes = found.bytes();
        let signals = found.signals.into_iter().map(|signal| Signal {
            name: signal.name,
            line: signal.line,
            column: signal.column,
        });
        let signals: Vec<Signal> = signals.collect();
        (!signals.is_empty()).then_some(Self { bytes, signals })
    }
}

impl Parsed {
    fn is_inline(&self) -> bool {
        self.start_line != 0 || self.start_column != 0
    }
}

/// Asks for the texts, some ahead of the one that is waited for, and hands each to a thread that looks at them one
/// by one while other evidence is gathered.
async fn texts(page: &mut Page<'_>, scripts: &[Parsed]) -> JoinHandle<Vec<Option<Text>>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Source {
        script_source: String,
    }
    let (sender, receiver) = mpsc::channel::<(Option<String>, u64, bool, bool)>();
    let looking = tokio::task::spawn_blocking(move || {
        let look = |(source, length, is_inline, has_map): (Option<String>, _, _, _)| {
            source.map(|source| Text::of(&source, length, is_inline, has_map))
        };
        receiver.into_iter().map(look).collect()
    });
    let caller = page.caller();
    let given_up = Instant::now() + TEXTS_DEADLINE;
    let mut left_units = MAX_TEXT_UNITS;
    for some in scripts.chunks(AT_ONCE) {
        let asked: Vec<_> = some
            .iter()
            .map(|script| {
                let left = given_up.saturating_duration_since(Instant::now());
                if script.length > left_units || left.is_zero() {
                    return None;
                }
                left_units -= script.length;
                let params = json!({"scriptId": script.script_id});
                Some(caller.call_within::<Source>(left, "Debugger.getScriptSource", params))
            })
            .collect();
        for (script, source) in some.iter().zip(asked) {
            let source = match source {
                Some(source) => page.during(source).await.ok(),
                None => None,
            };
            let text = source.map(|source| source.script_source);
            let text = text.filter(|text| !text.is_empty());
            let has_map = source_maps::is_worth(script);
            // Nobody listens any more only when looking has failed, which is told where it is waited for.
            let _ = sender.send((text, script.length, script.is_inline(), has_map));
        }
    }
    looking
}

impl Text {
    fn of(source: &str, length: u64, is_inline: bool, has_map: bool) -> Self {
        let units = |line: &str| u32::try_from(line.encode_utf16().count()).unwrap_or(u32::MAX);
        Self {
            token_length: script_token_units(source),
            preview: match is_inline {
                true => source.chars().take(PREVIEW_CHARS).collect(),
                false => String::new(),
            },
            legacy: (length >= MIN_LEGACY_UNITS).then(|| legacy_code(source)),
            lines: match has_map {
                true => source.split('\n').map(units).collect(),
                false => Vec::new(),
            },
        }
    }
}
