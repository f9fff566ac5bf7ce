//! The scripts of the page, and whether the large ones can be read through their source maps.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use plumbline_source::{legacy_code, script_token_units};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::coverage::Coverage;
use super::{Gathered, gathered, missing, network_resource};
use crate::protocol::Event;
use crate::visit::Page;

const DEADLINE: Duration = Duration::from_secs(5);
/// For reading all texts.
const TEXTS_DEADLINE: Duration = Duration::from_secs(10);
/// Of all texts together, in UTF-16 units; beyond that only lengths are known.
const MAX_TEXT_UNITS: u64 = 64_000_000;
/// Smaller scripts cannot hold enough of it to be worth a word (Lighthouse 13.5, legacy-javascript-insight).
const MIN_LEGACY_UNITS: u64 = 5_000;
const PREVIEW_CHARS: usize = 40;
/// For one map, and for all of them together.
const MAPS_DEADLINE: Duration = Duration::from_millis(1500);
const MAX_MAP_BYTES: usize = 20_000_000;
const MAX_SCRIPTS: usize = 5_000;
/// Only of scripts this large does a check look at the map (Lighthouse 13.5,
/// core/audits/valid-source-maps.js).
const LARGE: u64 = 500 * 1024;

/// What the debugger reports while it is on.
#[derive(Default)]
pub(crate) struct Scripts(Vec<Parsed>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parsed {
    #[serde(default)]
    script_id: String,
    #[serde(default)]
    start_line: u32,
    #[serde(default)]
    start_column: u32,
    #[serde(default)]
    execution_context_aux_data: Context,
    #[serde(default)]
    embedder_name: String,
    #[serde(default)]
    length: u64,
    #[serde(default, rename = "sourceMapURL")]
    source_map_url: String,
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
    #[serde(flatten)]
    text: Option<Text>,
}

/// What checks need of a script's text, which itself is not kept.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Text {
    token_length: usize,
    /// Of inline scripts, which have no address of their own.
    #[serde(skip_serializing_if = "String::is_empty")]
    preview: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    legacy: Option<Legacy>,
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

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceMap {
    url: Option<String>,
    error: Option<String>,
    sources_without_content: usize,
}

pub(super) async fn gather(page: &mut Page<'_>, coverage: &HashMap<String, Coverage>) -> Gathered {
    // Chromium reports every script that is alive when the debugger is turned on.
    page.call_within::<Value>(DEADLINE, "Debugger.enable", json!({}))
        .await
        .map_err(|error| missing(&error))?;
    let all = page.take_scripts().0;
    let texts = texts(page, &all).await;
    page.call_within::<Value>(DEADLINE, "Debugger.disable", json!({}))
        .await
        .map_err(|error| missing(&error))?;
    let given_up = Instant::now() + MAPS_DEADLINE;
    let mut scripts = Vec::new();
    for (parsed, text) in all.into_iter().zip(texts) {
        let source_map = match parsed.source_map_url.is_empty() {
            true => None,
            false => Some(map_of(page, &parsed, given_up).await),
        };
        scripts.push(Script {
            coverage: coverage.get(&parsed.script_id).copied(),
            is_inline: parsed.is_inline(),
            url: parsed.embedder_name,
            frame: parsed.execution_context_aux_data.frame_id,
            length: parsed.length,
            source_map,
            text,
        });
    }
    gathered(&scripts)
}

impl Parsed {
    fn is_inline(&self) -> bool {
        self.start_line != 0 || self.start_column != 0
    }
}

/// Reads one text after the other, so that no more than one is held.
async fn texts(page: &mut Page<'_>, scripts: &[Parsed]) -> Vec<Option<Text>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Source {
        script_source: String,
    }
    let given_up = Instant::now() + TEXTS_DEADLINE;
    let mut left_units = MAX_TEXT_UNITS;
    let mut texts = Vec::with_capacity(scripts.len());
    for script in scripts {
        let left = given_up.saturating_duration_since(Instant::now());
        if script.length > left_units || left.is_zero() {
            texts.push(None);
            continue;
        }
        left_units -= script.length;
        let params = json!({"scriptId": script.script_id});
        let source = page.call_within::<Source>(left, "Debugger.getScriptSource", params);
        let source = source
            .await
            .ok()
            .filter(|source| !source.script_source.is_empty());
        let (length, is_inline) = (script.length, script.is_inline());
        texts.push(match source {
            None => None,
            Some(source) => {
                let reading = move || Text::of(&source.script_source, length, is_inline);
                page.during(tokio::task::spawn_blocking(reading)).await.ok()
            }
        });
    }
    texts
}

