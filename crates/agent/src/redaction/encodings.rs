//! The forms in which a secret can appear in the text of a JSON string.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use plumbline_seam::MIN_MASKED_BYTES;
use serde_json::Value;

/// The shortest secret that is searched for. Shorter ones, such as `1` or `true`, occur everywhere;
/// they are only removed from headers.
pub(super) const MIN_BYTES: usize = MIN_MASKED_BYTES;

/// Returns a secret with the parts of it that a page may use alone: words, the percent-decoded
/// text, and the texts in JSON.
pub(super) fn parts(secret: &str) -> BTreeSet<String> {
    let mut parts = BTreeSet::from([secret.to_owned()]);
    parts.extend(secret.split_ascii_whitespace().map(str::to_owned));
    let decoded = percent_decoded(secret);
    for text in [Some(secret), decoded.as_deref()].into_iter().flatten() {
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            collect_texts(&value, &mut parts);
        }
    }
    parts.extend(decoded);
    parts.retain(|part| part.len() >= MIN_BYTES);
    parts
}

/// Returns the contents of the quoted texts in a script.
pub(super) fn literals(script: &str) -> Vec<String> {
    let mut literals = Vec::new();
    let mut chars = script.chars();
    while let Some(quote) = chars.find(|c| matches!(c, '"' | '\'' | '`')) {
        let mut content = String::new();
        while let Some(c) = chars.next() {
            match c {
                '\\' => content.extend(chars.next()),
                c if c == quote => break,
                c => content.push(c),
            }
        }
        literals.push(content);
    }
    literals.retain(|literal| literal.len() >= MIN_BYTES);
    literals
}

/// Returns the forms of a secret: plain, percent-encoded, in HTML, in Base64, and each of them
/// escaped for JSON once and twice.
pub(super) fn encodings(secret: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([secret.to_owned()]);
    let texts = [vec![secret.to_owned()], json_escaped(secret)].concat();
    forms.extend(texts.iter().flat_map(|text| html_escaped(text)));
    let reserved = [
        "-_.~",
        "-_.!~*'()",
        "-_.!~*'();/?:@&=+$,",
        "-_.!~*'();/?:@&=+$,[]\"\\^`{|}",
    ];
    for unreserved in reserved {
        let encoded = percent_encoded(secret, unreserved);
        forms.insert(with_lower_case_digits(&encoded));
        forms.insert(encoded.replace("%20", "+"));
        forms.insert(encoded);
    }
    let base64: Vec<String> = forms
        .iter()
        .cloned()
        // The protocol log has bodies of requests in Base64, and many of them are JSON.
        .chain(json_escaped(secret))
        .flat_map(|form| in_base64(form.as_bytes()))
        .collect();
    forms.extend(base64);
    let once: Vec<String> = forms.iter().flat_map(|form| json_escaped(form)).collect();
    let twice: Vec<String> = once.iter().flat_map(|form| json_escaped(form)).collect();
    forms.extend(once);
    forms.extend(twice);
    // Neither a quote nor an odd backslash is part of the text of a JSON string.
    forms.retain(|form| form.len() >= MIN_BYTES && is_json_text(form));
    forms
}

/// Returns whether a text can be part of a JSON string as it is.
fn is_json_text(text: &str) -> bool {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return false,
            '\\' if !chars.next().is_some_and(|c| "\"\\/bfnrtu".contains(c)) => return false,
            c if c < ' ' => return false,
            _ => {}
        }
    }
    true
}

/// Returns a text as JSON writers escape it. Chromium also escapes `<`, and some writers `/`.
fn json_escaped(text: &str) -> Vec<String> {
    let quoted = Value::from(text).to_string();
    let escaped = quoted[1..quoted.len() - 1].to_owned();
    let mut forms = vec![
        escaped.replace('<', "\\u003C"),
        escaped
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026"),
        escaped.replace('/', "\\/"),
        escaped,
    ];
    forms.dedup();
    let beyond_ascii: Vec<String> = forms
        .iter()
        .filter(|form| !form.is_ascii())
        .flat_map(|form| {
            let lower_case = unicode_escaped(form, |unit| format!("\\u{unit:04x}"));
            let upper_case = unicode_escaped(form, |unit| format!("\\u{unit:04X}"));
            [lower_case, upper_case]
        })
        .collect();
    forms.extend(beyond_ascii);
    forms
}

