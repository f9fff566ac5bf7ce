//! A parser for Content Security Policies, and the part of a policy that is effective in a CSP3
//! browser.

use crate::facts::{Facts, MainResource, Metas, Missing};

/// The policies of a page, from headers and from `<meta>` elements.
pub(super) struct Policies {
    pub(super) headers: Vec<String>,
    pub(super) metas: Vec<String>,
}

impl Policies {
    pub(super) fn of(facts: &Facts) -> Result<Self, Missing> {
        let main = facts.get::<MainResource>()?;
        let metas = facts.get::<Metas>()?;
        let in_metas = metas
            .0
            .iter()
            .filter(|meta| meta.http_equiv.eq_ignore_ascii_case(NAME))
            .map(|meta| meta.content.as_str());
        Ok(Self {
            headers: in_headers(&main),
            metas: policies(in_metas),
        })
    }
}

const NAME: &str = "content-security-policy";

pub(super) fn in_headers(main: &MainResource) -> Vec<String> {
    policies(main.header(NAME))
}

/// Splits header values into policies: one header may contain several, separated by commas.
fn policies<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    values
        .flat_map(|value| value.split(','))
        .filter(|policy| !policy.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

/// One policy. Only the first of repeated directives counts.
#[derive(Debug, Clone)]
pub(super) struct Csp {
    pub(super) directives: Vec<(String, Vec<String>)>,
}

pub(super) const KEYWORDS: [&str; 13] = [
    "'self'",
    "'none'",
    "'unsafe-inline'",
    "'unsafe-eval'",
    "'wasm-eval'",
    "'wasm-unsafe-eval'",
    "'strict-dynamic'",
    "'unsafe-hashed-attributes'",
    "'unsafe-hashes'",
    "'report-sample'",
    "'block'",
    "'allow'",
    "'inline-speculation-rules'",
];

/// Directives that fall back to `default-src`.
const FETCH_DIRECTIVES: [&str; 16] = [
    "child-src",
    "connect-src",
    "default-src",
    "font-src",
    "frame-src",
    "img-src",
    "manifest-src",
    "media-src",
    "object-src",
    "script-src",
    "script-src-attr",
    "script-src-elem",
    "style-src",
    "style-src-attr",
    "style-src-elem",
    "worker-src",
];

const OTHER_DIRECTIVES: [&str; 18] = [
    "prefetch-src",
    "base-uri",
    "plugin-types",
    "sandbox",
    "disown-opener",
    "form-action",
    "frame-ancestors",
    "navigate-to",
    "report-to",
    "report-uri",
    "block-all-mixed-content",
    "upgrade-insecure-requests",
    "reflected-xss",
    "referrer",
    "require-sri-for",
    "trusted-types",
    "require-trusted-types-for",
    "webrtc",
];

pub(super) fn is_directive(name: &str) -> bool {
    FETCH_DIRECTIVES.contains(&name) || OTHER_DIRECTIVES.contains(&name)
}

impl Csp {
    pub(super) fn parse(policy: &str) -> Self {
        let mut csp = Self {
            directives: Vec::new(),
        };
        for directive in policy.split(';') {
            let mut words = directive.split_whitespace();
            let Some(name) = words.next().map(str::to_lowercase) else {
                continue;
            };
            if csp.values(&name).is_some() {
                continue;
            }
            let mut values: Vec<String> = Vec::new();
            for value in words.map(normalize) {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            csp.directives.push((name, values));
        }
        csp
    }

    pub(super) fn values(&self, name: &str) -> Option<&[String]> {
        let directive = self.directives.iter().find(|(given, _)| given == name);
        directive.map(|(_, values)| values.as_slice())
    }

    /// Returns the directive that applies in place of this one: itself if it is set, otherwise its
    /// fallback.
    pub(super) fn deciding<'a>(&self, name: &'a str) -> &'a str {
        let has = |name| self.values(name).is_some();
        match name {
            name if has(name) => name,
            "script-src-attr" | "script-src-elem" if has("script-src") => "script-src",
            "style-src-attr" | "style-src-elem" if has("style-src") => "style-src",
            name if FETCH_DIRECTIVES.contains(&name) => "default-src",
            name => name,
        }
    }

    /// Returns the directives that apply in place of several, without duplicates.
    pub(super) fn deciding_on<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        let mut deciding = Vec::new();
        for name in names.iter().map(|name| self.deciding(name)) {
            if !deciding.contains(&name) {
                deciding.push(name);
            }
        }
        deciding
    }

    /// Returns the values of the directive that applies to scripts.
    pub(super) fn script_values(&self) -> &[String] {
        self.values(self.deciding("script-src")).unwrap_or_default()
    }

    pub(super) fn has_nonce_or_hash(&self) -> bool {
        self.script_values()
            .iter()
            .any(|value| is_nonce(value) || is_hash(value))
    }

    /// Returns the policy without the values that a CSP3 browser ignores.
    pub(super) fn effective(&self) -> Self {
        let mut effective = self.clone();
        for name in self.deciding_on(&["script-src", "script-src-attr", "script-src-elem"]) {
            let Some((_, values)) = effective
                .directives
                .iter_mut()
                .find(|(given, _)| given == name)
            else {
                continue;
            };
            if values.iter().any(|value| is_nonce(value) || is_hash(value)) {
                values.retain(|value| value != "'unsafe-inline'");
            }
            if values.iter().any(|value| value == "'strict-dynamic'") {
                values.retain(|value| {
                    value.starts_with('\'') && value != "'self'" && value != "'unsafe-inline'"
                });
            }
        }
        effective
    }
}

