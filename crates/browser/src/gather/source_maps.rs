//! Modules that scripts were built from, according to their source maps, which are fetched, parsed
//! and not kept.

use std::time::{Duration, Instant};

use plumbline_source::SourceMap as Map;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use url::Url;

use super::coverage::ScriptCoverage;
use super::scripts::Text;
use super::{error_text, network_resource};
use crate::page::{Caller, ParsedScript};

/// Timeout of a map. Lighthouse has 1.5 s, which one of 11 MB takes on a busy host. A late map
/// counts as missing, so that there is more time here; other evidence is gathered meanwhile.
const DEADLINE: Duration = Duration::from_secs(5);
/// Time within which all maps must be requested.
const ALL_DEADLINE: Duration = Duration::from_secs(5);
/// The number of source maps that the browser loads at a time.
const MAX_CONCURRENT_LOADS: usize = 8;
/// The number of source maps that are parsed at a time: a map may be large, and its parsed form
/// even larger.
const MAX_CONCURRENT_PARSES: usize = 2;
const MAX_BYTES: usize = 20_000_000;
/// Minimum size of a script: two modules of the smallest size that counts as duplicated (trace
/// engine, extras/ScriptDuplication).
const MIN_UNITS: u64 = 1024;
/// Maximum number of modules, whose names are stored.
const MAX_MODULES: usize = 20_000;
const MAX_NAME_CHARS: usize = 1_000;

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SourceMap {
    url: Option<String>,
    error: Option<String>,
    sources_without_content: usize,
    /// Modules; `None` if the map was not read or does not match the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    modules: Option<Vec<Module>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unmapped_unused: Option<u64>,
}

/// A module, with sizes in UTF-16 units of the script.
#[derive(Serialize)]
struct Module {
    source: String,
    length: u64,
    unused: u64,
}

/// Fetches source maps.
pub(super) struct Maps {
    page: Caller,
    page_url: String,
    loads: Semaphore,
    parses: Semaphore,
    deadline: Instant,
}

impl Maps {
    pub(super) fn of(page: &Caller, page_url: &str) -> Self {
        Self {
            page: page.clone(),
            page_url: page_url.to_owned(),
            loads: Semaphore::new(MAX_CONCURRENT_LOADS),
            parses: Semaphore::new(MAX_CONCURRENT_PARSES),
            deadline: Instant::now() + ALL_DEADLINE,
        }
    }

    /// Returns the URL of a script's map.
    pub(super) fn url_of(&self, script: &ParsedScript) -> Result<Url, String> {
        let base = Url::parse(&script.embedder_name).or_else(|_| Url::parse(&self.page_url));
        let url = base.and_then(|base| base.join(&script.source_map_url));
        url.map_err(|error| format!("its URL cannot be resolved: {error}"))
    }

    /// Fetches a URL as text, with the permit to hold the text until it has been parsed.
    pub(super) async fn text(&self, url: &Url) -> Result<(String, SemaphorePermit<'_>), String> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        let permit = tokio::time::timeout(remaining, self.loads.acquire()).await;
        let Ok(Ok(_load_permit)) = permit else {
            return Err("timed out before it was requested".to_owned());
        };
        if url.scheme() == "data" {
            let parse_permit = self.parse_permit().await?;
            return Ok((decode_data(&self.page, url.as_str()).await?, parse_permit));
        }
        let mut file = network_resource::load(&self.page, url.as_str(), DEADLINE).await;
        let parse_permit = self.parse_permit().await?;
        match file.read(&self.page, DEADLINE, MAX_BYTES).await {
            Some(Ok(body)) if body.is_cut => {
                let limit = MAX_BYTES / 1_000_000;
                Err(format!("it is larger than {limit} MB"))
            }
            Some(Ok(body)) => Ok((body.text, parse_permit)),
            Some(Err(error)) => Err(error),
            None => Err(file.error.unwrap_or_else(|| {
                let status = file.status.unwrap_or(0);
                format!("the server responded with status {status}")
            })),
        }
    }

    async fn parse_permit(&self) -> Result<SemaphorePermit<'_>, String> {
        self.parses
            .acquire()
            .await
            .map_err(|error| error.to_string())
    }
}

/// Returns true if a script's map can have useful information.
pub(super) fn is_useful(script: &ParsedScript) -> bool {
    !script.source_map_url.is_empty() && script.length >= MIN_UNITS
}

/// Fetches the script's map and analyses the script with it.
pub(super) async fn read_map(
    maps: &Maps,
    script: &ParsedScript,
    text: Text,
    coverage: ScriptCoverage,
) -> (Text, Option<SourceMap>) {
    let url = match maps.url_of(script) {
        Ok(url) => url,
        Err(error) => return (text, Some(SourceMap::failed(None, error))),
    };
    let shown_url = (url.scheme() != "data").then(|| url.to_string());
    if !is_useful(script) {
        let unread = SourceMap {
            url: shown_url,
            ..SourceMap::default()
        };
        return (text, Some(unread));
    }
    match maps.text(&url).await {
        Err(error) => (text, Some(SourceMap::failed(shown_url, error))),
        Ok((json, _parse_permit)) => {
            let parse = move || parse_map(&json, text, &coverage, shown_url);
            match tokio::task::spawn_blocking(parse).await {
                Ok((text, map)) => (text, Some(map)),
                Err(error) => {
                    let failed = SourceMap::failed(None, error.to_string());
                    (Text::default(), Some(failed))
                }
            }
        }
    }
}

fn parse_map(
    json: &str,
    mut text: Text,
    coverage: &ScriptCoverage,
    url: Option<String>,
) -> (Text, SourceMap) {
    let map = match Map::parse(json) {
        Ok(map) => map,
        Err(error) => return (text, SourceMap::failed(url, error.to_string())),
    };
    if let Some(legacy) = &mut text.legacy {
        legacy.add_from_source_map(&map);
    }
    let modules = if text.lines.is_empty() {
        None
    } else {
        map.modules(&text.lines, &coverage.unused).ok()
    };
    let source_map = SourceMap {
        url,
        error: None,
        sources_without_content: map.sources_without_content(),
        unmapped_unused: modules.as_ref().map(|modules| modules.unmapped_unused),
        modules: modules.map(|modules| {
            let modules = modules.modules.into_iter().take(MAX_MODULES);
            modules.map(Module::of).collect()
        }),
    };
    (text, source_map)
}

impl Module {
    fn of(module: plumbline_source::Module) -> Self {
        let mut source = module.source;
        if let Some((end, _)) = source.char_indices().nth(MAX_NAME_CHARS) {
            source.truncate(end);
        }
        Self {
            source,
            length: module.length,
            unused: module.unused,
        }
    }
}

impl SourceMap {
    fn failed(url: Option<String>, error: String) -> Self {
        Self {
            url,
            error: Some(error),
            ..Self::default()
        }
    }
}

/// Decodes a `data:` URL without the browser in simple cases: a page's policy may forbid it to
/// fetch such URLs.
async fn decode_data(page: &Caller, url: &str) -> Result<String, String> {
    if let Some((_, data)) = url.split_once(";base64,") {
        let bytes = network_resource::from_base64(data).ok_or("the URL is not valid Base64")?;
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let script = format!("fetch({}).then(answer => answer.text())", Value::from(url));
    let decoded = page
        .evaluate_isolated(Duration::from_secs(1), &script)
        .await;
    decoded.map_err(|error| error_text(&error))
}
