//! The places in sources that places in the scripts of a page come from, according to the scripts'
//! source maps.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use plumbline_bundle::{CodePlace, OriginalPlace, ProfileRecords};
use plumbline_source::{ScriptFunction, ScriptPosition, original_positions};

use super::scripts;
use super::source_maps::Maps;
use crate::page::{Page, ParsedScript};

/// Timeout of all maps together.
const DEADLINE: Duration = Duration::from_secs(12);

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
    let finding = tokio::time::timeout(DEADLINE, find(page, wanted));
    let Ok(originals) = finding.await else {
        tracing::debug!("the source maps of a profiled page took too long");
        return;
    };
    for place in records.places_mut() {
        let of_script = originals.get(&place.script_id);
        let original = of_script.and_then(|places| places.get(&Place::of(place)));
        place.original = original.cloned();
    }
}

/// The original places of each script, by the script's id.
type Originals = HashMap<String, HashMap<Place, OriginalPlace>>;

async fn find(page: &mut Page<'_>, mut wanted: HashMap<String, Vec<Place>>) -> Originals {
    let caller = page.caller();
    if let Err(error) = page.drive(scripts::enable(&caller)).await {
        tracing::debug!(%error, "the scripts of a profiled page could not be listed");
        return Originals::new();
    }
    caller.send("Debugger.disable", serde_json::json!({}));
    let scripts = page.take_scripts().into_vec();
    let maps = Arc::new(Maps::of(&caller, page.final_url()));
    let mut reading = tokio::task::JoinSet::new();
    for script in scripts {
        if let Some(places) = wanted.remove(&script.script_id)
            && !script.source_map_url.is_empty()
        {
            reading.spawn(read(Arc::clone(&maps), script, places));
        }
    }
    page.drive(async {
        let mut originals = Originals::new();
        while let Some(result) = reading.join_next().await {
            if let Ok((script_id, places)) = result {
                originals.insert(script_id, places);
            }
        }
        originals
    })
    .await
}

/// Reads the map of a script and returns the originals of its places.
async fn read(
    maps: Arc<Maps>,
    script: ParsedScript,
    places: Vec<Place>,
) -> (String, HashMap<Place, OriginalPlace>) {
    let id = script.script_id.clone();
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
        tracing::debug!(error, "a source map of a profiled page could not be read");
    });
    (id, found.unwrap_or_default())
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
}

impl ParsedScript {
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
