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
const PARAMETERS: [&str; 5] = ["code", "key", "sid", "pass", "ticket"];

/// Words of names of headers and parameters. Names are split at signs and before capital letters.
const WORDS: [&str; 9] = [
    "signature",
    "sig",
    "hmac",
    "jwt",
    "pwd",
    "otp",
    "passphrase",
    "passcode",
    "bearer",
];

/// Words before `key` that tell that a key is a secret, such as in `Ocp-Apim-Subscription-Key` and
/// `AWSAccessKeyId`. Other keys of parameters are often names, such as `sort_key`.
const KEYS: [&str; 18] = [
    "access",
    "account",
    "admin",
    "app",
    "client",
    "consumer",
    "developer",
    "encryption",
    "function",
    "functions",
    "license",
    "master",
    "private",
    "service",
    "shared",
    "signing",
    "subscription",
    "write",
];

/// Headers whose names end with `key` and whose values are no secrets. Without the first, the
/// browser would refuse a connection.
const HARMLESS_KEYS: [&str; 5] = [
    "secwebsocketkey",
    "surrogatekey",
    "xsurrogatekey",
    "idempotencykey",
    "xcachekey",
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
    let normalized = normalized(name);
    let is_key = normalized.ends_with("key") && !HARMLESS_KEYS.contains(&normalized.as_str());
    is_key || is_telling(name)
}

/// Returns whether the values of a parameter are secrets.
pub fn is_secret_parameter(name: &str) -> bool {
    is_telling(name) || PARAMETERS.contains(&normalized(name).as_str())
}

/// Returns whether the values of a member or an attribute in a body are secrets. Short names such
/// as `key` are too frequent there.
pub fn is_secret_member(name: &str) -> bool {
    let is_plain_word = ["auth", "session"].contains(&normalized(name).as_str());
    !is_plain_word && is_telling(name)
}

fn is_telling(name: &str) -> bool {
    let normalized = normalized(name);
    has_part(&normalized) || names_key(&normalized) || has_word(name)
}

fn has_part(name: &str) -> bool {
    !HARMLESS.contains(&name) && PARTS.iter().any(|part| name.contains(part))
}

fn has_word(name: &str) -> bool {
    words(name).any(|word| WORDS.iter().any(|it| word.eq_ignore_ascii_case(it)))
}

/// Returns the words of a name, which are separated by signs or begin with a capital letter.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    parts.flat_map(|part| {
        let bytes = part.as_bytes();
        let is_start = move |at: &usize| {
            bytes[*at].is_ascii_uppercase() && bytes[*at - 1].is_ascii_lowercase()
        };
        let starts = (1..bytes.len()).filter(is_start);
        let mut begin = 0;
        let ends = starts.chain([bytes.len()]);
        ends.map(move |end| &part[std::mem::replace(&mut begin, end)..end])
    })
}

/// Returns whether a normalized name contains one of the words of [`KEYS`] before `key`.
fn names_key(name: &str) -> bool {
    let mut ends = name.match_indices("key").map(|(end, _)| &name[..end]);
    ends.any(|before| KEYS.iter().any(|word| before.ends_with(word)))
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
            "jwt",
            "X-Amz-Security-Token",
            "x-amz-server-side-encryption-customer-key",
            "Ocp-Apim-Subscription-Key",
            "x-functions-key",
            "x-hub-signature-256",
            "signature",
        ] {
            assert!(is_secret_header(name), "{name}");
        }
        for name in [
            "accept",
            "content-type",
            "etag",
            "author",
            "sec-websocket-key",
            "surrogate-key",
            "x-cache-key",
            "keep-alive",
            "design",
            "access-control-allow-headers",
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
            "X-Amz-Signature",
            "X-Amz-Credential",
            "X-Amz-Security-Token",
            "X-Goog-Signature",
            "X-Goog-Credential",
            "AWSAccessKeyId",
            "GoogleAccessId.Signature",
            "subscription-key",
            "masterKey",
            "url_sig",
            "requestSignature",
            "hmac",
            "otp",
            "user.jwt",
        ] {
            assert!(is_secret_parameter(name), "{name}");
        }
        for name in [
            "q",
            "page",
            "keyword",
            "codec",
            "v",
            "author",
            "sort_key",
            "cacheKey",
            "design",
            "signal",
            "X-Amz-Date",
            "X-Amz-SignedHeaders",
            "monkey",
        ] {
            assert!(!is_secret_parameter(name), "{name}");
        }
        for name in ["refreshToken", "X-Amz-Signature", "writeKey"] {
            assert!(is_secret_member(name), "{name}");
        }
        assert!(!is_secret_member("key") && !is_secret_member("session"));
    }
}
