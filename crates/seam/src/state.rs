//! The state that is seeded into the fresh profile of a visit, and the expectations of its page.

use std::collections::BTreeMap;

use plumbline_model::report::StateNames;
use serde::{Deserialize, Serialize};

use crate::Secret;

/// The state of a browser before the visit. All of it is seeded into a fresh profile; the HTTP
/// cache is empty and no connection is open, as in every visit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VisitState {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cookies: Vec<Cookie>,
    /// Items of `localStorage` by name, for documents of [`VisitState::origins`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub local_storage: BTreeMap<String, Secret>,
    /// Items of `sessionStorage` by name, for documents of [`VisitState::origins`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub session_storage: BTreeMap<String, Secret>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
    /// A script that runs before all others in documents of [`VisitState::origins`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Secret>,
    /// The origins that get headers, credentials, storage and the script; empty for the origin of
    /// the audited URL only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// A text that is appended to the user agent of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent_suffix: Option<String>,
    /// Hosts to which no request is sent: `example.com`, or `*.example.com` with all subdomains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_hosts: Vec<String>,
}

/// A cookie that exists before the visit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cookie {
    pub name: String,
    pub value: Secret,
    /// The host, with all subdomains if it begins with a dot; `None` for the host of the audited
    /// URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The path; `None` for `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secure: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http_only: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_site: Option<SameSite>,
}

/// The sites whose requests carry a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SameSite {
    Strict,
    Lax,
    None,
}

impl SameSite {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Lax => "Lax",
            Self::None => "None",
        }
    }
}

/// A header that is added to requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub name: String,
    pub value: Secret,
    /// The origins whose requests get the header; empty for those of the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
}

/// Credentials of HTTP basic authentication. The user name may come from a stored secret as well,
/// so that [`std::fmt::Debug`] shows none of them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BasicAuth {
    pub username: String,
    pub password: Secret,
}

impl std::fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(crate::REDACTED)
    }
}

/// Conditions that the measured page must meet; those that are set must all hold. A page that does
/// not meet them is not scored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Expectation {
    /// A CSS selector that an element of the document matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// A text that the document shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The URL of the document after redirects, in which `*` stands for any characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The name of a cookie that requests to the document's URL carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie: Option<String>,
}

impl VisitState {
    /// Returns the origins that get headers, credentials, storage and the script of a visit.
    pub fn origins_for(&self, url: &str) -> Vec<String> {
        if self.origins.is_empty() {
            origin_of(url).into_iter().collect()
        } else {
            let origins = self.origins.iter();
            origins.filter_map(|origin| origin_of(origin)).collect()
        }
    }

    /// Returns the origins that get a header of a visit.
    pub fn origins_of_header(&self, header: &Header, url: &str) -> Vec<String> {
        if header.origins.is_empty() {
            self.origins_for(url)
        } else {
            let origins = header.origins.iter();
            origins.filter_map(|origin| origin_of(origin)).collect()
        }
    }

    /// Returns the names of everything that is set, as reports show them.
    pub fn names(&self) -> StateNames {
        StateNames {
            cookies: self.cookies.iter().map(|c| c.name.clone()).collect(),
            local_storage: self.local_storage.keys().cloned().collect(),
            session_storage: self.session_storage.keys().cloned().collect(),
            headers: self.headers.iter().map(|h| h.name.clone()).collect(),
            basic_auth: self.basic_auth.is_some(),
            script: self.script.is_some(),
            user_agent_suffix: self.user_agent_suffix.clone(),
            blocked_hosts: self.blocked_hosts.clone(),
        }
    }

    /// Returns all values, which are secrets.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Secret> {
        let cookies = self.cookies.iter().map(|cookie| &cookie.value);
        let headers = self.headers.iter().map(|header| &header.value);
        let local = self.local_storage.values();
        let session = self.session_storage.values();
        let password = self.basic_auth.iter().map(|it| &it.password);
        let secrets = cookies.chain(headers).chain(local).chain(session);
        secrets.chain(password).chain(&self.script)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Secret> {
        let cookies = self.cookies.iter_mut().map(|cookie| &mut cookie.value);
        let headers = self.headers.iter_mut().map(|header| &mut header.value);
        let local = self.local_storage.values_mut();
        let session = self.session_storage.values_mut();
        let password = self.basic_auth.iter_mut().map(|it| &mut it.password);
        let secrets = cookies.chain(headers).chain(local).chain(session);
        secrets.chain(password).chain(&mut self.script)
    }

    /// Replaces all secrets by empty texts, so that only names are left.
    pub(crate) fn erase_values(&mut self) {
        self.values_mut()
            .for_each(|secret| *secret = Secret::default());
        if let Some(credentials) = &mut self.basic_auth {
            *credentials = BasicAuth::default();
        }
    }
}

/// Returns the origin of an http or https URL in the form in which browsers write it.
pub(crate) fn origin_of(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state() -> VisitState {
        serde_json::from_value(json!({
            "cookies": [{ "name": "session", "value": "s3cret-a", "sameSite": "Lax" }],
            "localStorage": { "token": "s3cret-b" },
            "sessionStorage": { "tab": "s3cret-c" },
            "headers": [{ "name": "X-Token", "value": "s3cret-d", "origins": ["https://api.example.com/"] }],
            "basicAuth": { "username": "s3cret-e", "password": "s3cret-f" },
            "script": "s3cret-g",
        }))
        .unwrap()
    }

    #[test]
    fn a_state_without_values_keeps_names_only() {
        let mut erased = state();
        erased.erase_values();
        let text = serde_json::to_string(&erased).unwrap();
        assert!(!text.contains("s3cret"), "{text}");
        assert_eq!(erased.names(), state().names());
        assert_eq!(erased.names().headers, ["X-Token"]);
        assert!(erased.names().basic_auth && erased.names().script);
    }

    #[test]
    fn secrets_are_never_formatted() {
        let text = format!("{:?}", state());
        for secret in [
            "s3cret-a", "s3cret-b", "s3cret-c", "s3cret-d", "s3cret-f", "s3cret-g",
        ] {
            assert!(!text.contains(secret), "{text}");
        }
    }

    #[test]
    fn headers_go_to_the_audited_origin_unless_others_are_named() {
        let mut state = state();
        let url = "HTTPS://Example.com:443/page?a=1";
        assert_eq!(state.origins_for(url), ["https://example.com"]);
        let header = state.headers[0].clone();
        let own = state.origins_of_header(&header, url);
        assert_eq!(own, ["https://api.example.com"]);
        let common = Header {
            origins: Vec::new(),
            ..header
        };
        assert_eq!(
            state.origins_of_header(&common, url),
            ["https://example.com"]
        );
        state.origins = vec!["https://www.example.com".to_owned()];
        assert_eq!(
            state.origins_of_header(&common, url),
            ["https://www.example.com"]
        );
    }
}
