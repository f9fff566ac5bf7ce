//! Finds tokens that occur in paths and bodies without having been sent as headers.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::{MIN_VALUE_BYTES, names, parameters};
use crate::body::Decoder;
use crate::html;
use crate::{RecordedExchange, RecordedResponse};

/// JSON web tokens: three parts in Base64, of which the first begins with `{"`.
static JSON_WEB_TOKEN: LazyLock<Regex> =
    LazyLock::new(|| regex(r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}"));

/// Members of JSON or of objects in scripts: `"name": "value"`, also within a string.
static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    let value = r#"(?:[^"'\\\s<>]|\\/|\\u[0-9A-Fa-f]{4}){8,}"#;
    regex(&format!(
        r#"([A-Za-z0-9_.-]+)\\?["']?\s*:\s*\\?["']({value})\\?["']"#
    ))
});

/// Parameters of URLs.
static PARAMETER: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"[?&#;]([A-Za-z0-9_.-]+)=([^&#"'\\\s<>;)]{8,})"#));

/// The length from which letters alone are a token rather than a word.
const MIN_LETTERS: usize = 20;

/// The length from which a part of a path is a token rather than a word. Names of files, which have
/// a dot, are none.
const MIN_SEGMENT_BYTES: usize = 16;

/// Attributes with the names of elements, and those with their values.
const NAMES: [&str; 3] = ["name", "id", "property"];
const VALUES: [&str; 2] = ["value", "content"];

fn regex(pattern: &str) -> Regex {
    Regex::new(&format!("(?-u){pattern}")).expect("the pattern is valid")
}

/// Adds the tokens in the path, in the headers and in the body of an exchange.
pub fn add_tokens(
    exchange: &RecordedExchange,
    decoder: &mut Decoder,
    values: &mut BTreeSet<String>,
) {
    add_web_tokens(exchange.path.as_bytes(), values);
    add_segments(&exchange.path, values);
    let own_headers = exchange.request_headers.iter();
    let headers = exchange.response.iter().flat_map(|it| &it.headers);
    for (_, value) in own_headers.chain(headers) {
        add_web_tokens(value.as_bytes(), values);
    }
    let Some(response) = &exchange.response else {
        return;
    };
    let Some(kind) = Kind::of(response) else {
        return;
    };
    let Ok(content) = decoder.decode(response) else {
        return;
    };
    add_web_tokens(&content, values);
    for regex in [&MEMBER, &PARAMETER] {
        for captures in regex.captures_iter(&content) {
            let name = String::from_utf8_lossy(&captures[1]);
            let value = String::from_utf8_lossy(&captures[2]);
            if names::is_secret_member(&name) && kind.is_token(&value) {
                parameters::remember(&unescaped(&value), values);
            }
        }
    }
    if kind == Kind::Markup {
        add_attributes(&content, values);
    }
}

/// Returns a value without the escapes of JSON.
fn unescaped(value: &str) -> String {
    let unescaped = serde_json::from_str(&format!("\"{value}\""));
    unescaped.unwrap_or_else(|_| value.to_owned())
}

/// Adds parts of a path that follow a telling name, such as `/reset-token/0123456789abcdef`.
fn add_segments(path: &str, values: &mut BTreeSet<String>) {
    let path = path.split('?').next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').collect();
    for pair in segments.windows(2) {
        let is_token = pair[1].len() >= MIN_SEGMENT_BYTES
            && pair[1].bytes().any(|c| c.is_ascii_digit())
            && !pair[1].contains('.');
        if names::is_secret_parameter(pair[0]) && is_token {
            parameters::remember(pair[1], values);
        }
    }
}

fn add_web_tokens(content: &[u8], values: &mut BTreeSet<String>) {
    for token in JSON_WEB_TOKEN.find_iter(content) {
        let token = String::from_utf8_lossy(token.as_bytes()).into_owned();
        values.insert(token);
    }
}

/// Adds the values of elements such as `<meta name="csrf-token" content="…">`, and of attributes
/// such as `data-token`.
fn add_attributes(html: &[u8], values: &mut BTreeSet<String>) {
    for tag in html::tags(html) {
        let mut own_names = NAMES.iter().filter_map(|name| tag.value(name));
        let is_secret = own_names.any(names::is_secret_member)
            || tag
                .value("type")
                .is_some_and(|it| it.eq_ignore_ascii_case("password"));
        for attribute in &tag.attributes {
            let is_value = is_secret && VALUES.contains(&attribute.name.as_str());
            let is_named =
                attribute.name.starts_with("data-") && names::is_secret_member(&attribute.name);
            if (is_value || is_named) && Kind::Markup.is_token(&attribute.value) {
                parameters::remember(&attribute.value, values);
            }
        }
    }
}

