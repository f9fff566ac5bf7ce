//! Source maps: the original source of each part of a script. The format is ECMA-426; the counting
//! rules are those of Lighthouse 13.5 (trace engine, handlers/ScriptsHandler;
//! core/computed/unused-javascript-summary.js).

mod original;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::iter::Peekable;
use std::marker::PhantomData;
use std::slice::Iter;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

pub use original::{OriginalPosition, ScriptFunction, ScriptPosition, original_positions};

#[derive(Debug, thiserror::Error)]
pub enum SourceMapError {
    #[error("it is no map: {0}")]
    NoMap(#[from] serde_json::Error),
    #[error("it does not belong to this script: line {line} has no column {column}")]
    OutOfBounds { line: u32, column: u32 },
}

/// A source map, without the contents of its sources.
#[derive(Debug, Default)]
pub struct SourceMap {
    /// Source names, prefixed with the map's root; empty for a source without a name.
    sources: Vec<String>,
    sources_without_content: usize,
    /// Mappings sorted by line and column; `None` if they cannot be decoded.
    mappings: Vec<Mapping>,
}

/// Start of a part of the script that comes from a source; zero-based line and column in UTF-16
/// units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mapping {
    line: u32,
    column: u32,
    source: Option<u32>,
}

/// The most sources that a map may name. A map of 20 MB could name millions, each of which takes
/// far more memory than in the file.
const MAX_SOURCES: usize = 100_000;
/// The most mappings that a map may have, for the same reason.
const MAX_MAPPINGS: usize = 4_000_000;

/// The part of a script that comes from one source, in UTF-16 units of the script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    pub source: String,
    pub length: u64,
    /// Units in functions that were not called.
    pub unused: u64,
}

/// Size and unused code of a script by source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modules {
    /// Modules in the map's order, without empty ones.
    pub modules: Vec<Module>,
    /// Unused units that the map assigns to no source.
    pub unmapped_unused: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json<'a> {
    #[serde(rename = "version")]
    _version: f64,
    #[serde(deserialize_with = "bounded")]
    sources: Vec<Value>,
    #[serde(default)]
    source_root: Option<Cow<'a, str>>,
    #[serde(borrow)]
    mappings: Cow<'a, str>,
    /// Contents of the sources. Only their presence is checked, so that megabytes need not be
    /// decoded.
    #[serde(borrow, default, deserialize_with = "bounded_or_none")]
    sources_content: Option<Vec<&'a RawValue>>,
}

/// Deserializes a list of at most [`MAX_SOURCES`] entries.
fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Entries<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = list.next_element()? {
                if entries.len() == MAX_SOURCES {
                    let error = format_args!("more than {MAX_SOURCES} sources");
                    return Err(serde::de::Error::custom(error));
                }
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    from.deserialize_seq(Entries(PhantomData))
}

fn bounded_or_none<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(transparent, bound = "T: Deserialize<'de>")]
    struct Bounded<T>(#[serde(deserialize_with = "bounded")] Vec<T>);

    Ok(Option::<Bounded<T>>::deserialize(from)?.map(|Bounded(entries)| entries))
}

impl SourceMap {
    pub fn parse(text: &str) -> Result<Self, SourceMapError> {
        let map: Json = serde_json::from_str(without_guard(text))?;
        let root = map.source_root.unwrap_or_default();
        let contents = map.sources_content.unwrap_or_default();
        let has_text = |at: usize| {
            let text = contents.get(at).map(|content| content.get());
            text.is_some_and(|text| text.starts_with('"') && text != "\"\"")
        };
        Ok(Self {
            sources_without_content: (0..map.sources.len()).filter(|at| !has_text(*at)).count(),
            sources: map
                .sources
                .iter()
                .map(|source| with_root(&root, source.as_str().unwrap_or_default()))
                .collect(),
            mappings: mappings(&map.mappings).unwrap_or_default(),
        })
    }

    pub fn sources_without_content(&self) -> usize {
        self.sources_without_content
    }

