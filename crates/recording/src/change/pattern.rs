//! Patterns that select requests.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ChangeProblem;
use crate::RecordedExchange;

/// A pattern that selects requests by their URL or by their host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a pattern is a text such as \"*.example.com/*.js\", \
                 {\"url\": \"https://example.com/\"}, {\"host\": \"example.com\"} or \
                 {\"hosts\": [\"example.com\", \"*.example.net\"]}"
)]
pub enum Pattern {
    /// The parts between the asterisks occur in the URL in this order, as in `blockedUrlPatterns`
    /// of Lighthouse. Hence a pattern without asterisks selects the URLs that contain it.
    Url(String),
    Exact(ExactPattern),
    Host(HostPattern),
    Hosts(HostsPattern),
}

/// The whole URL of a request. Asterisks have no special meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExactPattern {
    pub url: String,
}

/// A host, which may begin with `*.`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPattern {
    pub host: String,
}

/// The hosts of a third party, each of which may begin with `*.`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsPattern {
    pub hosts: Vec<String>,
}

impl Pattern {
    /// Returns a pattern for the requests of one URL.
    pub fn exact(url: &str) -> Self {
        let url = url.to_owned();
        Self::Exact(ExactPattern { url })
    }

    /// Returns a pattern for all hosts of a third party.
    pub fn hosts(hosts: &[&str]) -> Self {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        Self::Hosts(HostsPattern { hosts })
    }

    /// Returns an error if the pattern is empty.
    pub(super) fn check(&self) -> Result<(), ChangeProblem> {
        let is_empty = match self {
            Self::Url(pattern) => pattern.is_empty(),
            Self::Exact(ExactPattern { url }) => url.is_empty(),
            Self::Host(HostPattern { host }) => host.is_empty(),
            Self::Hosts(HostsPattern { hosts }) => {
                hosts.is_empty() || hosts.iter().any(String::is_empty)
            }
        };
        if is_empty {
            Err(ChangeProblem::EmptyPattern)
        } else {
            Ok(())
        }
    }

    /// Returns whether the pattern selects a request.
    pub fn selects(&self, exchange: &RecordedExchange) -> bool {
        self.selects_url(&exchange.url(), &exchange.endpoint.host)
    }

    /// Returns whether the pattern selects requests for a URL with a host.
    pub(super) fn selects_url(&self, url: &str, host: &str) -> bool {
        match self {
            Self::Url(pattern) => has_parts(url, pattern),
            Self::Exact(pattern) => url == pattern.url,
            Self::Host(pattern) => host_matches(&pattern.host, host),
            Self::Hosts(pattern) => pattern.hosts.iter().any(|it| host_matches(it, host)),
        }
    }
}

/// Returns whether the parts of a pattern between asterisks occur in a URL in this order.
pub(super) fn has_parts(url: &str, pattern: &str) -> bool {
    let mut rest = Some(url);
    for part in pattern.split('*') {
        rest = rest.and_then(|text| Some(&text[text.find(part)? + part.len()..]));
    }
    rest.is_some()
}

/// Returns whether a host is the one of a pattern, or in its domain if that begins with `*.`.
pub(super) fn host_matches(pattern: &str, host: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    match pattern.strip_prefix("*.") {
        Some(domain) => host
            .strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
        None => host == pattern,
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(pattern) => f.write_str(pattern),
            Self::Exact(pattern) => f.write_str(&pattern.url),
            Self::Host(pattern) => f.write_str(&pattern.host),
            Self::Hosts(pattern) => f.write_str(&pattern.hosts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::exchange;

    fn selects(pattern: &str, url: &str) -> bool {
        Pattern::Url(pattern.to_owned()).selects(&exchange(url, "", ""))
    }

    #[test]
    fn the_parts_of_a_pattern_occur_in_their_order() {
        let url = "https://cdn.a.test/js/app.js?v=1";
        for pattern in [
            "*",
            "a.test",
            "*.js*",
            "https://cdn.a.test/*",
            "cdn*app*v=1",
            "js*js",
        ] {
            assert!(selects(pattern, url), "{pattern}");
        }
        for pattern in ["b.test", "app*cdn", "js*js*js", "*.css"] {
            assert!(!selects(pattern, url), "{pattern}");
        }
    }

    #[test]
    fn an_exact_pattern_selects_one_url() {
        let pattern = Pattern::exact("https://a.test/*");
        assert!(pattern.selects(&exchange("https://a.test/*", "", "")));
        for url in ["https://a.test/b", "https://b.test/?https://a.test/*"] {
            assert!(!pattern.selects(&exchange(url, "", "")), "{url}");
        }
        let json = serde_json::json!({"url": "https://a.test/*"});
        assert_eq!(serde_json::to_value(&pattern).unwrap(), json);
        assert_eq!(serde_json::from_value::<Pattern>(json).unwrap(), pattern);
    }

    #[test]
    fn a_host_is_the_whole_host_or_a_domain() {
        for (pattern, host, expected) in [
            ("a.test", "a.test", true),
            ("A.test", "a.test", true),
            ("a.test", "b.a.test", false),
            ("*.a.test", "b.a.test", true),
            ("*.a.test", "a.test", true),
            ("*.a.test", "aa.test", false),
            ("*.a.test", "ba.test", false),
        ] {
            assert_eq!(host_matches(pattern, host), expected, "{pattern} {host}");
        }
        let pattern = Pattern::hosts(&["b.test", "*.c.test"]);
        assert!(pattern.selects(&exchange("https://x.c.test/", "", "")));
        assert!(!pattern.selects(&exchange("https://d.test/b.test", "", "")));
    }
}
