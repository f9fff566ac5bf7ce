//! Detects polyfills and transformed syntax for browsers that are no longer in use. Patterns and
//! estimates are those of Lighthouse 13.5 (legacy-javascript 0.0.1).

use std::sync::OnceLock;

use regex::Regex;

use crate::SourceMap;
use crate::polyfills::{MAPPED_POLYFILLS, MAX_BYTES, MODULE_BYTES, POLYFILLS};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct LegacyCode {
    /// Signals sorted by name.
    pub signals: Vec<LegacySignal>,
    transform_bytes: f64,
}

impl LegacyCode {
    /// Returns the estimated number of bytes that the script would save.
    pub fn bytes(&self) -> f64 {
        let names = self.signals.iter().map(|signal| signal.name);
        polyfill_bytes(names) + self.transform_bytes
    }

    /// Adds polyfills that only the script's source map reveals.
    pub fn add_from_source_map(&mut self, map: &SourceMap) {
        let sources: Vec<&str> = map.sources().collect();
        for polyfill in MAPPED_POLYFILLS.iter().chain(POLYFILLS) {
            let is_of = |source: &&&str| is_module(source, polyfill.name, polyfill.module);
            if self
                .signals
                .iter()
                .any(|signal| signal.name == polyfill.name)
            {
                continue;
            }
            if let Some(source) = sources.iter().find(is_of) {
                let (line, column) = map.position_of(source).unwrap_or_default();
                self.signals.push(LegacySignal {
                    name: polyfill.name,
                    line,
                    column,
                });
            }
        }
        self.signals.sort_by_key(|signal| signal.name);
    }
}

/// Polyfills that core-js also had, or still has, as proposals.
const FORMER_PROPOSALS: [&str; 7] = [
    "Array.prototype.at",
    "Array.prototype.findLast",
    "Array.prototype.findLastIndex",
    "Object.hasOwn",
    "Promise.any",
    "String.prototype.matchAll",
    "String.prototype.replaceAll",
];

fn is_module(source: &str, name: &str, module: &str) -> bool {
    let is = |module: &str| {
        source.ends_with(&format!("/{module}.js"))
            || source.contains(&format!("node_modules/{module}/"))
    };
    let proposed = || module.replacen("es.", "esnext.", 1);
    is(module) || (FORMER_PROPOSALS.contains(&name) && is(&proposed()))
}

/// A polyfill or transform at its first occurrence, with zero-based line and column (in UTF-16
/// units).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LegacySignal {
    pub name: &'static str,
    pub line: u32,
    pub column: u32,
}

pub fn legacy_code(script: &str) -> LegacyCode {
    let patterns = patterns();
    let mut next: Vec<Option<(usize, usize)>> = patterns
        .iter()
        .map(|pattern| pattern.find_at(script, 0))
        .collect();
    let mut first_matches: Vec<(usize, usize)> = Vec::new();
    // Matches do not overlap, as with a single expression of many alternatives.
    let mut from = 0;
    loop {
        for (pattern, next) in patterns.iter().zip(&mut next) {
            if next.is_some_and(|(start, _)| start < from) {
                *next = pattern.find_at(script, from);
            }
        }
        let first = next
            .iter()
            .enumerate()
            .filter_map(|(pattern, range)| range.map(|(start, end)| (start, pattern, end)))
            .min();
        let Some((start, pattern, end)) = first else {
            break;
        };
        if !first_matches.iter().any(|(matched, _)| *matched == pattern) {
            first_matches.push((pattern, start));
        }
        from = end.max(start + 1);
        while from < script.len() && !script.is_char_boundary(from) {
            from += 1;
        }
    }
    let mut signals: Vec<LegacySignal> = first_matches
        .iter()
        .map(|&(pattern, start)| signal(patterns[pattern].name, script, start))
        .collect();
    signals.sort_by_key(|signal| signal.name);
    let transform_bytes = transform_bytes(script, signals.iter().map(|signal| signal.name));
    LegacyCode {
        signals,
        transform_bytes,
    }
}

fn signal(name: &'static str, script: &str, start: usize) -> LegacySignal {
    let before = &script[..start];
    let line = before.matches('\n').count();
    let begins = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before[begins..].encode_utf16().count();
    LegacySignal {
        name,
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(column).unwrap_or(u32::MAX),
    }
}

const CLASSES: &str = "@babel/plugin-transform-classes";
const REGENERATOR: &str = "@babel/plugin-transform-regenerator";
const SPREAD: &str = "@babel/plugin-transform-spread";

struct Pattern {
    name: &'static str,
    pattern: Option<Regex>,
}

impl Pattern {
    fn find_at(&self, script: &str, from: usize) -> Option<(usize, usize)> {
        if from > script.len() {
            return None;
        }
        let range = self.pattern.as_ref()?.find_at(script, from)?;
        Some((range.start(), range.end()))
    }
}

fn patterns() -> &'static [Pattern] {
    static PATTERNS: OnceLock<Vec<Pattern>> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        let polyfills = POLYFILLS.iter().map(|polyfill| Pattern {
            name: polyfill.name,
            pattern: Regex::new(&polyfill_pattern(polyfill.name, polyfill.module)).ok(),
        });
        let transforms = [
            (CLASSES, "Cannot call a class as a function"),
            (
                REGENERATOR,
                "Generator is already running|regeneratorRuntime",
            ),
            (SPREAD, "Invalid attempt to spread non-iterable instance"),
        ];
        let transforms = transforms.into_iter().map(|(name, pattern)| Pattern {
            name,
            pattern: Regex::new(pattern).ok(),
        });
        polyfills.chain(transforms).collect()
    })
}