    /// Returns the distinct source names in the map's order.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &str> {
        let mut names = std::collections::HashSet::new();
        let sources = self.sources.iter().map(String::as_str);
        sources.filter(move |source| !source.is_empty() && names.insert(*source))
    }

    /// Returns the line and column at which code of a source first occurs.
    pub(crate) fn position_of(&self, source: &str) -> Option<(u32, u32)> {
        let is_of = |mapping: &&Mapping| {
            let at = mapping.source.and_then(|at| self.sources.get(at as usize));
            at.is_some_and(|name| name == source)
        };
        let mapping = self.mappings.iter().find(is_of)?;
        Some((mapping.line, mapping.column))
    }

    /// Computes the size and unused code of each source. `lines` has the lengths of the script's
    /// lines in UTF-16 units without line ends; `unused` has the ranges of functions that were not
    /// called, in order and without overlap.
    pub fn modules(&self, lines: &[u32], unused: &[(u64, u64)]) -> Result<Modules, SourceMapError> {
        let mut result = Modules::default();
        let mut place: HashMap<&str, usize> = HashMap::new();
        for source in self.sources() {
            place.insert(source, result.modules.len());
            result.modules.push(Module {
                source: source.to_owned(),
                ..Module::default()
            });
        }
        let mut unused = unused.iter().peekable();
        let (mut line, mut line_start) = (0, 0_u64);
        for (at, mapping) in self.mappings.iter().enumerate() {
            let name = mapping.source.and_then(|at| self.sources.get(at as usize));
            let module = name.and_then(|name| place.get(name.as_str()));
            let next = self.mappings.get(at + 1);
            let end = next.filter(|next| next.line == mapping.line);
            let end = end.map(|next| next.column);
            let Some(length) = length(lines, mapping, end) else {
                match module {
                    None => continue,
                    Some(_) => {
                        return Err(SourceMapError::OutOfBounds {
                            line: mapping.line,
                            column: end.unwrap_or(mapping.column),
                        });
                    }
                }
            };
            while line < mapping.line {
                let passed = lines.get(line as usize).copied().unwrap_or(0);
                line_start += u64::from(passed) + 1;
                line += 1;
            }
            let start = line_start + u64::from(mapping.column);
            let unused_length = overlap(&mut unused, start, start + length);
            match module.and_then(|at| result.modules.get_mut(*at)) {
                None => result.unmapped_unused += unused_length,
                Some(module) => {
                    module.length += length;
                    module.unused += unused_length;
                }
            }
        }
        result.modules.retain(|module| module.length > 0);
        Ok(result)
    }
}

/// Returns a map without a prefix that keeps it from being run as a script (ECMA-426, 10.2).
fn without_guard(text: &str) -> &str {
    let json = match text.strip_prefix(")]}") {
        Some(guarded) => guarded.split_once('\n').map_or("", |(_, rest)| rest),
        None => text,
    };
    json.trim_start_matches('\u{feff}')
}

/// Returns the length of a mapping up to the next one, or over the end of its line.
fn length(lines: &[u32], mapping: &Mapping, end: Option<u32>) -> Option<u64> {
    let whole = *lines.get(mapping.line as usize)?;
    let end = match end {
        Some(column) => Some(column).filter(|column| *column <= whole)?,
        None => whole.checked_add(1)?,
    };
    end.checked_sub(mapping.column).map(u64::from)
}

/// Returns how much of a range lies in `ranges`; calls must be in order.
fn overlap(ranges: &mut Peekable<Iter<(u64, u64)>>, start: u64, end: u64) -> u64 {
    let mut within = 0;
    while let Some((from, to)) = ranges.peek() {
        within += end.min(*to).saturating_sub(start.max(*from));
        if *to > end {
            break;
        }
        ranges.next();
    }
    within
}

/// Prefixes relative source names with the root, as browser tools do.
fn with_root(root: &str, source: &str) -> String {
    let scheme = source.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_absolute = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    if is_absolute || source.is_empty() {
        return source.to_owned();
    }
    let needs_slash = !root.is_empty() && !root.ends_with('/') && !source.starts_with('/');
    format!("{root}{}{source}", if needs_slash { "/" } else { "" })
}

/// Decodes mappings; returns `None` if a number is invalid or there are too many mappings.
fn mappings(text: &str) -> Option<Vec<Mapping>> {
    let mut mappings = Vec::with_capacity((text.len() / 6).min(MAX_MAPPINGS));
    let (mut line, mut source) = (0_u32, 0_i64);
    for segments in text.split(';') {
        let mut column = 0_i64;
        for segment in segments.split(',').filter(|segment| !segment.is_empty()) {
            let mut digits = segment.bytes();
            column += number(&mut digits)?;
            let has_source = digits.len() > 0;
            if has_source {
                source += number(&mut digits)?;
            }
            if mappings.len() == MAX_MAPPINGS {
                return None;
            }
            mappings.push(Mapping {
                line,
                column: u32::try_from(column).ok()?,
                source: u32::try_from(source).ok().filter(|_| has_source),
            });
        }
        line = line.checked_add(1)?;
    }
    let place = |mapping: &Mapping| (mapping.line, mapping.column);
    if !mappings.is_sorted_by_key(place) {
        mappings.sort_by_key(place);
    }
    Some(mappings)
}

