//! Secrets in headers.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::parameters::{self, remember};
use super::{mask_of, names, percent};
use crate::Header;

/// The length from which a part of a value is a secret of its own.
const MIN_PART_BYTES: usize = 16;

/// Masks the secrets of headers and adds them to `values`.
pub fn mask(headers: &mut [Header], values: &mut BTreeSet<String>) {
    for (name, value) in headers {
        *value = match name.as_str() {
            "cookie" => masked_cookies(value, values),
            "set-cookie" => masked_new_cookie(value, values),
            "authorization" | "proxy-authorization" => masked_credentials(value, values),
            _ if names::is_secret_header(name) => {
                remember(value.trim(), values);
                remember_tokens(value, values);
                mask_of(value)
            }
            _ => parameters::masked(value, values),
        };
    }
}

/// Masks the values in `a=b; c=d`.
fn masked_cookies(header: &str, values: &mut BTreeSet<String>) -> String {
    let cookies = header
        .split(';')
        .map(|cookie| masked_cookie(cookie, values));
    cookies.collect::<Vec<_>>().join(";")
}

/// Masks the values in `a=b; Path=/`, whose attributes stay. Some tools write several cookies as
/// one header, separated by commas.
fn masked_new_cookie(header: &str, values: &mut BTreeSet<String>) -> String {
    let mut output = String::with_capacity(header.len());
    let mut rest = header;
    loop {
        let (cookie, attributes) = rest.split_at(rest.find(';').unwrap_or(rest.len()));
        output.push_str(&masked_cookie(cookie, values));
        let Some(start) = next_cookie(attributes) else {
            output.push_str(attributes);
            return output;
        };
        output.push_str(&attributes[..start]);
        rest = &attributes[start..];
    }
}

/// Returns the position after the first comma that begins another cookie. The comma of a date is
/// followed by no name.
fn next_cookie(attributes: &str) -> Option<usize> {
    let starts = attributes.match_indices(',').map(|(comma, _)| comma + 1);
    starts.into_iter().find(|start| {
        let rest = attributes[*start..].trim_start();
        let end = rest.find(|c: char| " ;,=\"".contains(c));
        end.is_some_and(|end| end > 0 && rest[end..].starts_with('='))
    })
}

/// Masks the value of a cookie. A cookie without a name is a value.
fn masked_cookie(cookie: &str, values: &mut BTreeSet<String>) -> String {
    let start = cookie.find('=').map_or(0, |position| position + 1);
    let (name, value) = cookie.split_at(start);
    let value_text = value.trim().trim_matches('"');
    remember(value_text, values);
    remember_tokens(value_text, values);
    format!("{name}{}", mask_of(value))
}

/// Adds the tokens in a value that has several parts, such as JSON or a list.
fn remember_tokens(value: &str, values: &mut BTreeSet<String>) {
    let decoded = percent::decode(value);
    let parts = decoded.split(|c: char| !c.is_ascii_alphanumeric() && !"-_+/=".contains(c));
    let is_token =
        |part: &&str| part.len() >= MIN_PART_BYTES && part.bytes().any(|c| c.is_ascii_digit());
    for part in parts.filter(is_token) {
        remember(part, values);
        // The name of a member is no part of its value.
        if let Some((_, value)) = part.split_once('=')
            && is_token(&value)
        {
            remember(value, values);
        }
    }
}

/// Masks credentials, except the name of their scheme such as `Bearer`.
fn masked_credentials(value: &str, values: &mut BTreeSet<String>) -> String {
    let (scheme, credentials) = match value.split_once(' ') {
        Some((scheme, credentials)) if scheme.bytes().all(|c| c.is_ascii_alphabetic()) => {
            (format!("{scheme} "), credentials)
        }
        _ => (String::new(), value),
    };
    remember(credentials.trim(), values);
    remember_tokens(credentials, values);
    if scheme.eq_ignore_ascii_case("basic ")
        && let Ok(pair) = STANDARD.decode(credentials.trim())
    {
        let pair = String::from_utf8_lossy(&pair).into_owned();
        let (_, password) = pair.split_once(':').unwrap_or(("", &pair));
        remember(password, values);
    }
    format!("{scheme}{}", mask_of(credentials))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn masked(name: &str, value: &str) -> (String, Vec<String>) {
        let mut values = BTreeSet::new();
        let mut headers = testing::headers(&[(name, value)]);
        mask(&mut headers, &mut values);
        (headers.remove(0).1, values.into_iter().collect())
    }

    #[test]
    fn many_cookies_in_one_header_need_no_deep_stack() {
        const COOKIES: usize = 100_000;
        let (value, _) = masked("set-cookie", &"a=b;,".repeat(COOKIES));
        assert_eq!(value, "a=x;,".repeat(COOKIES));
    }

    #[test]
    fn values_are_masked_and_names_stay() {
        for (name, value, expected) in [
            ("cookie", "a=secret; b=1", "a=xxxxxx; b=x"),
            ("cookie", "secret", "xxxxxx"),
            (
                "set-cookie",
                "a=b=c; Path=/; HttpOnly",
                "a=xxx; Path=/; HttpOnly",
            ),
            ("set-cookie", "a=\"b\"", "a=xxx"),
            (
                "set-cookie",
                "a=b,c=d; Expires=Wed, 09 Jun 2027 10:18:14 GMT, e=f; Path=/,g=h",
                "a=xxxxx; Expires=Wed, 09 Jun 2027 10:18:14 GMT, e=x; Path=/,g=x",
            ),
            ("location", "/a?token=abc,def&b=c", "/a?token=xxxxxxx&b=c"),
            (
                "link",
                "</a?sig=b,c>, </d?sig=e>",
                "</a?sig=xxx>, </d?sig=x>",
            ),
            ("refresh", "1;url=/a?sig=b, c", "1;url=/a?sig=x, c"),
            ("x-amz-security-token", "a, b", "xxxx"),
            ("authorization", "Bearer abc", "Bearer xxx"),
            ("authorization", "abc", "xxx"),
            ("x-api-key", "a b1 c", "xxxxxx"),
            ("x-csrf-token", "abc", "xxx"),
            ("location", "/a?code=abc&b=c", "/a?code=xxx&b=c"),
            ("accept", "a; q=1", "a; q=1"),
        ] {
            assert_eq!(masked(name, value).0, expected, "{name}: {value}");
        }
    }

    #[test]
    fn passwords_and_tokens_within_values_are_remembered() {
        let (_, values) = masked("authorization", "Basic dXNlcjpodW50ZXIy");
        assert_eq!(values, ["dXNlcjpodW50ZXIy", "hunter2"]);
        let credentials =
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE0123456789/a, Signature=0123456789abcdef";
        let (text, values) = masked("authorization", credentials);
        assert!(text.bytes().all(|c| c == b'x'), "{text}");
        assert!(
            values.contains(&"0123456789abcdef".to_owned()),
            "{values:?}"
        );
        let (_, values) = masked("cookie", "a=%7B%22t%22%3A%220123456789abcdef%22%7D");
        assert!(
            values.contains(&"0123456789abcdef".to_owned()),
            "{values:?}"
        );
    }
}