/// Converts keywords and schemes, which are case-insensitive, to lower case.
fn normalize(value: &str) -> String {
    let lower = value.to_lowercase();
    if KEYWORDS.contains(&lower.as_str()) || is_scheme(&lower) {
        lower
    } else {
        value.to_owned()
    }
}

fn is_scheme(value: &str) -> bool {
    value.strip_suffix(':').is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    })
}

/// Returns the value inside `'nonce-…'`.
pub(super) fn nonce(value: &str) -> Option<&str> {
    let nonce = value.strip_prefix("'nonce-")?.strip_suffix('\'')?;
    (!nonce.is_empty()).then_some(nonce)
}

pub(super) fn is_nonce(value: &str) -> bool {
    nonce(value).is_some_and(is_base64)
}

pub(super) fn is_hash(value: &str) -> bool {
    let quoted = value
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    quoted
        .and_then(|hash| hash.split_once('-'))
        .is_some_and(|(kind, hash)| {
            ["sha256", "sha384", "sha512"].contains(&kind) && is_base64(hash)
        })
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    !digits.is_empty()
        && text.len() - digits.len() <= 2
        && digits
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+/_-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_directive_of_a_name_counts() {
        let csp = Csp::parse("Script-Src 'SELF' HTTPS: 'self';; script-src *");
        assert_eq!(csp.values("script-src").unwrap(), ["'self'", "https:"]);
    }

    #[test]
    fn a_missing_directive_falls_back_to_another() {
        let csp = Csp::parse("default-src 'none'; script-src x.test");
        assert_eq!(csp.deciding("script-src-elem"), "script-src");
        assert_eq!(csp.deciding("object-src"), "default-src");
        assert_eq!(csp.deciding("base-uri"), "base-uri");
    }

    #[test]
    fn a_modern_browser_ignores_fallbacks_for_old_ones() {
        let csp = Csp::parse("script-src 'nonce-abcd1234' 'unsafe-inline' https: 'strict-dynamic'");
        assert_eq!(
            csp.effective().script_values(),
            ["'nonce-abcd1234'", "'strict-dynamic'"]
        );
    }

    #[test]
    fn nonces_and_hashes_are_base64() {
        assert!(is_nonce("'nonce-aA0+/_-=='"));
        assert!(!is_nonce("'nonce-a b'") && !is_nonce("'nonce-'") && !is_nonce("nonce-a"));
        assert!(is_hash("'sha256-abc='") && !is_hash("'md5-abc'"));
    }
}
