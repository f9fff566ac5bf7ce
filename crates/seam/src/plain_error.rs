//! Turns errors of parsers into sentences that name the member and quote nothing of the text that
//! was read, because the values of a state are secrets.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The most members of one value that are tried to find the invalid one: each takes as long as
/// reading the whole value.
const MAX_CANDIDATES: usize = 64;

/// Reads a value. The error names the member that cannot be read, also inside enums with tags and
/// flattened structs.
pub fn read_json<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| json_error(&invalid_member::<T>(value, &error), &error))
}

/// Returns the path of the value that an error is about: without that value, the error would be
/// another one. Serde buffers the members of enums with tags, so that the path cannot be recorded
/// while they are read.
fn invalid_member<T: DeserializeOwned>(value: &Value, error: &serde_json::Error) -> String {
    let mut path = String::new();
    let error = error.to_string();
    // These name the member themselves.
    if error.starts_with("missing field") || error.starts_with("duplicate field") {
        return path;
    }
    let mut pointer = String::new();
    'deeper: while let Some(parent) = value.pointer(&pointer) {
        let mut children: Vec<(String, String)> = match parent {
            Value::Object(members) => members
                .keys()
                .map(|name| (name.clone(), format!(".{name}")))
                .collect(),
            Value::Array(items) => (0..items.len())
                .map(|index| (index.to_string(), format!("[{index}]")))
                .collect(),
            _ => break,
        };
        if children.len() > MAX_CANDIDATES {
            path += if parent.is_array() { "[…]" } else { ".…" };
            break;
        }
        // Without the tag, every error is another one.
        children.sort_by_key(|(key, _)| key == "type");
        for (key, segment) in children {
            let mut rest = value.clone();
            match rest.pointer_mut(&pointer) {
                Some(Value::Object(members)) => drop(members.remove(&key)),
                Some(Value::Array(items)) => drop(items.remove(key.parse().unwrap_or_default())),
                _ => {}
            }
            let without = T::deserialize(&rest).err();
            if without.is_none_or(|without| without.to_string() != error) {
                path += &segment;
                let escaped = key.replace('~', "~0").replace('/', "~1");
                pointer += &format!("/{escaped}");
                continue 'deeper;
            }
        }
        break;
    }
    path.trim_start_matches('.').to_owned()
}

/// Describes an error of JSON. `path` is the member in which it was noticed, such as
/// `state.cookies[0]`, or empty.
pub fn json_error(path: &str, error: &serde_json::Error) -> String {
    if !error.is_data() {
        return not_json(error);
    }
    let text = error.to_string();
    let text = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(text, _)| text);
    described(path, text)
}

/// Describes the error of a text that is not JSON, by its position alone.
fn not_json(error: &serde_json::Error) -> String {
    format!(
        "The text is not valid JSON: see line {}, column {}.",
        error.line(),
        error.column()
    )
}

/// Describes an error of a parser whose position is not known.
pub fn without_value(error: &str) -> String {
    described("", error)
}

/// Describes an error by the text of a parser that uses serde.
fn described(path: &str, error: &str) -> String {
    for (kind, is) in [("missing", "is missing"), ("duplicate", "is given twice")] {
        let name = error.strip_prefix(kind);
        let name = name.and_then(|rest| rest.strip_prefix(" field `")?.strip_suffix('`'));
        if let Some(name) = name {
            let dot = if path.is_empty() { "" } else { "." };
            return format!("`{path}{dot}{name}` {is}.");
        }
    }
    let subject = if path.is_empty() {
        "A value".to_owned()
    } else {
        format!("`{path}`")
    };
    if error.starts_with("data did not match") {
        return format!("{subject} has the wrong form.");
    }
    if error.starts_with("unknown field") {
        let expected = error.split_once("expected ");
        let expected = expected.map(|(_, names)| format!("; expected {names}"));
        return format!(
            "{subject} is not a known member{}.",
            expected.unwrap_or_default()
        );
    }
    match error.split_once("expected ") {
        Some((_, expected)) => format!("{subject} must be {}.", plain_type(expected)),
        None => format!("{subject} cannot be read: {error}."),
    }
}

