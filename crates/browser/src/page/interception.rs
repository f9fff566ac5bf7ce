//! Adds headers to requests of some origins, and blocks requests to some hosts.
//!
//! `Network.setExtraHTTPHeaders` would add headers to all requests of a page, also to those of
//! third parties. `Fetch` pauses the requests that match a pattern, and only those: it is enabled
//! for the whole browser before its first page is opened, so that frames, workers and service
//! workers are covered, and in no visit without headers and blocked hosts. A header does not follow
//! a redirect, because the next request of a redirect is paused and decided on its own.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plumbline_seam::{BasicAuth, VisitState};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::emulate::ProtocolCall;

/// The requests that are paused, and what happens to them.
pub(crate) struct Interception {
    headers: Vec<ScopedHeader>,
    blocked_hosts: Vec<String>,
}

struct ScopedHeader {
    name: String,
    value: String,
    origins: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestPaused {
    request_id: String,
    request: PausedRequest,
    #[serde(default)]
    pub(super) frame_id: String,
    #[serde(default)]
    pub(super) resource_type: String,
}

#[derive(Deserialize)]
struct PausedRequest {
    url: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl RequestPaused {
    pub(super) fn method(&self) -> &str {
        &self.request.method
    }

    /// Returns the call that lets the request continue unchanged.
    pub(super) fn proceed(&self) -> ProtocolCall {
        (
            "Fetch.continueRequest",
            json!({ "requestId": self.request_id }),
        )
    }

    /// Returns the call that fails the request.
    pub(super) fn fail(&self, reason: &str) -> ProtocolCall {
        let params = json!({ "requestId": self.request_id, "errorReason": reason });
        ("Fetch.failRequest", params)
    }
}

impl Interception {
    /// Returns `None` if the state changes no request.
    pub(crate) fn of(state: &VisitState, url: &str) -> Option<Self> {
        let headers = state.headers.iter().map(|header| ScopedHeader {
            name: header.name.clone(),
            value: header.value.expose().to_owned(),
            origins: state.origins_of_header(header, url),
        });
        // Sent with every request, like a browser does once it knows that a page needs it. Profiles
        // support no scheme of authentication, so that a challenge is shown as a page.
        let credentials = state.basic_auth.iter().map(|credentials| ScopedHeader {
            name: "Authorization".to_owned(),
            value: authorization(credentials),
            origins: state.origins_for(url),
        });
        let interception = Self {
            headers: headers.chain(credentials).collect(),
            blocked_hosts: state
                .blocked_hosts
                .iter()
                .map(|host| host.to_lowercase())
                .collect(),
        };
        let is_needed = !interception.headers.is_empty() || !interception.blocked_hosts.is_empty();
        is_needed.then_some(interception)
    }

    /// Returns the call that pauses the requests.
    pub(super) fn enable(&self) -> ProtocolCall {
        let origins = self.headers.iter().flat_map(|header| &header.origins);
        let mut patterns: Vec<String> = origins.map(|origin| format!("{origin}/*")).collect();
        for host in &self.blocked_hosts {
            // These also match URLs that contain the host elsewhere; `answer` lets them pass.
            patterns.push(format!("*://{host}/*"));
            patterns.push(format!("*://{host}:*/*"));
        }
        patterns.sort();
        patterns.dedup();
        let patterns: Vec<Value> = patterns
            .into_iter()
            .map(|pattern| json!({ "urlPattern": pattern }))
            .collect();
        ("Fetch.enable", json!({ "patterns": patterns }))
    }

