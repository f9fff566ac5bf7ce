use plumbline_bundle::OriginalPlace;
use plumbline_model::check::{ConsoleLine, SourceLocation};
use serde::Deserialize;

use super::{ArtifactFact, Facts};

/// The places in sources that places in external scripts come from, according to source maps.
#[derive(Debug, Default, Deserialize)]
pub struct OriginalPlaces(Vec<MappedPlace>);

/// A place in a script and its original; lines and columns are counted from 0.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MappedPlace {
    url: String,
    line: u32,
    column: u32,
    original: OriginalPlace,
}

impl ArtifactFact for OriginalPlaces {
    const NAME: &'static str = "original-places";
}

impl OriginalPlaces {
    /// Returns the location with its original place, if that is known; bundles of earlier versions
    /// have none.
    pub fn add_to(facts: &Facts, location: SourceLocation) -> SourceLocation {
        let original = Self::find(facts, &location.url, location.line, location.column);
        SourceLocation {
            original,
            ..location
        }
    }

    /// Returns the line of the console with the original place, if that is known.
    pub fn add_to_line(facts: &Facts, line: ConsoleLine) -> ConsoleLine {
        let original = match (line.line, line.column) {
            (Some(at), Some(column)) => Self::find(facts, &line.url, at, column),
            _ => None,
        };
        ConsoleLine { original, ..line }
    }

    fn find(facts: &Facts, url: &str, line: u32, column: u32) -> Option<OriginalPlace> {
        let places = facts.get::<Self>().ok()?;
        let mut places = places.0.iter();
        let found = places.find(|it| it.url == url && (it.line, it.column) == (line, column))?;
        Some(found.original.clone())
    }
}
