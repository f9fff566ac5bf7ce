//! The places in the sources that positions of a script come from. Only the mappings of these
//! positions are kept, because a map may have millions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{SourceMapError, bounded, number, with_root, without_guard};

/// The most characters between the end of a function's name and its parameters, as in
/// `name=async function(`.
const MAX_NAME_GAP: u32 = 16;

/// A position of a script whose original place is wanted: zero-based line and column in UTF-16
/// units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptPosition<'a> {
    pub line: u32,
    pub column: u32,
    /// The function around the position, if its original name is wanted.
    pub function: Option<ScriptFunction<'a>>,
}

/// A function of a script: the position of its parameters, and its name, which may have those of
/// objects before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptFunction<'a> {
    pub line: u32,
    pub column: u32,
    pub name: &'a str,
}

/// The place in a source that a position of a script comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalPosition {
    pub source: String,
    pub line: u32,
    pub column: u32,
    /// The original name of the function around it, if the map has it.
    pub function: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json<'a> {
    #[serde(deserialize_with = "bounded")]
    sources: Vec<Value>,
    #[serde(default)]
    source_root: Option<Cow<'a, str>>,
    #[serde(default)]
    names: Vec<Value>,
    #[serde(borrow)]
    mappings: Cow<'a, str>,
}

/// A mapping as it is written in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    column: u32,
    /// Index of the source, with line and column in it; `None` for code without a source.
    source: Option<(u32, u32, u32)>,
    /// Index of the original name.
    name: Option<u32>,
}

/// Returns the place in the sources of a map for each position of its script; `None` for positions
/// that the map says nothing about.
pub fn original_positions(
    map: &str,
    positions: &[ScriptPosition<'_>],
) -> Result<Vec<Option<OriginalPosition>>, SourceMapError> {
    let map: Json = serde_json::from_str(without_guard(map))?;
    let mut wanted: BTreeMap<(u32, u32), Option<Segment>> = BTreeMap::new();
    for position in positions {
        wanted.insert((position.line, position.column), None);
        if let Some(function) = position.function {
            wanted.insert(function.place_of_name(), None);
        }
    }
    find(&map.mappings, &mut wanted);
    let segment_at = |place: (u32, u32)| wanted.get(&place).copied().flatten();
    let root = map.source_root.as_deref().unwrap_or_default();
    let original = |position: &ScriptPosition<'_>| {
        let (source, line, column) = segment_at((position.line, position.column))?.source?;
        let source = map.sources.get(source as usize)?.as_str()?;
        let name = position.function.and_then(|function| {
            let segment = segment_at(function.place_of_name())?;
            let name = segment.name.filter(|_| function.is_named_by(segment))?;
            map.names.get(name as usize)?.as_str().map(str::to_owned)
        });
        (!source.is_empty()).then(|| OriginalPosition {
            source: with_root(root, source),
            line,
            column,
            function: name,
        })
    };
    Ok(positions.iter().map(original).collect())
}

impl ScriptFunction<'_> {
    /// Returns the length of the last part of the name, such as `run` of `app.run`.
    fn name_length(&self) -> u32 {
        let last = self.name.rsplit('.').next().unwrap_or_default();
        u32::try_from(last.encode_utf16().count()).unwrap_or(u32::MAX)
    }

    /// Returns the last position at which the name can begin that precedes the parameters.
    fn place_of_name(&self) -> (u32, u32) {
        (self.line, self.column.saturating_sub(self.name_length()))
    }

    /// Returns whether a mapping before the parameters can be that of the name.
    fn is_named_by(&self, segment: Segment) -> bool {
        let end = segment.column.saturating_add(self.name_length());
        !self.name.is_empty() && end <= self.column && self.column - end <= MAX_NAME_GAP
    }
}

/// Finds the last mapping at or before each of the wanted positions, in its line. A map that ends
/// with an invalid mapping is read up to there.
fn find(mappings: &str, wanted: &mut BTreeMap<(u32, u32), Option<Segment>>) {
    let Some((last_line, _)) = wanted.keys().next_back().copied() else {
        return;
    };
    let mut state = [0_i64; 4];
    for (line, segments) in (0_u32..=last_line).zip(mappings.split(';')) {
        let mut column = 0_i64;
        let mut previous: Option<Segment> = None;
        for text in segments.split(',').filter(|text| !text.is_empty()) {
            let Some(segment) = decode(text, &mut column, &mut state) else {
                return;
            };
            if let Some(previous) = previous
                && previous.column < segment.column
            {
                let covered = (line, previous.column)..(line, segment.column);
                wanted
                    .range_mut(covered)
                    .for_each(|(_, at)| *at = Some(previous));
            }
            previous = Some(segment);
        }
        if let Some(previous) = previous {
            let covered = (line, previous.column)..=(line, u32::MAX);
            wanted
                .range_mut(covered)
                .for_each(|(_, at)| *at = Some(previous));
        }
    }
}