/// Returns a text with escapes for all characters beyond ASCII, as traces of Chromium have them.
fn unicode_escaped(text: &str, escape: impl Fn(u16) -> String) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if c.is_ascii() {
            escaped.push(c);
        } else {
            let mut units = [0; 2];
            escaped.extend(c.encode_utf16(&mut units).iter().map(|unit| escape(*unit)));
        }
    }
    escaped
}

/// Returns a text as it is escaped in the content and in the attributes of an HTML document.
fn html_escaped(text: &str) -> [String; 3] {
    let content = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    // The serialization of a browser escapes only `&` and quotes in attributes.
    let attribute = text.replace('&', "&amp;").replace('"', "&quot;");
    let quoted = content.replace('"', "&quot;").replace('\'', "&#39;");
    [content, attribute, quoted]
}

fn percent_encoded(text: &str, unreserved: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || (byte.is_ascii() && unreserved.contains(c)) {
            encoded.push(c);
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Returns a percent-encoded text with the hexadecimal digits that some programs write.
fn with_lower_case_digits(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(part.len().min(2));
        text.extend(["%", &digits.to_ascii_lowercase(), rest]);
    }
    text
}

/// Returns the decoded text if it is percent-encoded.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).filter(|_| first == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|decoded| decoded != text)
}

/// Returns the characters of Base64 that depend on these bytes only, for the three positions at
/// which they can begin in a longer text.
fn in_base64(bytes: &[u8]) -> Vec<String> {
    let mut forms = vec![STANDARD_NO_PAD.encode(bytes), URL_SAFE_NO_PAD.encode(bytes)];
    for skipped in 0..3 {
        let mut padded = vec![0; skipped];
        padded.extend(bytes);
        // A character has six bits: those that also depend on bytes before or after are left out.
        let first = (skipped * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&padded);
            forms.extend(text.get(first..last).map(str::to_owned));
        }
    }
    forms
}

fn collect_texts(value: &Value, texts: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => _ = texts.insert(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| collect_texts(value, texts)),
        Value::Object(members) => members
            .values()
            .for_each(|value| collect_texts(value, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_every_form() {
        let secret = "c@nary/ \"1\"<é";
        let forms = encodings(secret);
        let is_found = |text: &str| forms.iter().any(|form| text.contains(form.as_str()));
        for text in [
            r#"x=c@nary/ \"1\"<é;"#,
            r#"c@nary/ \"1\"\u003Cé"#,
            r#"<p>c@nary/ \"1\"&lt;é</p>"#,
            r#"<p title=\"c@nary/ &quot;1&quot;<é\">"#,
            "<p>c@nary/ &quot;1&quot;&lt;é</p>",
            r#"{\"a\":\"c@nary/ \\\"1\\\"<é\"}"#,
            "?t=c%40nary%2F%20%221%22%3C%C3%A9&",
            "?t=c%40nary%2F+%221%22%3C%C3%A9&",
            "/c@nary/%20%221%22%3C%C3%A9",
            "?t=c%40nary%2f%20%221%22%3c%c3%a9&",
        ] {
            assert!(is_found(text), "{text}");
        }
        for prefix in ["", "u", "us", "user:"] {
            for suffix in ["", "1", "12"] {
                let text = format!("{prefix}{secret}{suffix}");
                assert!(is_found(&STANDARD_NO_PAD.encode(&text)), "{text}");
                assert!(is_found(&URL_SAFE_NO_PAD.encode(&text)), "{text}");
            }
        }
        let body = STANDARD_NO_PAD.encode(serde_json::json!({ "token": secret }).to_string());
        assert!(is_found(&body), "{body}");
        assert!(!is_found("canary"));
    }

    #[test]
    fn no_form_can_break_a_json_string() {
        for form in encodings("a\"b\\c\nd\te</script>") {
            let text = format!("\"{form}\"");
            assert!(serde_json::from_str::<String>(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_parts_of_a_secret_are_secrets() {
        let parts = parts("%7B%22token%22%3A%22abcdefgh%22%2C%22n%22%3A1%7D");
        assert!(parts.contains("abcdefgh") && parts.contains(r#"{"token":"abcdefgh","n":1}"#));
        assert!(super::parts("Bearer abcdefgh").contains("abcdefgh"));
        assert!(super::parts("1").is_empty());
        assert_eq!(
            literals(r#"a = "abcd\"efgh"; b = 'short'; c = `abcdefgh`"#),
            ["abcd\"efgh", "abcdefgh"]
        );
    }
}