/// Decodes a number in Base64 VLQ: digits of five bits, lowest first, with a continuation bit; the
/// lowest bit is the sign (ECMA-426).
fn number(digits: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let (mut value, mut shift) = (0_i64, 0_u32);
    loop {
        let digit = match digits.next()? {
            letter @ b'A'..=b'Z' => letter - b'A',
            letter @ b'a'..=b'z' => letter - b'a' + 26,
            letter @ b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        if shift > 30 {
            return None;
        }
        value |= i64::from(digit & 31) << shift;
        shift += 5;
        if digit < 32 {
            break;
        }
    }
    let magnitude = value >> 1;
    Some(if value & 1 == 1 {
        -magnitude
    } else {
        magnitude
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map(mappings: &str) -> SourceMap {
        let text = format!(
            r#"{{"version": 3, "sourceRoot": "src", "sources": ["a.js", "webpack://b.js", "a.js", null],
                "sourcesContent": ["x", ""], "mappings": "{mappings}"}}"#
        );
        SourceMap::parse(&text).expect("a map")
    }

    fn modules_of(mappings: &str, lines: &[u32], unused: &[(u64, u64)]) -> Vec<(String, u64, u64)> {
        let modules = map(mappings).modules(lines, unused).expect("its script");
        let modules = modules.modules.into_iter();
        modules
            .map(|module| (module.source, module.length, module.unused))
            .collect()
    }

    #[test]
    fn sources_without_content_are_counted() {
        assert_eq!(map("").sources_without_content(), 3);
    }

    #[test]
    fn a_map_with_too_many_sources_or_mappings_is_rejected() {
        let many = |entry: &str, entries: usize| vec![entry; entries].join(",");
        let with = |sources: &str, contents: &str| {
            SourceMap::parse(&format!(
                r#"{{"version": 3, "sources": [{sources}], "sourcesContent": {contents}, "mappings": ""}}"#
            ))
        };
        let most = many("\"\"", MAX_SOURCES);
        assert!(with(&most, "null").is_ok());
        assert!(with("", &format!("[{most}]")).is_ok());
        let beyond = many("\"\"", MAX_SOURCES + 1);
        let error = with(&beyond, "null").unwrap_err().to_string();
        assert!(error.contains("more than 100000 sources"), "{error}");
        assert!(with("", &format!("[{beyond}]")).is_err());
        assert!(mappings(&many("A", 1000)).is_some());
        assert!(mappings(&many("A", MAX_MAPPINGS + 1)).is_none());
    }

    #[test]
    fn relative_names_are_prefixed_with_the_root() {
        let map = map("");
        let names: Vec<&str> = map.sources().collect();
        assert_eq!(names, ["src/a.js", "webpack://b.js"]);
        assert_eq!(with_root("", "a.js"), "a.js");
        assert_eq!(with_root("r/", "a.js"), "r/a.js");
        assert_eq!(with_root("r", "/a.js"), "r/a.js");
    }

    #[test]
    fn a_mapping_reaches_to_the_next_or_past_the_end_of_its_line() {
        // 0:0 from a, 0:10 from b, 1:0 from a under its other number, 1:4 from no source.
        let modules = modules_of("AAAA,UCAA;ACAA,I", &[25, 9], &[]);
        let b = ("webpack://b.js".to_owned(), 16, 0);
        assert_eq!(modules, [("src/a.js".to_owned(), 10 + 4, 0), b]);
    }

    #[test]
    fn unused_code_is_reported_by_source() {
        let unused = [(5, 12), (20, 40)];
        let modules = map("AAAA,UCAA;ACAA,I")
            .modules(&[25, 9], &unused)
            .expect("its script");
        let of = |at: usize| modules.modules[at].unused;
        // a: 5..10 of the first line, all 4 units of the second, which begins at 26; b: 10..12 and
        // 20..26.
        assert_eq!((of(0), of(1), modules.unmapped_unused), (9, 8, 6));
    }

    #[test]
    fn a_map_of_another_script_is_an_error() {
        for (lines, mappings) in [(&[5][..], "AAAA,UCAA"), (&[5], ";AAAA"), (&[5], "UAAA")] {
            assert!(map(mappings).modules(lines, &[]).is_err(), "{mappings}");
        }
    }

    #[test]
    fn invalid_maps_are_errors() {
        for text in ["", "{}", "<html>", r#"{"version":3,"sources":[]}"#] {
            assert!(SourceMap::parse(text).is_err(), "{text}");
        }
        let guarded = ")]}'\n{\"version\":3,\"sources\":[],\"mappings\":\"\"}";
        assert!(SourceMap::parse(guarded).is_ok());
        assert!(map("AAAA,!").mappings.is_empty());
    }

    #[test]
    fn numbers_are_decoded_as_base64_vlq() {
        for (text, value) in [("A", 0), ("C", 1), ("D", -1), ("gB", 16), ("2H", 123)] {
            assert_eq!(number(&mut text.bytes()), Some(value), "{text}");
        }
        assert_eq!(number(&mut "g".bytes()), None);
    }

    proptest! {
        #[test]
        fn arbitrary_mappings_never_panic_or_exceed_the_script(
            text in "[A-Za-f,;]{0,80}",
            lines in proptest::collection::vec(0_u32..60, 0..6),
            cuts in proptest::collection::btree_set(0_u64..300, 0..8),
        ) {
            let cuts: Vec<u64> = cuts.into_iter().collect();
            let unused: Vec<(u64, u64)> = cuts.chunks_exact(2).map(|c| (c[0], c[1])).collect();
            let length: u64 = lines.iter().map(|line| u64::from(*line) + 1).sum();
            if let Ok(modules) = map(&text).modules(&lines, &unused) {
                let mapped: u64 = modules.modules.iter().map(|module| module.length).sum();
                prop_assert!(mapped <= length);
                prop_assert!(modules.modules.iter().all(|module| module.unused <= module.length));
            }
        }
    }
}