impl Text {
    fn of(source: &str, length: u64, is_inline: bool) -> Self {
        let legacy = (length >= MIN_LEGACY_UNITS).then(|| {
            let found = legacy_code(source);
            Legacy {
                bytes: found.bytes,
                signals: found
                    .signals
                    .into_iter()
                    .map(|signal| Signal {
                        name: signal.name,
                        line: signal.line,
                        column: signal.column,
                    })
                    .collect(),
            }
        });
        Self {
            token_length: script_token_units(source),
            preview: match is_inline {
                true => source.chars().take(PREVIEW_CHARS).collect(),
                false => String::new(),
            },
            legacy: legacy.filter(|legacy| !legacy.signals.is_empty()),
        }
    }
}

async fn map_of(page: &mut Page<'_>, script: &Parsed, given_up: Instant) -> SourceMap {
    let failed = |error: String| SourceMap {
        error: Some(error),
        ..SourceMap::default()
    };
    let base = Url::parse(&script.embedder_name).or_else(|_| Url::parse(page.final_url()));
    let url = match base.and_then(|base| base.join(&script.source_map_url)) {
        Ok(url) => url,
        Err(error) => return failed(format!("its address cannot be resolved: {error}")),
    };
    let in_script = url.scheme() == "data";
    let shown = (!in_script).then(|| url.to_string());
    if script.length < LARGE {
        return SourceMap {
            url: shown,
            ..SourceMap::default()
        };
    }
    let text = if in_script {
        decode_data(page, url.as_str()).await
    } else {
        let left = given_up.saturating_duration_since(Instant::now());
        let fetched = network_resource::fetch(page, url.as_str(), left, MAX_MAP_BYTES).await;
        fetched.text.ok_or_else(|| {
            fetched.error.unwrap_or_else(|| {
                format!(
                    "it was answered with status {}",
                    fetched.status.unwrap_or(0)
                )
            })
        })
    };
    let judged = text.and_then(|text| sources_without_content(&text));
    SourceMap {
        url: shown,
        error: judged.as_ref().err().cloned(),
        sources_without_content: judged.unwrap_or(0),
    }
}

async fn decode_data(page: &mut Page<'_>, url: &str) -> Result<String, String> {
    let script = format!("fetch({}).then(answer => answer.text())", Value::from(url));
    let decoded = page.evaluate(Duration::from_secs(1), &script).await;
    decoded.map_err(|error| missing(&error))
}

/// Of a source map's text: how many sources come without theirs, or what is wrong with it.
fn sources_without_content(text: &str) -> Result<usize, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Map {
        #[serde(rename = "version")]
        _version: f64,
        sources: Vec<Value>,
        #[serde(rename = "mappings")]
        _mappings: String,
        #[serde(default)]
        sources_content: Vec<Option<String>>,
    }
    // A line that keeps the map from being run as a script (source map specification, 11.1).
    let json = match text.strip_prefix(")]}") {
        Some(guarded) => guarded.split_once('\n').map_or("", |(_, rest)| rest),
        None => text,
    };
    let map: Map = serde_json::from_str(json).map_err(|error| format!("it is no map: {error}"))?;
    let has_text = |i: usize| {
        let text = map.sources_content.get(i).and_then(Option::as_deref);
        text.is_some_and(|text| !text.is_empty())
    };
    Ok((0..map.sources.len()).filter(|i| !has_text(*i)).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_counted_whose_text_is_missing() {
        let map =
            r#"{"version":3,"sources":["a","b","c"],"sourcesContent":["x",""],"mappings":""}"#;
        assert_eq!(sources_without_content(map), Ok(2));
        assert_eq!(sources_without_content(&format!(")]}}'\n{map}")), Ok(2));
    }

    #[test]
    fn what_is_no_map_is_said() {
        for text in ["", "{}", "<html>", r#"{"version":3,"sources":[]}"#] {
            assert!(sources_without_content(text).is_err(), "{text}");
        }
    }
}
