//! The scripts of the page, and whether the large ones can be read through their source maps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use url::Url;

use super::{Gathered, gathered, missing, network_resource};
use crate::protocol::Event;
use crate::visit::{Caller, Page};

const DEADLINE: Duration = Duration::from_secs(5);
/// Lighthouse gives a map 1.5 s, which one of 11 MB takes on a busy host. A map that is late counts
/// as missing, so there is more time here; other evidence is gathered meanwhile.
const MAP_DEADLINE: Duration = Duration::from_secs(5);
/// From the first map until the last is begun.
const MAPS_DEADLINE: Duration = Duration::from_secs(5);
/// A map may be large, and a page have many.
const MAPS_AT_A_TIME: usize = 4;
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
    embedder_name: String,
    #[serde(default)]
    length: u64,
    #[serde(default, rename = "sourceMapURL")]
    source_map_url: String,
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
    length: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_map: Option<SourceMap>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceMap {
    url: Option<String>,
    error: Option<String>,
    sources_without_content: usize,
}

/// Every script that is alive: Chromium reports them when the debugger is turned on.
pub(super) async fn parsed(page: &mut Page<'_>) -> Result<Scripts, String> {
    for method in ["Debugger.enable", "Debugger.disable"] {
        page.call_within::<Value>(DEADLINE, method, json!({}))
            .await
            .map_err(|error| missing(&error))?;
    }
    Ok(page.take_scripts())
}

pub(super) async fn gather(
    page: &Caller,
    page_url: &str,
    scripts: Result<Scripts, String>,
) -> Gathered {
    let fetcher = Arc::new(Fetcher {
        page: page.clone(),
        page_url: page_url.to_owned(),
        places: Semaphore::new(MAPS_AT_A_TIME),
        given_up: Instant::now() + MAPS_DEADLINE,
    });
    let described: Vec<_> = scripts?
        .0
        .into_iter()
        .map(|parsed| tokio::spawn(describe(Arc::clone(&fetcher), parsed)))
        .collect();
    let mut scripts = Vec::with_capacity(described.len());
    for script in described {
        scripts.push(script.await.map_err(|error| error.to_string())?);
    }
    gathered(&scripts)
}

struct Fetcher {
    page: Caller,
    page_url: String,
    places: Semaphore,
    given_up: Instant,
}

impl Fetcher {
    /// The text behind an address, in a place of its own.
    async fn text(&self, url: &Url) -> Result<String, String> {
        let left = self.given_up.saturating_duration_since(Instant::now());
        let place = tokio::time::timeout(left, self.places.acquire()).await;
        let Ok(Ok(_place)) = place else {
            return Err("there was no time left for it".to_owned());
        };
        if url.scheme() == "data" {
            return decode_data(&self.page, url.as_str()).await;
        }
        let fetched =
            network_resource::fetch(&self.page, url.as_str(), MAP_DEADLINE, MAX_MAP_BYTES).await;
        fetched.text.ok_or_else(|| {
            fetched.error.unwrap_or_else(|| {
                format!(
                    "it was answered with status {}",
                    fetched.status.unwrap_or(0)
                )
            })
        })
    }
}

async fn describe(fetcher: Arc<Fetcher>, parsed: Parsed) -> Script {
    let source_map = match parsed.source_map_url.is_empty() {
        true => None,
        false => Some(map_of(&fetcher, &parsed).await),
    };
    Script {
        url: parsed.embedder_name,
        length: parsed.length,
        source_map,
    }
}

async fn map_of(fetcher: &Fetcher, script: &Parsed) -> SourceMap {
    let failed = |error: String| SourceMap {
        error: Some(error),
        ..SourceMap::default()
    };
    let base = Url::parse(&script.embedder_name).or_else(|_| Url::parse(&fetcher.page_url));
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
    let text = fetcher.text(&url).await;
    let judged = text.and_then(|text| sources_without_content(&text));
    SourceMap {
        url: shown,
        error: judged.as_ref().err().cloned(),
        sources_without_content: judged.unwrap_or(0),
    }
}

async fn decode_data(page: &Caller, url: &str) -> Result<String, String> {
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
