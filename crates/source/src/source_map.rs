//! Source maps: which part of a script came from which file. Format: ECMA-426, and how Lighthouse 13.5 counts
//! with it (trace engine, handlers/ScriptsHandler; core/computed/unused-javascript-summary.js).

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

#[derive(Debug, thiserror::Error)]
pub enum SourceMapError {
    #[error("it is no map: {0}")]
    NoMap(#[from] serde_json::Error),
    #[error("it does not belong to this script: line {line} has no column {column}")]
    OutOfBounds { line: u32, column: u32 },
}

/// A map, without the texts of its sources.
#[derive(Debug, Default)]
pub struct SourceMap {
    /// With the map's root in front; empty where a source has no name.
    sources: Vec<String>,
    sources_without_content: usize,
    /// By line and column; none where they cannot be read.
    mappings: Vec<Mapping>,
}

/// Where the part of the script begins that came from a source; lines and columns from 0, in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mapping {
    line: u32,
    column: u32,
    source: Option<u32>,
}

/// The most sources that a map may name. One of 20 MB could name millions, each far larger in memory than in the file.
const MAX_SOURCES: usize = 100_000;
/// The most parts that a map may take a script apart into, for the same reason.
const MAX_MAPPINGS: usize = 4_000_000;

/// What of a script came from one source, in UTF-16 units of the script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    pub source: String,
    pub length: u64,
    /// Of it, in functions that were not called.
    pub unused: u64,
}

/// A script taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modules {
    /// In the map's order, those of which nothing came left out.
    pub modules: Vec<Module>,
    /// In what the map says came from no source.
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
    /// Only whether they are there counts, so that megabytes need not be decoded.
    #[serde(borrow, default, deserialize_with = "bounded_or_none")]
    sources_content: Option<Vec<&'a RawValue>>,
}

/// A list of at most [`MAX_SOURCES`].
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
        // A line that keeps the map from being run as a script (ECMA-426, 10.2).
        let json = match text.strip_prefix(")]}") {
            Some(guarded) => guarded.split_once('\n').map_or("", |(_, rest)| rest),
            None => text,
        };
        let map: Json = serde_json::from_str(json.trim_start_matches('\u{feff}'))?;
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
                .map(|source| rooted(&root, source.as_str().unwrap_or_default()))
                .collect(),
            mappings: mappings(&map.mappings).unwrap_or_default(),
        })
    }

    pub fn sources_without_content(&self) -> usize {
        self.sources_without_content
    }

    /// Each name once, in the map's order.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &str> {
        let mut known = std::collections::HashSet::new();
        let named = self.sources.iter().map(String::as_str);
        named.filter(move |source| !source.is_empty() && known.insert(*source))
    }

    /// Where the first part of the script that came from a source begins.
    pub(crate) fn place_of(&self, source: &str) -> Option<(u32, u32)> {
        let is_of = |mapping: &&Mapping| {
            let at = mapping.source.and_then(|at| self.sources.get(at as usize));
            at.is_some_and(|name| name == source)
        };
        let found = self.mappings.iter().find(is_of)?;
        Some((found.line, found.column))
    }

    /// `lines`: the lengths of the script's lines in UTF-16 units, line ends left out. `unused`: from where to
    /// where functions were not called, in order and apart.
    pub fn modules(&self, lines: &[u32], unused: &[(u64, u64)]) -> Result<Modules, SourceMapError> {
        let mut taken_apart = Modules::default();
        let mut place: HashMap<&str, usize> = HashMap::new();
        for source in self.sources() {
            place.insert(source, taken_apart.modules.len());
            taken_apart.modules.push(Module {
                source: source.to_owned(),
                ..Module::default()
            });
        }
        let mut unused = unused.iter().peekable();
        let (mut line, mut line_begins) = (0, 0_u64);
        for (at, mapping) in self.mappings.iter().enumerate() {
            let name = mapping.source.and_then(|at| self.sources.get(at as usize));
            let module = name.and_then(|name| place.get(name.as_str()));
            let next = self.mappings.get(at + 1);
            let ends = next.filter(|next| next.line == mapping.line);
            let ends = ends.map(|next| next.column);
            let Some(length) = length(lines, mapping, ends) else {
                match module {
                    None => continue,
                    Some(_) => {
                        return Err(SourceMapError::OutOfBounds {
                            line: mapping.line,
                            column: ends.unwrap_or(mapping.column),
                        });
                    }
                }
            };
            while line < mapping.line {
                let passed = lines.get(line as usize).copied().unwrap_or(0);
                line_begins += u64::from(passed) + 1;
                line += 1;
            }
            let begins = line_begins + u64::from(mapping.column);
            let vain = overlap(&mut unused, begins, begins + length);
            match module.and_then(|at| taken_apart.modules.get_mut(*at)) {
                None => taken_apart.unmapped_unused += vain,
                Some(module) => {
                    module.length += length;
                    module.unused += vain;
                }
            }
        }
        taken_apart.modules.retain(|module| module.length > 0);
        Ok(taken_apart)
    }
}