/// Returns a pattern for assignments and definitions of the property, core-js's export call, and
/// its module's name.
fn polyfill_pattern(name: &str, module: &str) -> String {
    let (object, property) = name.rsplit_once('.').unwrap_or(("", name));
    let module = format!(r#"{}(?:\.js)?""#, regex::escape(module));
    if object.is_empty() {
        return format!(
            r#"(?:window\.|[\s;]+){property}\s?=[^=]|defineProperty\(window,\s?['"]{property}['"]|{module}"#
        );
    }
    let target = object.replace(".prototype", "");
    let object = regex::escape(object);
    format!(
        r#"{object}\.{property}\s?=[^=]|{object}\[['"]{property}['"]\]\s?=[^=]|defineProperty\({object},\s?['"]{property}['"]|\({object},\s*\{{{property}:.*\}},\s*\{{{property}|\{{target:['"]{target}['"][^;]*\}},\{{{property}:|{module}"#
    )
}

fn transform_bytes<'a>(script: &str, names: impl Iterator<Item = &'a str>) -> f64 {
    let count = |word: &str| script.matches(word).count() as f64;
    let estimate = |name| match name {
        CLASSES => 1000.0 + (count("_classCallCheck") - 1.0) * "_classCallCheck()".len() as f64,
        REGENERATOR => matches(r"regeneratorRuntime\(?\)?\.a?wrap", script) * 80.0,
        SPREAD => {
            let calls = r"\.apply\(void 0,\s?_toConsumableArray";
            1169.0 + matches(calls, script) * "_toConsumableArray()".len() as f64
        }
        _ => 0.0,
    };
    names.map(estimate).sum()
}

fn polyfill_bytes<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    let needs = |name| {
        let mut polyfills = POLYFILLS.iter().chain(MAPPED_POLYFILLS);
        let polyfill = polyfills.find(|polyfill| polyfill.name == name);
        polyfill.map_or(&[][..], |polyfill| polyfill.needs)
    };
    let mut modules: Vec<u8> = names.flat_map(needs).copied().collect();
    modules.sort_unstable();
    modules.dedup();
    let bytes: u32 = modules
        .iter()
        .filter_map(|module| MODULE_BYTES.get(usize::from(*module)))
        .sum();
    f64::from(bytes.min(MAX_BYTES))
}

fn matches(pattern: &str, script: &str) -> f64 {
    Regex::new(pattern).map_or(0.0, |pattern| pattern.find_iter(script).count() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(script: &str) -> Vec<&'static str> {
        let signals = legacy_code(script).signals;
        signals.iter().map(|signal| signal.name).collect()
    }

    #[test]
    fn every_pattern_is_a_valid_expression() {
        assert!(patterns().iter().all(|pattern| pattern.pattern.is_some()));
        let beyond = |polyfill: &&crate::polyfills::Polyfill| {
            polyfill
                .needs
                .iter()
                .any(|at| usize::from(*at) >= MODULE_BYTES.len())
        };
        assert!(POLYFILLS.iter().find(beyond).is_none());
    }

    #[test]
    fn polyfills_are_detected_by_their_definitions() {
        for script in [
            "Array.prototype.includes = function(){}",
            "Array.prototype['includes']=x",
            r#"Object.defineProperty(Array.prototype, "includes", {})"#,
            r#"r({target:"Array",proto:!0},{includes:function(){}})"#,
            r#"require("core-js/modules/es.array.includes.js")"#,
        ] {
            assert_eq!(names(script), ["Array.prototype.includes"], "{script}");
        }
        assert!(names("if (Array.prototype.includes == x) {}").is_empty());
        assert!(names("[].includes(1)").is_empty());
    }

    #[test]
    fn transforms_are_detected_by_their_messages_with_their_positions() {
        let code = legacy_code("a;\n 'é';throw Error('Cannot call a class as a function')");
        assert_eq!(code.signals[0].name, CLASSES);
        assert_eq!((code.signals[0].line, code.signals[0].column), (1, 18));
        assert_eq!(code.bytes(), 1000.0 - 17.0);
    }

    #[test]
    fn modules_that_two_polyfills_share_count_once() {
        let one = legacy_code("Math.log2=x;").bytes();
        let two = legacy_code("Math.log2=x;Math.log10=y;").bytes();
        assert!(two > one && two < 2.0 * one);
    }

    #[test]
    fn a_source_map_reveals_polyfills() {
        let map = SourceMap::parse(
            r#"{"version": 3, "mappings": "AAAA;CCAA", "sources": ["src/index.js",
                "webpack://node_modules/core-js/modules/esnext.promise.any.js", "x/es.array.flat.js"]}"#,
        )
        .expect("a map");
        let mut code = legacy_code("Array.prototype.flat = x");
        code.add_from_source_map(&map);
        let signal = |at: usize| {
            let signal = &code.signals[at];
            (signal.name, signal.line, signal.column)
        };
        assert_eq!(code.signals.len(), 2);
        assert_eq!(signal(0), ("Array.prototype.flat", 0, 0));
        assert_eq!(signal(1), ("Promise.any", 1, 1));
        assert!(code.bytes() > legacy_code("Array.prototype.flat = x").bytes());
    }
}