/// Returns the name for people of a type that serde expected.
fn plain_type(expected: &str) -> &str {
    match expected {
        "a string" | "string" | "a borrowed string" => "a text",
        "a sequence" => "a list",
        "a map" => "an object",
        "a boolean" => "true or false",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        other if other.starts_with("struct ") => "an object",
        other if other.starts_with("internally tagged enum ") => "an object",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::VisitState;

    #[track_caller]
    fn check<T: DeserializeOwned>(text: &str, path: &str, expected: &str) {
        let Err(error) = serde_json::from_str::<T>(text) else {
            panic!("{text} is valid");
        };
        assert_eq!(json_error(path, &error), expected);
    }

    #[test]
    fn errors_of_members_are_sentences_without_values_and_positions() {
        check::<VisitState>(
            r#"{"cookies": {}}"#,
            "state.cookies",
            "`state.cookies` must be a list.",
        );
        check::<VisitState>(
            r#"{"cookies": [{"name": "canary"}]}"#,
            "state.cookies[0]",
            "`state.cookies[0].value` is missing.",
        );
        check::<VisitState>(
            r#"{"origins": [], "origins": []}"#,
            "",
            "`origins` is given twice.",
        );
        check::<String>("5", "url", "`url` must be a text.");
        check::<bool>("\"canary\"", "", "A value must be true or false.");
        check::<u32>(
            "-1",
            "count",
            "`count` must be a whole number of at least 0.",
        );
        check::<crate::SameSite>(
            "\"canary\"",
            "sameSite",
            "`sameSite` must be one of `Strict`, `Lax`, `None`.",
        );
    }

    #[test]
    fn the_member_of_an_enum_with_a_tag_is_named() {
        use plumbline_recording::Change;
        use serde_json::json;

        for (change, expected) in [
            (
                json!({ "type": "delay", "pattern": "*", "ms": "canary" }),
                "`ms` must be a whole number of at least 0.",
            ),
            (
                json!({ "type": "serveFromFirstParty", "hosts": ["a.test", 5] }),
                "`hosts[1]` must be a text.",
            ),
            (
                json!({ "type": "delay", "ms": "canary" }),
                "`ms` must be a whole number of at least 0.",
            ),
            (json!({ "type": "delay", "ms": 5 }), "`pattern` is missing."),
            (
                json!({ "type": "block", "pattern": "*", "a/b": "canary" }),
                "`a/b` is not a known member; expected `pattern`.",
            ),
            (json!("canary"), "A value must be an object."),
        ] {
            assert_eq!(read_json::<Change>(&change).unwrap_err(), expected);
        }
        let hosts: Vec<_> = (0..65).map(|n| json!(n)).collect();
        let many = json!({ "type": "serveFromFirstParty", "hosts": hosts });
        let error = read_json::<Change>(&many).unwrap_err();
        assert_eq!(error, "`hosts[…]` must be a text.");
        let error = read_json::<Change>(&json!({ "type": "canary" })).unwrap_err();
        assert!(
            error.starts_with("`type` must be one of `block`, "),
            "{error}"
        );
        let pattern = json!({ "type": "block", "pattern": { "canary": 1 } });
        let error = read_json::<Change>(&pattern).unwrap_err();
        assert!(
            error.starts_with("`pattern` cannot be read: a pattern is"),
            "{error}"
        );
    }

    #[test]
    fn a_text_that_is_not_json_is_described_by_its_position() {
        check::<VisitState>(
            "{\"a\": [1",
            "",
            "The text is not valid JSON: see line 1, column 8.",
        );
        check::<VisitState>(
            "{canary",
            "",
            "The text is not valid JSON: see line 1, column 2.",
        );
    }
}