/// The kinds of texts in which tokens are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Markup,
    Data,
    Script,
}

impl Kind {
    fn of(response: &RecordedResponse) -> Option<Self> {
        let media_type = response.media_type();
        Some(match media_type.as_str() {
            "text/html" | "application/xhtml+xml" => Self::Markup,
            kind if kind.contains("javascript") || kind.contains("ecmascript") => Self::Script,
            kind if kind.contains("json") || kind.contains("xml") => Self::Data,
            "text/plain" | "text/x-component" | "application/x-www-form-urlencoded" => Self::Data,
            _ => return None,
        })
    }

    /// Returns whether a value with a telling name is a token rather than a word. Programs give
    /// such names to words, too, for instance `{token: "function"}`, and without them they fail.
    fn is_token(self, value: &str) -> bool {
        let has_digit = value.bytes().any(|c| c.is_ascii_digit());
        let has_sign = value.bytes().any(|c| !c.is_ascii_alphabetic());
        let is_url = value.contains("://") || value.starts_with('/');
        value.len() >= MIN_VALUE_BYTES
            && !is_url
            && match self {
                Self::Script => has_digit,
                Self::Markup | Self::Data => has_sign || value.len() >= MIN_LETTERS,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::exchange;

    fn tokens(media_type: &str, body: &str) -> Vec<String> {
        let mut values = BTreeSet::new();
        let exchange = exchange("https://a.test/", media_type, body);
        add_tokens(&exchange, &mut Decoder::default(), &mut values);
        values.into_iter().collect()
    }

    #[test]
    fn tokens_are_found_by_the_names_of_members_parameters_and_elements() {
        for (media_type, body) in [
            ("application/json", r#"{"access_token": "canary-value"}"#),
            (
                "application/json",
                r#"{"a":{"refreshToken":"canary-value","b":1}}"#,
            ),
            (
                "application/json",
                r#"{"state":"{\"apiKey\":\"canary-value\"}"}"#,
            ),
            ("application/json", r#"{"token":"canary-value\u003d\/1"}"#),
            ("text/html", "<script>x={csrfToken:'canary-value'}</script>"),
            ("text/html", "<meta name=csrf-token content=canary-value>"),
            (
                "text/html",
                "<input type=hidden name=authenticity_token value=canary-value>",
            ),
            ("text/html", "<input type=password value=canary-value>"),
            ("text/html", "<div data-api-key='canary-value'>"),
            ("text/html", "<a href='/a?b=1&access_token=canary-value#c'>"),
            ("text/plain", "https://a.test/?id_token=canary-value"),
        ] {
            let tokens = tokens(media_type, body);
            assert_eq!(tokens.len(), 1, "{body}: {tokens:?}");
            let expected = ["canary-value", "canary-value=/1"];
            assert!(expected.contains(&tokens[0].as_str()), "{tokens:?}");
        }
        let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
        assert_eq!(tokens("text/javascript", &format!("f('{token}')")), [token]);
    }

    #[test]
    fn tokens_are_found_in_paths_and_headers() {
        let web_token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
        let url = "https://a.test/reset-token/0123456789abcdef/auth/login?a";
        let mut exchange = exchange(url, "", "");
        exchange.request_headers = crate::testing::headers(&[("dpop", web_token)]);
        let mut values = BTreeSet::new();
        add_tokens(&exchange, &mut Decoder::default(), &mut values);
        let expected = ["0123456789abcdef", web_token].map(str::to_owned);
        assert_eq!(values, BTreeSet::from(expected));
    }

    #[test]
    fn words_of_programs_stay() {
        for (media_type, body) in [
            (
                "text/javascript",
                "{token: \"function\", tokenType: 'identifier'}",
            ),
            ("text/javascript", "{token:'keyword.operator'}"),
            ("application/json", r#"{"token":"variable"}"#),
            ("application/json", r#"{"key":"some-long-text-1"}"#),
            ("application/json", r#"{"tokenUrl":"https://a.test/token"}"#),
            ("text/css", ".token{content:'token: \"canary-value\"'}"),
            ("image/png", "{\"token\":\"canary-value\"}"),
        ] {
            assert!(tokens(media_type, body).is_empty(), "{body}");
        }
    }
}
