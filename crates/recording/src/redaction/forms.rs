//! The forms in which a value occurs in texts.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::percent;

/// The length below which forms are not searched for, since they occur by chance.
const MIN_BYTES: usize = 4;

/// The length below which Base64 is not searched for, since it occurs by chance in other Base64:
/// six characters occur about once in 70 GB.
const MIN_BASE64_BYTES: usize = 6;

/// Returns a value as it is, percent-encoded, escaped for JSON and markup, and in Base64.
pub fn all(value: &str) -> BTreeSet<Vec<u8>> {
    if value.is_empty() {
        return BTreeSet::new();
    }
    let mut forms = BTreeSet::from([value.as_bytes().to_vec()]);
    if value.len() < MIN_BYTES {
        return forms;
    }
    let texts = percent_encoded(value).into_iter().chain(escaped(value));
    forms.extend(texts.map(String::into_bytes));
    forms.extend(base64_cores(value.as_bytes()));
    forms
}

/// Returns the forms of `encodeURIComponent`, `encodeURI`, forms and strict encoders, also encoded
/// twice.
fn percent_encoded(value: &str) -> Vec<String> {
    let component = percent::encode(value, "-_.!~*'()");
    let strict = percent::encode(value, "-_.~");
    let form = percent::encode(value, "-_.* ").replace(' ', "+");
    let uri = percent::encode(value, "-_.!~*'();/?:@&=+$,#");
    let twice = percent::encode(&component, "-_.!~*'()");
    let upper = [component, strict, form, uri, twice];
    let lower = upper
        .iter()
        .map(|text| with_lower_hex(text))
        .collect::<Vec<_>>();
    upper.into_iter().chain(lower).collect()
}

/// Writes the digits after percent signs in lower case.
fn with_lower_hex(text: &str) -> String {
    let mut parts = text.split('%');
    let mut output = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        output.push('%');
        output.push_str(&digits.to_ascii_lowercase());
        output.push_str(rest);
    }
    output
}

/// Returns the forms in JSON, in scripts and in markup.
fn escaped(value: &str) -> Vec<String> {
    let json = serde_json::Value::from(value).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let with_slashes = json.replace('/', "\\/");
    let as_units = |is_escaped: fn(char) -> bool, upper: bool| {
        let mut output = String::new();
        for c in value.chars() {
            if is_escaped(c) {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let digits = format!("{unit:04x}");
                    let digits = if upper { digits.to_uppercase() } else { digits };
                    output.push_str("\\u");
                    output.push_str(&digits);
                }
            } else if c == '"' || c == '\\' {
                output.push('\\');
                output.push(c);
            } else {
                output.push(c);
            }
        }
        output
    };
    let is_foreign = |c: char| !c.is_ascii();
    let is_sign = |c: char| !c.is_ascii() || "<>&='+/\"".contains(c);
    let is_markup = |c: char| "<>&".contains(c);
    let markup = value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;");
    vec![
        json,
        with_slashes,
        as_units(is_foreign, false),
        as_units(is_foreign, true),
        as_units(is_sign, false),
        as_units(is_sign, true),
        as_units(is_markup, false),
        as_units(is_markup, true),
        markup.replace('\'', "&#39;"),
        markup.replace('\'', "&#x27;"),
        markup,
    ]
}

/// Returns the characters of Base64 that depend on the value alone, for each of the three positions
/// at which the value can begin within other bytes.
fn base64_cores(value: &[u8]) -> Vec<Vec<u8>> {
    let mut cores = Vec::new();
    for offset in 0..3 {
        let mut bytes = vec![0; offset];
        bytes.extend_from_slice(value);
        // Each character has six bits. The first and the last ones may contain bits of others.
        let start = (offset * 8).div_ceil(6);
        let end = bytes.len() * 8 / 6;
        for text in [
            STANDARD_NO_PAD.encode(&bytes),
            URL_SAFE_NO_PAD.encode(&bytes),
        ] {
            if end.saturating_sub(start) >= MIN_BASE64_BYTES {
                cores.push(text.as_bytes()[start..end].to_vec());
            }
        }
    }
    cores
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    fn contains_form(value: &str, text: &str) -> bool {
        let forms = all(value);
        forms.iter().any(|form| {
            let mut windows = text.as_bytes().windows(form.len());
            windows.any(|window| window == &form[..])
        })
    }

    #[test]
    fn all_usual_forms_are_known() {
        let value = "aB+c/d=\"é<&'";
        for text in [
            "aB%2Bc%2Fd%3D%22%C3%A9%3C%26'",
            "aB%2bc%2fd%3d%22%c3%a9%3c%26'",
            "aB+c/d=\\\"é<&'",
            "aB+c\\/d=\\\"é<&'",
            "aB\\u002bc\\u002fd\\u003d\\u0022\\u00e9\\u003c\\u0026\\u0027",
            "aB+c/d=&quot;é&lt;&amp;&#39;",
        ] {
            assert!(contains_form(value, text), "{text}");
        }
        assert!(contains_form("with blank", "with+blank"));
        assert!(contains_form("with blank", "with%20blank"));
    }

    #[test]
    fn short_values_are_searched_for_as_they_are() {
        assert_eq!(all("ab"), BTreeSet::from([b"ab".to_vec()]));
        assert!(all("").is_empty());
    }

    proptest! {
        #[test]
        fn base64_is_known_wherever_the_value_begins(
            before in "[a-z]{0,4}",
            value in "[!-~]{8,20}",
            after in "[a-z]{0,4}",
        ) {
            let bytes = format!("{before}{value}{after}");
            prop_assert!(contains_form(&value, &STANDARD.encode(&bytes)));
            prop_assert!(contains_form(&value, &URL_SAFE_NO_PAD.encode(&bytes)));
        }
    }
}