/// Decodes a segment: its column, and the source, line, column and name relative to the last ones.
fn decode(text: &str, column: &mut i64, state: &mut [i64; 4]) -> Option<Segment> {
    let mut digits = text.bytes();
    *column += number(&mut digits)?;
    let mut fields = 0;
    while digits.len() > 0 {
        *state.get_mut(fields)? += number(&mut digits)?;
        fields += 1;
    }
    let unsigned = |number: i64| u32::try_from(number).ok();
    let [source, line, original_column, name] = *state;
    Some(Segment {
        column: unsigned(*column)?,
        source: if fields >= 3 {
            Some((
                unsigned(source)?,
                unsigned(line)?,
                unsigned(original_column)?,
            ))
        } else {
            None
        },
        name: if fields >= 4 { unsigned(name) } else { None },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCRIPT: &str = include_str!("../../../../fixtures/pages/slow-functions.min.js");
    const MAP: &str = include_str!("../../../../fixtures/pages/slow-functions.min.js.map");

    /// Returns the original place of a text of the fixture's script, and of the function whose
    /// parameters are at another text.
    fn place_of(text: &str, function: Option<(&str, &str)>) -> Option<OriginalPosition> {
        let column = |text: &str| SCRIPT.find(text).unwrap() as u32;
        let position = ScriptPosition {
            line: 0,
            column: column(text),
            function: function.map(|(name, with_parameters)| ScriptFunction {
                line: 0,
                column: column(with_parameters) + with_parameters.find('(').unwrap() as u32,
                name,
            }),
        };
        original_positions(MAP, &[position]).unwrap().remove(0)
    }

    fn original(line: u32, column: u32, function: Option<&str>) -> Option<OriginalPosition> {
        Some(OriginalPosition {
            source: "slow-functions.js".to_owned(),
            line,
            column,
            function: function.map(str::to_owned),
        })
    }

    #[test]
    fn a_position_comes_from_the_last_mapping_before_it() {
        let (compute, read) = (("t", "t(e)"), ("o", "o(e){"));
        assert_eq!(
            place_of("(e){const t", Some(compute)),
            original(2, 24, Some("computeChecksum"))
        );
        assert_eq!(
            place_of("offsetHeight", Some(read)),
            original(22, 17, Some("readHeight"))
        );
        assert_eq!(place_of("%65521", None), original(6, 27, None));
    }

    #[test]
    fn a_function_without_a_name_of_its_own_gets_none() {
        // The name before it is that of the function that is called with it.
        assert_eq!(
            place_of("()=>{t(200)", Some(("", "()=>{t(200)"))),
            original(25, 11, None)
        );
    }

    #[test]
    fn names_of_variables_and_members_with_a_function_are_those_of_the_function() {
        // `a=b=>…` with `a` from 0:4 named `render`, the function from 0:11; then `x.a=function(`.
        let map = r#"{"version": 3, "sources": ["src/app.js"], "sourceRoot": "webpack:///",
            "names": ["render"], "mappings": "AAAIA,EAAO"}"#;
        let position = |column, name| ScriptPosition {
            line: 0,
            column,
            function: Some(ScriptFunction {
                line: 0,
                column,
                name,
            }),
        };
        let names = |position| {
            let found = original_positions(map, &[position]).unwrap().remove(0);
            found.unwrap().function
        };
        assert_eq!(names(position(2, "a")), Some("render".to_owned()));
        assert_eq!(names(position(2, "x.a")), Some("render".to_owned()));
        // Too far from the name, and shorter than the name.
        assert_eq!(names(position(40, "a")), None);
        assert_eq!(names(position(2, "")), None);
        let found = original_positions(map, &[position(2, "a")])
            .unwrap()
            .remove(0);
        assert_eq!(found.unwrap().source, "webpack:///src/app.js");
    }

    #[test]
    fn positions_before_the_first_mapping_or_without_a_source_have_no_original() {
        let map = r#"{"version": 3, "sources": ["a.js", null], "names": [],
            "mappings": ";EAAA,G,GCAA"}"#;
        let at = |line, column| {
            let position = ScriptPosition {
                line,
                column,
                function: None,
            };
            original_positions(map, &[position]).unwrap().remove(0)
        };
        assert_eq!(at(0, 5), None);
        assert_eq!(at(1, 1), None);
        assert_eq!(at(1, 4).unwrap().source, "a.js");
        assert_eq!(at(1, 6), None);
        assert_eq!(at(1, 9), None);
        assert_eq!(at(2, 0), None);
        assert!(original_positions("<html>", &[]).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_mappings_never_panic(
            text in "[A-Za-f,;!]{0,80}",
            line in 0_u32..5,
            column in 0_u32..90,
        ) {
            let map = format!(
                r#"{{"version": 3, "sources": ["a.js"], "names": ["n"], "mappings": "{text}"}}"#
            );
            let function = Some(ScriptFunction { line, column, name: "n" });
            let position = ScriptPosition { line, column, function };
            prop_assert_eq!(original_positions(&map, &[position]).unwrap().len(), 1);
        }
    }
}
