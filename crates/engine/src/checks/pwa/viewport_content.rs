//! A parser for the `content` of `<meta name="viewport">` that follows the algorithm of browsers
//! (CSS Device Adaptation, "Parsing algorithm").

/// The value of a property; invalid if it is neither a number nor a known keyword.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Word,
    Invalid,
}

/// Returns the value of a property, the last one if it is repeated.
pub(super) fn property(content: &str, name: &str) -> Option<Value> {
    let mut last = None;
    let mut rest = content;
    while let Some((key, value, after)) = next(rest) {
        if key == name {
            last = value.map(parse_value).or(last);
        }
        rest = after;
    }
    last
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\n' | '\t')
}

fn is_separator(c: char) -> bool {
    matches!(c, ',' | ';')
}

fn ends_word(c: char) -> bool {
    is_blank(c) || is_separator(c) || c == '='
}

/// Returns the next name, its value if it has one, and the rest.
fn next(content: &str) -> Option<(&str, Option<&str>, &str)> {
    let content = content.trim_start_matches(ends_word);
    let (name, rest) = content.split_at(content.find(ends_word)?);
    let rest = match rest.find(|c| is_separator(c) || c == '=') {
        Some(at) if rest[at..].starts_with('=') => &rest[at..],
        Some(at) => return Some((name, None, &rest[at..])),
        None => return None,
    };
    let rest = rest.trim_start_matches(|c| is_blank(c) || c == '=');
    let end = rest.find(ends_word).unwrap_or(rest.len());
    let (value, rest) = rest.split_at(end);
    Some((name, Some(value).filter(|value| !value.is_empty()), rest))
}

fn parse_value(value: &str) -> Value {
    if let Some(number) = leading_number(value) {
        return Value::Number(number);
    }
    match value.to_lowercase().as_str() {
        "yes" | "no" | "device-width" | "device-height" => Value::Word,
        _ => Value::Invalid,
    }
}

/// Parses a number as JavaScript's `parseFloat` does: characters after the digits are ignored.
fn leading_number(text: &str) -> Option<f64> {
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let start = usize::from(text.starts_with(['+', '-']));
    let mut end = start + digits(&text[start..]);
    if text[end..].starts_with('.') {
        end += 1 + digits(&text[end + 1..]);
    }
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn properties_are_parsed_in_any_notation() {
        for (content, width) in [
            ("width=device-width, initial-scale=1", Some(Value::Word)),
            ("initial-scale=1;width = 320px", Some(Value::Number(320.0))),
            ("width=320,width=device-width", Some(Value::Word)),
            ("width", None),
            ("width,initial-scale=1", None),
            ("width=", None),
            ("width=auto", Some(Value::Invalid)),
            ("Width=device-width", None),
            ("width=.5", Some(Value::Number(0.5))),
            ("", None),
        ] {
            assert_eq!(property(content, "width"), width, "{content}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_content_never_panics(content in "(?s).{0,80}") {
            property(&content, "width");
        }
    }
}
