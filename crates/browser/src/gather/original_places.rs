//! The places in sources that places in the scripts of a page come from, according to the scripts'
//! source maps.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use plumbline_bundle::{Artifact, CodePlace, OriginalPlace, ProfileRecords};
use plumbline_source::{ScriptFunction, ScriptPosition, original_positions};
use serde::{Deserialize, Serialize};

use super::source_maps::Maps;
use super::{Gathered, scripts, to_artifact};
use crate::page::{Page, ParsedScript, ScriptPlace};

/// Timeout of all maps together.
const DEADLINE: Duration = Duration::from_secs(12);

/// The most places whose originals are gathered.
const MAX_PLACES: usize = 500;

/// A place in a script, with the place of its function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    at: (u32, u32),
    function: Option<((u32, u32), String)>,
}

/// Adds the original places to records. Those of scripts without a readable map stay without.
pub(crate) async fn add(page: &mut Page<'_>, records: &mut ProfileRecords) {
    let mut wanted: HashMap<String, Vec<Place>> = HashMap::new();
    for place in records.places_mut() {
        let places = wanted.entry(place.script_id.clone()).or_default();
        let place = Place::of(place);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    if wanted.is_empty() {
        return;
    }
    let finding = tokio::time::timeout(DEADLINE, find_in_live(page, wanted));
    let Ok(originals) = finding.await else {
        tracing::debug!("the source maps of a page took too long");
        return;
    };
    for place in records.places_mut() {
        let of_script = originals.get(&place.script_id);
        let original = of_script.and_then(|places| places.get(&Place::of(place)));
        place.original = original.cloned();
    }
}

/// A place that a report may name, and the place that it comes from.
#[derive(Serialize)]
struct NamedPlace {
    url: String,
    line: u32,
    column: u32,
    original: OriginalPlace,
}

/// The members of a console entry that name a place.
#[derive(Deserialize)]
struct ConsoleEntry {
    #[serde(default)]
    url: String,
    line: Option<u32>,
    column: Option<u32>,
}

/// The members of a script that name places.
#[derive(Deserialize)]
struct Script {
    #[serde(default)]
    url: String,
    legacy: Option<Legacy>,
}

#[derive(Deserialize)]
struct Legacy {
    signals: Vec<Signal>,
}

#[derive(Deserialize)]
struct Signal {
    line: u32,
    column: u32,
}

/// Gathers the originals of the places in external scripts that reports name: of console messages,
/// of legacy code, and of calls that forced styles or layout.
pub(super) async fn gather(
    page: &mut Page<'_>,
    artifacts: &BTreeMap<String, Artifact>,
) -> Gathered {
    let mut places: BTreeSet<ScriptPlace> = page.traced_places().into_iter().collect();
    places.extend(console_places(artifacts));
    places.extend(legacy_places(artifacts));
    let mut wanted: HashMap<String, Vec<Place>> = HashMap::new();
    for place in places.iter().take(MAX_PLACES) {
        let of_script = wanted.entry(place.url.clone()).or_default();
        of_script.push(Place::without_function(place));
    }
    if wanted.is_empty() {
        return to_artifact::<[NamedPlace]>(&[]);
    }
    // Scripts that have nothing more to do may have been discarded since they were listed.
    let scripts = page.take_mapped_scripts();
    let originals = find(page, scripts, wanted, ParsedScript::own_url).await;
    let original = |place: ScriptPlace| {
        let of_script = originals.get(&place.url)?;
        let original = of_script.get(&Place::without_function(&place))?.clone();
        Some(NamedPlace {
            url: place.url,
            line: place.line,
            column: place.column,
            original,
        })
    };
    let named: Vec<NamedPlace> = places.into_iter().filter_map(original).collect();
    to_artifact(&named)
}

fn console_places(artifacts: &BTreeMap<String, Artifact>) -> Vec<ScriptPlace> {
    let entries: Vec<ConsoleEntry> = read(artifacts, "console");
    let place = |entry: ConsoleEntry| {
        Some(ScriptPlace {
            url: entry.url,
            line: entry.line?,
            column: entry.column?,
        })
    };
    entries.into_iter().filter_map(place).collect()
}

fn legacy_places(artifacts: &BTreeMap<String, Artifact>) -> Vec<ScriptPlace> {
    let scripts: Vec<Script> = read(artifacts, "scripts");
    let places = |script: Script| {
        let signals = script.legacy.into_iter().flat_map(|legacy| legacy.signals);
        let place = move |signal: Signal| ScriptPlace {
            url: script.url.clone(),
            line: signal.line,
            column: signal.column,
        };
        signals.map(place)
    };
    scripts.into_iter().flat_map(places).collect()
}

/// Returns the items of an artifact, which is empty if it is missing.
fn read<T: serde::de::DeserializeOwned>(
    artifacts: &BTreeMap<String, Artifact>,
    name: &str,
) -> Vec<T> {
    match artifacts.get(name) {
        Some(Artifact::Gathered(raw)) => serde_json::from_str(raw.get()).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The original places of each script, by what identifies the script.
type Originals = HashMap<String, HashMap<Place, OriginalPlace>>;

/// Finds the originals of places by the source maps of the live scripts, by whose ids they are
/// listed.
async fn find_in_live(page: &mut Page<'_>, wanted: HashMap<String, Vec<Place>>) -> Originals {
    let caller = page.caller();
    if let Err(error) = page.drive(scripts::enable(&caller)).await {
        tracing::debug!(%error, "the scripts of a page could not be listed");
        return Originals::new();
    }
    caller.send("Debugger.disable", serde_json::json!({}));
    let scripts = page.take_scripts().into_vec();
    find(page, scripts, wanted, ParsedScript::id).await
}

/// Finds the originals of places by the source maps of these scripts. `identify` returns what the
/// places of a script are listed under, if they can be in it.
async fn find(
    page: &mut Page<'_>,
    scripts: Vec<ParsedScript>,
    mut wanted: HashMap<String, Vec<Place>>,
    identify: fn(&ParsedScript) -> Option<&str>,
) -> Originals {
    let caller = page.caller();
    let maps = Arc::new(Maps::of(&caller, page.final_url()));
    let mut reading = tokio::task::JoinSet::new();
    for script in scripts {
        if !script.source_map_url.is_empty()
            && let Some(key) = identify(&script).map(str::to_owned)
            && let Some(places) = wanted.remove(&key)
        {
            reading.spawn(read_map(Arc::clone(&maps), key, script, places));
        }
    }
    page.drive(async {
        let mut originals = Originals::new();
        while let Some(result) = reading.join_next().await {
            if let Ok((script, places)) = result {
                originals.insert(script, places);
            }
        }
        originals
    })
    .await
}

/// Reads the map of a script and returns the originals of its places.
async fn read_map(
    maps: Arc<Maps>,
    key: String,
    script: ParsedScript,
    places: Vec<Place>,
) -> (String, HashMap<Place, OriginalPlace>) {
    let text = match maps.url_of(&script) {
        Ok(url) => maps.text(&url).await,
        Err(error) => Err(error),
    };
    let found = match text {
        Ok((map, _parse_permit)) => {
            let parsing = move || originals(&map, &script, places);
            let parsed = tokio::task::spawn_blocking(parsing).await;
            parsed.unwrap_or_else(|error| Err(error.to_string()))
        }
        Err(error) => Err(error),
    };
    let found = found.inspect_err(|error| {
        tracing::debug!(error, "a source map of a page could not be read");
    });
    (key, found.unwrap_or_default())
}

fn originals(
    map: &str,
    script: &ParsedScript,
    places: Vec<Place>,
) -> Result<HashMap<Place, OriginalPlace>, String> {
    let positions: Vec<ScriptPosition<'_>> = places
        .iter()
        .map(|place| {
            let (line, column) = script.position_in_text(place.at);
            let function = place.function.as_ref().map(|(at, name)| {
                let (line, column) = script.position_in_text(*at);
                ScriptFunction { line, column, name }
            });
            ScriptPosition {
                line,
                column,
                function,
            }
        })
        .collect();
    let found = original_positions(map, &positions).map_err(|error| error.to_string())?;
    let pairs = places.into_iter().zip(found);
    let known = pairs.filter_map(|(place, found)| {
        let found = found?;
        let original = OriginalPlace {
            function: found.function,
            source: found.source,
            line: found.line,
            column: found.column,
        };
        Some((place, original))
    });
    Ok(known.collect())
}

impl Place {
    fn of(place: &CodePlace) -> Self {
        let function_at = place.function_at.filter(|_| !place.function.is_empty());
        Self {
            at: (place.line, place.column),
            function: function_at.map(|at| (at, place.function.clone())),
        }
    }

    fn without_function(place: &ScriptPlace) -> Self {
        Self {
            at: (place.line, place.column),
            function: None,
        }
    }
}

impl ParsedScript {
    fn id(&self) -> Option<&str> {
        Some(&self.script_id)
    }

    /// Returns the URL of a script that is not a part of its document.
    fn own_url(&self) -> Option<&str> {
        (!self.is_inline()).then_some(&self.embedder_name)
    }

    /// Returns a position within the text of the script. The positions of an inline script are
    /// those in its document.
    fn position_in_text(&self, (line, column): (u32, u32)) -> (u32, u32) {
        let is_first_line = line <= self.start_line;
        (
            line.saturating_sub(self.start_line),
            if is_first_line {
                column.saturating_sub(self.start_column)
            } else {
                column
            },
        )
    }
}
