//! Names that tell that a value is a secret.

/// Parts of names of headers and parameters, with `-` and `_` left out.
const PARTS: [&str; 10] = [
    "token",
    "secret",
    "apikey",
    "auth",
    "session",
    "csrf",
    "xsrf",
    "password",
    "passwd",
    "credential",
];

/// Whole names of parameters.
const PARAMETERS: [&str; 9] = [
    "code",
    "signature",
    "sig",
    "key",
    "jwt",
    "sid",
    "pwd",
    "pass",
    "ticket",
];

/// Names that contain one of the parts and whose values are no secrets. Without the headers, the
/// browser would refuse responses to requests with cookies.
const HARMLESS: [&str; 6] = [
    "author",
    "authors",
    "authority",
    "accesscontrolallowcredentials",
    "wwwauthenticate",
    "proxyauthenticate",
];

/// Returns whether the values of a header are secrets.
pub fn is_secret_header(name: &str) -> bool {
    let name = normalized(name);
    has_part(&name) || name == "jwt"
}

/// Returns whether the values of a parameter are secrets.
pub fn is_secret_parameter(name: &str) -> bool {
    let name = normalized(name);
    has_part(&name) || PARAMETERS.contains(&name.as_str())
}

/// Returns whether the values of a member or an attribute in a body are secrets. Short names such
/// as `key` are too frequent there.
pub fn is_secret_member(name: &str) -> bool {
    let name = normalized(name);
    let is_plain_word = ["auth", "session"].contains(&name.as_str());
    !is_plain_word && (has_part(&name) || name == "jwt")
}

fn has_part(name: &str) -> bool {
    !HARMLESS.contains(&name) && PARTS.iter().any(|part| name.contains(part))
}

fn normalized(name: &str) -> String {
    let letters = name.chars().filter(|c| !['-', '_'].contains(c));
    letters.collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "authorization",
            "x-api-key",
            "x-csrf-token",
            "X-Auth",
            "session-id",
        ] {
            assert!(is_secret_header(name), "{name}");
        }
        for name in [
            "accept",
            "content-type",
            "etag",
            "author",
            "sec-websocket-key",
            "access-control-allow-credentials",
            "www-authenticate",
        ] {
            assert!(!is_secret_header(name), "{name}");
        }
        for name in [
            "access_token",
            "id_token",
            "api_key",
            "sig",
            "code",
            "Password",
            "key",
        ] {
            assert!(is_secret_parameter(name), "{name}");
        }
        for name in ["q", "page", "keyword", "codec", "v", "author"] {
            assert!(!is_secret_parameter(name), "{name}");
        }
        assert!(is_secret_member("refreshToken") && !is_secret_member("key"));
    }
}
