//! The scripts of the page: what their texts tell, how much of them ran, and what they were built from.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumbline_source::{LegacyCode, legacy_code, script_token_units};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};

use super::coverage::{Coverage, Ran};
use super::source_maps::{self, Maps, SourceMap};
use super::{Gathered, gathered, missing};
use crate::protocol::{CallError, Event};
use crate::visit::{Caller, Page};

const DEADLINE: Duration = Duration::from_secs(5);
/// For reading all texts.
const TEXTS_DEADLINE: Duration = Duration::from_secs(10);
/// Of all texts together, in UTF-16 units; beyond that only lengths are known.
const MAX_TEXT_UNITS: u64 = 64_000_000;
/// Smaller scripts cannot hold enough of it to be worth a word (Lighthouse 13.5, legacy-javascript-insight).
const MIN_LEGACY_UNITS: u64 = 5_000;
/// The longest text that is read, in UTF-16 units: escaped, it fits into a message of the browser.
const MAX_SCRIPT_UNITS: u64 = 16_000_000;
/// Of texts on their way, in UTF-16 units; one may be larger.
const AHEAD_UNITS: u64 = 8_000_000;
/// Of an inline script, which has no address: Lighthouse's 40, of which an ellipsis takes one.
const PREVIEW_CHARS: usize = 39;
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
    /// Returns how many bytes of it are kept.
    pub(crate) fn take(&mut self, event: &Event) -> usize {
        match event.read::<Parsed>() {
            Some(parsed) if self.0.len() < MAX_SCRIPTS && !parsed.embedder_name.is_empty() => {
                let texts = parsed.embedder_name.len() + parsed.source_map_url.len();
                self.0.push(parsed);
                texts + size_of::<Parsed>()
            }
            _ => 0,
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
    texts: JoinHandle<Result<Vec<Option<Text>>, JoinError>>,
}

/// Turns on the debugger, at once: Chromium then reports every script.
pub(super) fn ask(page: &Caller) -> impl Future<Output = Result<Value, CallError>> + use<> {
    let enabled = page.call_within::<Value>(DEADLINE, "Debugger.enable", json!({}));
    // Some pages stop themselves wherever they are debugged.
    page.send("Debugger.setSkipAllPauses", json!({"skip": true}));
    enabled
}

/// What was reported. The texts are on their way then, and other evidence need not wait for them.
pub(super) async fn parsed(
    page: &mut Page<'_>,
    enabled: impl Future<Output = Result<Value, CallError>>,
) -> Result<Listed, String> {
    let caller = page.caller();
    page.during(enabled)
        .await
        .map_err(|error| missing(&error))?;
    let scripts = page.take_scripts().0;
    let (on_their_way, first) = oneshot::channel();
    let wanted = scripts.iter().map(Wanted::of).collect();
    let texts = tokio::spawn(texts(caller, wanted, on_their_way));
    // Whatever is sent after this comes after them. Nobody tells where that has failed, which is told with the texts.
    let _ = first.await;
    Ok(Listed { scripts, texts })
}

pub(super) async fn gather(
    page: &Caller,
    page_url: &str,
    listed: Result<Listed, String>,
    mut ran: HashMap<String, Ran>,
) -> Gathered {
    let Listed { scripts, texts } = listed?;
    let texts = texts.await.and_then(|looked| looked);
    let texts = texts.map_err(|error| error.to_string())?;
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

/// What is to be known of a script to ask for its text and to look at it.
struct Wanted {
    script_id: String,
    length: u64,
    is_inline: bool,
    has_map: bool,
}

impl Wanted {
    fn of(script: &Parsed) -> Self {
        Self {
            script_id: script.script_id.clone(),
            length: script.length,
            is_inline: script.is_inline(),
            has_map: source_maps::is_worth(script),
        }
    }
}

/// Asks for the texts, some ahead of the one that is waited for, and hands each to a thread that looks at them one
/// by one. In the order of the scripts; ends the debugger as soon as the last is asked for.
async fn texts(
    page: Caller,
    scripts: Vec<Wanted>,
    on_their_way_now: oneshot::Sender<()>,
) -> Result<Vec<Option<Text>>, JoinError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Source {
        script_source: String,
    }
    // One text is looked at, one waits: more would only take memory.
    let (sender, mut receiver) = mpsc::channel::<(Wanted, Option<String>)>(1);
    let looking = tokio::task::spawn_blocking(move || {
        let mut texts = Vec::new();
        while let Some((script, source)) = receiver.blocking_recv() {
            texts.push(source.map(|source| Text::of(&source, &script)));
        }
        texts
    });
    let given_up = Instant::now() + TEXTS_DEADLINE;
    let (mut left_units, mut ahead_units) = (MAX_TEXT_UNITS, 0);
    let mut waiting = scripts.into_iter();
    let mut on_their_way = VecDeque::new();
    let mut is_over = false;
    let mut told = Some(on_their_way_now);
    loop {
        while ahead_units < AHEAD_UNITS
            && let Some(script) = waiting.next()
        {
            let left = given_up.saturating_duration_since(Instant::now());
            let is_readable = script.length <= left_units.min(MAX_SCRIPT_UNITS);
            let asked = (is_readable && !left.is_zero()).then(|| {
                left_units -= script.length;
                ahead_units += script.length;
                let params = json!({"scriptId": script.script_id});
                page.call_within::<Source>(left, "Debugger.getScriptSource", params)
            });
            on_their_way.push_back((script, asked));
        }
        if !is_over && waiting.len() == 0 {
            // Answered after the texts: calls are answered in order.
            page.send("Debugger.disable", json!({}));
            is_over = true;
        }
        if let Some(told) = told.take() {
            let _ = told.send(());
        }
        let Some((script, asked)) = on_their_way.pop_front() else {
            break;
        };
        let source = match asked {
            Some(asked) => {
                ahead_units -= script.length;
                asked.await.ok()
            }
            None => None,
        };
        let text = source.map(|source| source.script_source);
        let text = text.filter(|text| !text.is_empty());
        // Nobody listens any more only when looking has failed, which is told below.
        let _ = sender.send((script, text)).await;
    }
    drop(sender);
    looking.await
}

impl Text {
    fn of(source: &str, script: &Wanted) -> Self {
        let units = |line: &str| u32::try_from(line.encode_utf16().count()).unwrap_or(u32::MAX);
        Self {
            token_length: script_token_units(source),
            preview: match script.is_inline {
                true => source.chars().take(PREVIEW_CHARS).collect(),
                false => String::new(),
            },
            legacy: (script.length >= MIN_LEGACY_UNITS).then(|| legacy_code(source)),
            lines: match script.has_map {
                true => source.split('\n').map(units).collect(),
                false => Vec::new(),
            },
        }
    }
}
