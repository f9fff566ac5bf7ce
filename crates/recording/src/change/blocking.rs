//! Requests that the browser blocks itself.
//!
//! A replay refuses blocked requests, but the browser has then looked up the name and connected to
//! the server, which takes round trips. If the browser blocks them, they cost as little as requests
//! that the page does not make.

use super::pattern::has_parts;
use super::{Change, Pattern};
use crate::{RecordedExchange, Recording};

impl Recording {
    /// Returns patterns of the URLs that the browser can block in a replay of this recording, to
    /// which the changes were applied. The parts of a pattern between asterisks occur in the URL in
    /// this order. No pattern matches a request that is answered.
    pub fn blocked_urls(&self, changes: &[Change]) -> Vec<String> {
        let blocked = changes.iter().filter_map(|change| match change {
            Change::Block { pattern } => Some(url_patterns(pattern)),
            _ => None,
        });
        let mut patterns: Vec<String> = blocked.flatten().collect();
        let is_answered = |it: &&RecordedExchange| it.handling.is_answered();
        for exchange in self.exchanges.iter().filter(is_answered) {
            let url = exchange.url();
            patterns.retain(|pattern| !has_parts(&url, pattern));
        }
        patterns
    }
}

fn url_patterns(pattern: &Pattern) -> Vec<String> {
    match pattern {
        Pattern::Url(pattern) => vec![pattern.clone()],
        // The browser has no pattern of a whole URL, and none for one with an asterisk.
        Pattern::Exact(pattern) if pattern.url.contains('*') => Vec::new(),
        Pattern::Exact(pattern) => vec![pattern.url.clone()],
        Pattern::Host(pattern) => of_host(&pattern.host),
        Pattern::Hosts(pattern) => pattern.hosts.iter().flat_map(|it| of_host(it)).collect(),
    }
}

/// Returns the patterns of a host, with and without a port, which may begin with `*.`.
fn of_host(host: &str) -> Vec<String> {
    let host = host.to_ascii_lowercase();
    let domain = host.strip_prefix("*.").unwrap_or(&host);
    let mut hosts = vec![domain.to_owned()];
    if domain != host {
        hosts.push(host.clone());
    }
    let patterns = hosts.iter();
    patterns
        .flat_map(|host| [format!("://{host}/"), format!("://{host}:")])
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{exchange, recording_of};

    fn blocked_urls(recording: &Recording, change: serde_json::Value) -> Vec<String> {
        let changes = [serde_json::from_value(change).unwrap()];
        let changed = recording.with_changes(&changes).unwrap();
        changed.recording.blocked_urls(&changes)
    }

    #[test]
    fn urls_and_hosts_are_blocked_unless_an_answered_request_contains_them() {
        let urls = [
            "https://a.test/",
            "https://a.test/b.js",
            "https://ads.test/c",
            "https://a.test/?d=https://other.test/",
            "https://x.other.test/",
            "https://other.test/",
        ];
        let exchanges = urls.map(|url| exchange(url, "text/plain", "a"));
        let recording = recording_of(exchanges.to_vec());
        let blocked =
            |pattern| blocked_urls(&recording, json!({"type": "block", "pattern": pattern}));
        assert_eq!(blocked(json!("b.js")), ["b.js"]);
        assert_eq!(
            blocked(json!({"host": "ads.test"})),
            ["://ads.test/", "://ads.test:"]
        );
        assert_eq!(
            blocked(json!({"hosts": ["*.other.test"]})),
            ["://other.test:", "://*.other.test/", "://*.other.test:"]
        );
        let delay = json!({"type": "delay", "pattern": "b.js", "ms": 5});
        assert!(blocked_urls(&recording, delay).is_empty());
    }
}