    /// Returns the call that lets a paused request continue, or that blocks it.
    pub(super) fn answer(&self, paused: RequestPaused) -> ProtocolCall {
        let Ok(url) = Url::parse(&paused.request.url) else {
            return paused.proceed();
        };
        let host = url.host_str().unwrap_or_default();
        if self
            .blocked_hosts
            .iter()
            .any(|blocked| matches_host(blocked, host))
        {
            return paused.fail("BlockedByClient");
        }
        let origin = url.origin().ascii_serialization();
        let added: Vec<&ScopedHeader> = self
            .headers
            .iter()
            .filter(|header| header.origins.contains(&origin))
            .collect();
        if added.is_empty() {
            return paused.proceed();
        }
        let is_replaced = |name: &str| {
            let mut added = added.iter();
            added.any(|header| header.name.eq_ignore_ascii_case(name))
        };
        let mut headers = paused.request.headers;
        headers.retain(|name, _| !is_replaced(name));
        let own = headers
            .iter()
            .map(|(name, value)| json!({ "name": name, "value": value }));
        let added = added
            .iter()
            .map(|header| json!({ "name": header.name, "value": header.value }));
        let headers: Vec<Value> = own.chain(added).collect();
        let params = json!({ "requestId": paused.request_id, "headers": headers });
        ("Fetch.continueRequest", params)
    }
}

/// Returns the value of the header with these credentials (RFC 7617).
fn authorization(credentials: &BasicAuth) -> String {
    let pair = format!("{}:{}", credentials.username, credentials.password.expose());
    format!("Basic {}", STANDARD.encode(pair))
}

/// Returns whether a pattern is the host, or `*.` and a domain that the host is below.
fn matches_host(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(domain) => host
            .strip_suffix(domain)
            .is_some_and(|labels| labels.ends_with('.')),
        None => pattern == host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interception(state: Value) -> Interception {
        let state = serde_json::from_value(state).unwrap();
        Interception::of(&state, "https://shop.example/cart").unwrap()
    }

    fn answer(interception: &Interception, url: &str) -> ProtocolCall {
        let paused = json!({ "requestId": "1", "request": {
            "url": url, "headers": { "Accept": "*/*", "x-token": "of the page" },
        }});
        interception.answer(serde_json::from_value(paused).unwrap())
    }

    #[test]
    fn a_state_that_changes_no_request_pauses_none() {
        let state = json!({ "cookies": [{ "name": "a", "value": "b" }], "script": "1" });
        let state = serde_json::from_value(state).unwrap();
        assert!(Interception::of(&state, "https://shop.example/").is_none());
    }

    #[test]
    fn headers_replace_those_of_the_page_for_their_origins_only() {
        let state = json!({ "headers": [
            { "name": "X-Token", "value": "t" },
            { "name": "X-Api", "value": "a", "origins": ["https://api.example"] },
        ]});
        let interception = interception(state);
        let (_, patterns) = interception.enable();
        assert_eq!(
            patterns,
            json!({ "patterns": [
                { "urlPattern": "https://api.example/*" },
                { "urlPattern": "https://shop.example/*" },
            ]})
        );
        let headers = |url: &str| answer(&interception, url).1["headers"].clone();
        assert_eq!(
            headers("https://shop.example/a.js"),
            json!([{ "name": "Accept", "value": "*/*" }, { "name": "X-Token", "value": "t" }])
        );
        assert_eq!(headers("https://api.example/")[2]["name"], "X-Api");
        for other in [
            "http://shop.example/",
            "https://shop.example:8443/",
            "https://a.shop.example/",
        ] {
            assert_eq!(headers(other), Value::Null, "{other}");
        }
    }

    #[test]
    fn credentials_are_a_header() {
        let state = json!({ "basicAuth": { "username": "Aladdin", "password": "open sesame" } });
        let call = answer(&interception(state), "https://shop.example/");
        // The example of RFC 7617.
        assert_eq!(
            call.1["headers"][2],
            json!({ "name": "Authorization", "value": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==" })
        );
    }

    #[test]
    fn only_requests_to_blocked_hosts_are_blocked() {
        let interception =
            interception(json!({ "blockedHosts": ["Ads.example", "*.track.example"] }));
        for (url, is_blocked) in [
            ("https://ads.example/a", true),
            ("https://ads.example:8443/a", true),
            ("https://a.b.track.example/", true),
            ("https://track.example/", false),
            ("https://nottrack.example/", false),
            ("https://shop.example/?from=https://ads.example/", false),
        ] {
            let (method, _) = answer(&interception, url);
            assert_eq!(method == "Fetch.failRequest", is_blocked, "{url}");
        }
    }
}
