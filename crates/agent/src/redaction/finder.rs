//! Finds secrets in the strings of a JSON text, also those that were cut off.

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::{AhoCorasick, BuildError, MatchKind};
use plumbline_seam::REDACTED;

use super::encodings::{MIN_BYTES, encodings};

/// The ends of texts that were shortened, as JSON strings contain them.
const ELLIPSES: [&str; 3] = ["…", "\\u2026", "..."];

/// Finds the forms of secrets.
#[derive(Clone)]
pub(super) struct Finder {
    /// Finds the first [`MIN_BYTES`] bytes of all forms.
    beginnings: AhoCorasick,
    /// The forms with each of these beginnings, the longest first.
    forms: Vec<Vec<String>>,
}

impl Finder {
    pub(super) fn of(secrets: &BTreeSet<String>) -> Result<Self, BuildError> {
        let forms: BTreeSet<String> = secrets.iter().flat_map(|text| encodings(text)).collect();
        let mut by_beginning = BTreeMap::<Vec<u8>, Vec<String>>::new();
        for form in forms {
            let beginning = form.as_bytes()[..MIN_BYTES].to_vec();
            by_beginning.entry(beginning).or_default().push(form);
        }
        let beginnings = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(by_beginning.keys())?;
        let mut forms: Vec<Vec<String>> = by_beginning.into_values().collect();
        for forms in &mut forms {
            forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        }
        Ok(Self { beginnings, forms })
    }

    /// Removes the secrets from the strings of a JSON text. Returns `None` if there are none, which
    /// is the usual case for a trace.
    pub(super) fn redact_json(&self, json: &[u8]) -> Option<Vec<u8>> {
        if !self.beginnings.is_match(json) {
            return None;
        }
        let mut redacted = Vec::with_capacity(json.len());
        let mut rest = json;
        // Only in strings: the digits of a secret may also be those of a time.
        while let Some(begin) = rest.iter().position(|byte| *byte == b'"') {
            let (before, string) = rest.split_at(begin + 1);
            redacted.extend_from_slice(before);
            let end = end_of_string(string);
            self.redact_string(&string[..end], &mut redacted);
            rest = &string[end..];
            if let Some((quote, after)) = rest.split_first() {
                redacted.push(*quote);
                rest = after;
            }
        }
        redacted.extend_from_slice(rest);
        Some(redacted)
    }

    fn redact_string(&self, content: &[u8], redacted: &mut Vec<u8>) {
        let mut copied = 0;
        for beginning in self.beginnings.find_overlapping_iter(content) {
            let begin = beginning.start();
            if begin < copied {
                continue;
            }
            let forms = &self.forms[beginning.pattern().as_usize()];
            if let Some(length) = length_at(&content[begin..], forms) {
                redacted.extend_from_slice(&content[copied..begin]);
                redacted.extend_from_slice(REDACTED.as_bytes());
                copied = begin + length;
            }
        }
        redacted.extend_from_slice(&content[copied..]);
    }
}

/// Returns the length of the secret that a text begins with: of a whole one, or of one that was cut
/// off at the end of the text or before an ellipsis.
fn length_at(text: &[u8], forms: &[String]) -> Option<usize> {
    let whole = forms.iter().find(|form| text.starts_with(form.as_bytes()));
    if let Some(form) = whole {
        return Some(form.len());
    }
    forms.iter().find_map(|form| {
        let pairs = form.as_bytes().iter().zip(text);
        let common = pairs.take_while(|(a, b)| a == b).count();
        // The first bytes of an ellipsis are also those of other characters.
        let common = (0..=common).rev().find(|at| form.is_char_boundary(*at))?;
        let rest = &text[common..];
        let is_cut = rest.is_empty() || ELLIPSES.iter().any(|end| rest.starts_with(end.as_bytes()));
        is_cut.then_some(common)
    })
}

/// Returns the length of the content of a JSON string, up to the quote that ends it.
fn end_of_string(string: &[u8]) -> usize {
    let mut is_escaped = false;
    for (index, byte) in string.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return index,
            _ => {}
        }
    }
    string.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        let secrets = [
            "https://secret.example/",
            "12345678",
            "1234567890abc",
            "quoted: “x”",
        ];
        let finder = Finder::of(&secrets.map(str::to_owned).into()).unwrap();
        let redacted = finder.redact_json(text.as_bytes());
        redacted.map_or(text.to_owned(), |bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn the_longest_secret_is_removed_from_strings_only() {
        for (text, expected) in [
            (r#"{"ts":12345678}"#, r#"{"ts":12345678}"#),
            (
                r#"{"12345678":"a 12345678 \"b"}"#,
                r#"{"[redacted]":"a [redacted] \"b"}"#,
            ),
            (r#""1234567890abcd12345678""#, r#""[redacted]d[redacted]""#),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }

    #[test]
    fn a_secret_that_was_cut_off_is_removed_and_a_common_beginning_is_not() {
        for (text, expected) in [
            (r#""a https://secret.ex…""#, r#""a [redacted]…""#),
            (
                r#""a https://secret.ex\u2026 b""#,
                r#""a [redacted]\u2026 b""#,
            ),
            (r#""https://secr""#, r#""[redacted]""#),
            (r#""quoted: …""#, r#""[redacted]…""#),
            (r#""https://other.example/""#, r#""https://other.example/""#),
            (r#""a https…""#, r#""a https…""#),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }
}
