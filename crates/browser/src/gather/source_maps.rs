//! What scripts were built from: their source maps, fetched, read and not kept.

use std::time::{Duration, Instant};

use plumbline_source::SourceMap as Map;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};
use url::Url;

use super::coverage::Ran;
use super::scripts::{Parsed, Text};
use super::{missing, network_resource};
use crate::visit::Caller;

/// Lighthouse gives a map 1.5 s, which one of 11 MB takes on a busy host. A map that is late counts as missing, so
/// there is more time here; other evidence is gathered meanwhile.
const DEADLINE: Duration = Duration::from_secs(5);
/// From the first map until the last is begun.
const ALL_DEADLINE: Duration = Duration::from_secs(5);
/// The number of source maps that the browser loads at a time.
const AT_A_TIME: usize = 8;
/// The number of source maps that are parsed at a time: a map may be large, and what it tells even larger.
const READ_AT_A_TIME: usize = 2;
const MAX_BYTES: usize = 20_000_000;
/// Two modules of the least size that counts as doubled (trace engine, extras/ScriptDuplication).
const MIN_UNITS: u64 = 1024;
/// Names are kept.
const MAX_MODULES: usize = 20_000;
const MAX_NAME_CHARS: usize = 1_000;

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SourceMap {
    url: Option<String>,
    error: Option<String>,
    sources_without_content: usize,
    /// None where the map was not read or is not this script's.
    #[serde(skip_serializing_if = "Option::is_none")]
    modules: Option<Vec<Module>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unmapped_unused: Option<u64>,
}

/// In UTF-16 units of the script.
#[derive(Serialize)]
struct Module {
    source: String,
    length: u64,
    unused: u64,
}

/// Where maps come from.
pub(super) struct Maps {
    page: Caller,
    page_url: String,
    places: Semaphore,
    reading: Semaphore,
    given_up: Instant,
}

impl Maps {
    pub(super) fn of(page: &Caller, page_url: &str) -> Self {
        Self {
            page: page.clone(),
            page_url: page_url.to_owned(),
            places: Semaphore::new(AT_A_TIME),
            reading: Semaphore::new(READ_AT_A_TIME),
            given_up: Instant::now() + ALL_DEADLINE,
        }
    }

    /// The text behind an address, and the right to hold it until it has been read.
    async fn text(&self, url: &Url) -> Result<(String, SemaphorePermit<'_>), String> {
        let left = self.given_up.saturating_duration_since(Instant::now());
        let place = tokio::time::timeout(left, self.places.acquire()).await;
        let Ok(Ok(_place)) = place else {
            return Err("there was no time left for it".to_owned());
        };
        if url.scheme() == "data" {
            let turn = self.turn().await?;
            return Ok((decode_data(&self.page, url.as_str()).await?, turn));
        }
        let mut loaded = network_resource::load(&self.page, url.as_str(), DEADLINE).await;
        let turn = self.turn().await?;
        match loaded.read(&self.page, DEADLINE, MAX_BYTES).await {
            Some(Ok(read)) if read.is_cut => {
                let limit = MAX_BYTES / 1_000_000;
                Err(format!("it is larger than {limit} MB"))
            }
            Some(Ok(read)) => Ok((read.text, turn)),
            Some(Err(error)) => Err(error),
            None => Err(loaded.error.unwrap_or_else(|| {
                let status = loaded.status.unwrap_or(0);
                format!("it was answered with status {status}")
            })),
        }
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, String> {
        self.reading
            .acquire()
            .await
            .map_err(|error| error.to_string())
    }
}

/// Whether a script's map can tell anything.
pub(super) fn is_worth(script: &Parsed) -> bool {
    !script.source_map_url.is_empty() && script.length >= MIN_UNITS
}

/// Reads the script's map, and what it tells of the script.
pub(super) async fn look_into(
    maps: &Maps,
    script: &Parsed,
    text: Text,
    ran: Ran,
) -> (Text, Option<SourceMap>) {
    let base = Url::parse(&script.embedder_name).or_else(|_| Url::parse(&maps.page_url));
    let url = match base.and_then(|base| base.join(&script.source_map_url)) {
        Ok(url) => url,
        Err(error) => {
            let error = format!("its address cannot be resolved: {error}");
            return (text, Some(SourceMap::failed(None, error)));
        }
    };
    let shown = (url.scheme() != "data").then(|| url.to_string());
    if !is_worth(script) {
        let unread = SourceMap {
            url: shown,
            ..SourceMap::default()
        };
        return (text, Some(unread));
    }
    match maps.text(&url).await {
        Err(error) => (text, Some(SourceMap::failed(shown, error))),
        Ok((json, _turn)) => {
            let reading = move || read(&json, text, &ran, shown);
            match tokio::task::spawn_blocking(reading).await {
                Ok((text, map)) => (text, Some(map)),
                Err(error) => {
                    let failed = SourceMap::failed(None, error.to_string());
                    (Text::default(), Some(failed))
                }
            }
        }
    }
}

fn read(json: &str, mut text: Text, ran: &Ran, url: Option<String>) -> (Text, SourceMap) {
    let map = match Map::parse(json) {
        Ok(map) => map,
        Err(error) => return (text, SourceMap::failed(url, error.to_string())),
    };
    if let Some(legacy) = &mut text.legacy {
        legacy.look_into(&map);
    }
    let taken_apart = match text.lines.is_empty() {
        true => None,
        false => map.modules(&text.lines, &ran.unused).ok(),
    };
    let read = SourceMap {
        url,
        error: None,
        sources_without_content: map.sources_without_content(),
        unmapped_unused: taken_apart.as_ref().map(|found| found.unmapped_unused),
        modules: taken_apart.map(|found| {
            let modules = found.modules.into_iter().take(MAX_MODULES);
            modules.map(Module::of).collect()
        }),
    };
    (text, read)
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

/// By ourselves where that is easy: a page's policy may forbid it to fetch addresses of this kind.
async fn decode_data(page: &Caller, url: &str) -> Result<String, String> {
    if let Some((_, data)) = url.split_once(";base64,") {
        let bytes = network_resource::from_base64(data);
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let script = format!("fetch({}).then(answer => answer.text())", Value::from(url));
    let decoded = page.evaluate_beside(Duration::from_secs(1), &script).await;
    decoded.map_err(|error| missing(&error))
}
