//! The cookies of requests and responses.

use jiff::fmt::rfc2822::DateTimeParser;
use plumbline_trace::{Headers, Response, header};
use serde_json::{Value, json};

use super::pair;

/// Returns the cookies that a request sent.
pub(super) fn request_cookies(headers: &Headers) -> Vec<Value> {
    header(headers, "cookie")
        .flat_map(|value| value.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .map(|(name, value)| pair(name, value))
        .collect()
}

/// Returns the cookies that a response set.
pub(super) fn set_cookies(response: &Response) -> Vec<Value> {
    header(response.sent_headers(), "set-cookie")
        .map(set_cookie)
        .collect()
}

/// Parses a `Set-Cookie` header (RFC 6265, section 4.1.1): name and value, then attributes,
/// separated by semicolons.
fn set_cookie(text: &str) -> Value {
    let mut parts = text.split(';').map(str::trim);
    let (name, value) = parts
        .next()
        .unwrap_or_default()
        .split_once('=')
        .unwrap_or_default();
    let mut cookie = pair(name.trim(), value.trim());
    cookie["httpOnly"] = json!(false);
    cookie["secure"] = json!(false);
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match key.trim().to_ascii_lowercase().as_str() {
            "path" => cookie["path"] = json!(value),
            "domain" => cookie["domain"] = json!(value),
            "httponly" => cookie["httpOnly"] = json!(true),
            "secure" => cookie["secure"] = json!(true),
            "samesite" => cookie["_sameSite"] = json!(value),
            // The format requires ISO 8601; an invalid date is left out.
            "expires" => {
                if let Ok(at) = DateTimeParser::new().parse_timestamp(value.replace('-', " ")) {
                    cookie["expires"] = json!(format!("{at:.3}"));
                }
            }
            _ => {}
        }
    }
    cookie
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_a_cookie_are_read_and_a_bad_date_is_left_out() {
        let cookie = set_cookie(
            "sid=a=b; Path=/x; Expires=Wed, 21 Oct 2037 07:28:00 GMT; HttpOnly; secure; SameSite=Lax",
        );
        assert_eq!(cookie["name"], "sid");
        assert_eq!(cookie["value"], "a=b");
        assert_eq!(cookie["path"], "/x");
        assert_eq!(cookie["expires"], "2037-10-21T07:28:00.000Z");
        assert_eq!(
            (&cookie["httpOnly"], &cookie["secure"]),
            (&json!(true), &json!(true))
        );
        let odd = set_cookie("nameless; expires=tomorrow");
        assert_eq!((&odd["name"], odd.get("expires")), (&json!(""), None));
    }

    #[test]
    fn request_cookies_are_parsed() {
        let headers = vec![("Cookie".to_owned(), "a=1; b=2=3".to_owned())];
        assert_eq!(
            request_cookies(&headers),
            [pair("a", "1"), pair("b", "2=3")]
        );
    }
}