/// Up to the next mapping of the line, or over its end.
fn length(lines: &[u32], mapping: &Mapping, ends: Option<u32>) -> Option<u64> {
    let whole = *lines.get(mapping.line as usize)?;
    let ends = match ends {
        Some(column) => Some(column).filter(|column| *column <= whole)?,
        None => whole.checked_add(1)?,
    };
    ends.checked_sub(mapping.column).map(u64::from)
}

/// How much of a stretch lies in `ranges`; the stretches come in order.
fn overlap(ranges: &mut Peekable<Iter<(u64, u64)>>, begins: u64, ends: u64) -> u64 {
    let mut within = 0;
    while let Some((from, to)) = ranges.peek() {
        within += ends.min(*to).saturating_sub(begins.max(*from));
        if *to > ends {
            break;
        }
        ranges.next();
    }
    within
}

/// As the browser's own tools name sources: the root before what is relative.
fn rooted(root: &str, source: &str) -> String {
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

/// None where a number is not one, or where there are too many.
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

/// Base64 digits of five bits, the lowest first, the sixth saying that more follow; the lowest bit of all is
/// the sign (ECMA-426, VLQ).
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

    fn apart(mappings: &str, lines: &[u32], unused: &[(u64, u64)]) -> Vec<(String, u64, u64)> {
        let modules = map(mappings).modules(lines, unused).expect("its script");
        let modules = modules.modules.into_iter();
        modules
            .map(|module| (module.source, module.length, module.unused))
            .collect()
    }

    #[test]
    fn sources_are_counted_whose_text_is_missing() {
        assert_eq!(map("").sources_without_content(), 3);
    }

    #[test]
    fn a_map_of_more_parts_than_can_be_held_is_not_read() {
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
    fn names_stand_below_the_root_unless_they_are_addresses() {
        let map = map("");
        let names: Vec<&str> = map.sources().collect();
        assert_eq!(names, ["src/a.js", "webpack://b.js"]);
        assert_eq!(rooted("", "a.js"), "a.js");
        assert_eq!(rooted("r/", "a.js"), "r/a.js");
        assert_eq!(rooted("r", "/a.js"), "r/a.js");
    }

    #[test]
    fn a_part_reaches_to_the_next_or_over_the_end_of_its_line() {
        // 0:0 from a, 0:10 from b, 1:0 from a under its other number, 1:4 from nowhere.
        let found = apart("AAAA,UCAA;ACAA,I", &[25, 9], &[]);
        let b = ("webpack://b.js".to_owned(), 16, 0);
        assert_eq!(found, [("src/a.js".to_owned(), 10 + 4, 0), b]);
    }

    #[test]
    fn what_was_not_called_is_told_by_source() {
        let unused = [(5, 12), (20, 40)];
        let modules = map("AAAA,UCAA;ACAA,I")
            .modules(&[25, 9], &unused)
            .expect("its script");
        let of = |at: usize| modules.modules[at].unused;
        // a: 5..10 of the first line, all 4 units of the second, which begins at 26; b: 10..12 and 20..26.
        assert_eq!((of(0), of(1), modules.unmapped_unused), (9, 8, 6));
    }

    #[test]
    fn a_map_of_another_script_is_told() {
        for (lines, mappings) in [(&[5][..], "AAAA,UCAA"), (&[5], ";AAAA"), (&[5], "UAAA")] {
            assert!(map(mappings).modules(lines, &[]).is_err(), "{mappings}");
        }
    }

    #[test]
    fn what_is_no_map_is_said() {
        for text in ["", "{}", "<html>", r#"{"version":3,"sources":[]}"#] {
            assert!(SourceMap::parse(text).is_err(), "{text}");
        }
        let guarded = ")]}'\n{\"version\":3,\"sources\":[],\"mappings\":\"\"}";
        assert!(SourceMap::parse(guarded).is_ok());
        assert!(map("AAAA,!").mappings.is_empty());
    }

    #[test]
    fn numbers_are_read_as_the_format_has_them() {
        for (text, value) in [("A", 0), ("C", 1), ("D", -1), ("gB", 16), ("2H", 123)] {
            assert_eq!(number(&mut text.bytes()), Some(value), "{text}");
        }
        assert_eq!(number(&mut "g".bytes()), None);
    }

    proptest! {
        #[test]
        fn any_mappings_are_read_without_harm_and_never_exceed_the_script(
            text in "[A-Za-f,;]{0,80}",
            lines in proptest::collection::vec(0_u32..60, 0..6),
            cuts in proptest::collection::btree_set(0_u64..300, 0..8),
        ) {
            let cuts: Vec<u64> = cuts.into_iter().collect();
            let unused: Vec<(u64, u64)> = cuts.chunks_exact(2).map(|c| (c[0], c[1])).collect();
            let length: u64 = lines.iter().map(|line| u64::from(*line) + 1).sum();
            if let Ok(found) = map(&text).modules(&lines, &unused) {
                let mapped: u64 = found.modules.iter().map(|module| module.length).sum();
                prop_assert!(mapped <= length);
                prop_assert!(found.modules.iter().all(|module| module.unused <= module.length));
            }
        }
    }
}
