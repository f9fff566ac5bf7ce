//! Reads the cookies and the storage that steps have left, for a saved session.

use std::collections::BTreeMap;
use std::time::Duration;

use plumbline_bundle::{Failure, FailureCode};
use plumbline_seam::{Cookie, MAX_SAVED_STATE_BYTES, OriginStorage, SameSite, SavedState, Secret};
use serde::Deserialize;
use serde_json::json;

use crate::page::{Page, VisitError};
use crate::protocol::CallError;

const DEADLINE: Duration = Duration::from_secs(5);

/// The storage of the origins whose documents the steps have opened. It is read after each step,
/// because the browser has the storage of an origin only while the tab shows a document of it.
#[derive(Default)]
pub(super) struct StorageReader(BTreeMap<String, OriginStorage>);

impl StorageReader {
    /// Reads the storage of the current document. A document that does not respond, or has no
    /// storage, changes nothing.
    pub(super) async fn read(&mut self, page: &mut Page<'_>) -> Result<(), VisitError> {
        let script = format!("({})()", include_str!("read-storage.js"));
        let text: String = match page.evaluate(DEADLINE, &script).await {
            Ok(text) => text,
            Err(CallError::TimedOut { .. } | CallError::Refused { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // Pages of the browser and sandboxed documents have the origin `null`.
        if let Ok(storage) = serde_json::from_str::<OriginStorage>(&text)
            && storage.origin.starts_with("http")
        {
            self.0.insert(storage.origin.clone(), storage);
        }
        Ok(())
    }

    /// Returns the storage with all cookies of the browser.
    pub(super) async fn finish(self, page: &mut Page<'_>) -> Result<SavedState, VisitError> {
        let response: Cookies = page.call("Network.getAllCookies", json!({})).await?;
        let cookies = response.cookies.into_iter();
        let storage = self.0.into_values();
        let state = SavedState {
            cookies: cookies.filter_map(BrowserCookie::into_cookie).collect(),
            storage: storage
                .filter(|it| !it.local_storage.is_empty() || !it.session_storage.is_empty())
                .collect(),
        };
        let bytes = serde_json::to_string(&state).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_SAVED_STATE_BYTES {
            let message = format!(
                "The cookies and the storage after the steps have {bytes} bytes; a session may have \
                 {MAX_SAVED_STATE_BYTES}."
            );
            return Err(Failure::new(FailureCode::PreconditionFailed, message).into());
        }
        Ok(state)
    }
}

#[derive(Deserialize)]
struct Cookies {
    cookies: Vec<BrowserCookie>,
}

/// A cookie as the protocol describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BrowserCookie {
    name: String,
    value: Secret,
    domain: String,
    path: String,
    secure: bool,
    http_only: bool,
    #[serde(default)]
    same_site: Option<SameSite>,
    /// Set if the cookie belongs to frames within one site.
    #[serde(default)]
    partition_key: Option<serde_json::Value>,
}

impl BrowserCookie {
    /// Returns the cookie, unless it belongs to frames of other sites, which do not sign in.
    fn into_cookie(self) -> Option<Cookie> {
        if self.partition_key.is_some() {
            return None;
        }
        Some(Cookie {
            name: self.name,
            value: self.value,
            domain: Some(self.domain),
            path: Some(self.path),
            secure: self.secure,
            http_only: self.http_only,
            same_site: self.same_site,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_of_frames_within_other_sites_are_left_out() {
        let cookies = json!({ "cookies": [
            {
                "name": "sid", "value": "1", "domain": "a.example", "path": "/", "expires": -1, "size": 4,
                "httpOnly": true, "secure": false, "session": true, "sameSite": "Lax", "priority": "Medium",
            },
            {
                "name": "embedded", "value": "2", "domain": ".b.example", "path": "/", "httpOnly": false,
                "secure": true, "partitionKey": { "topLevelSite": "https://a.example" },
            },
        ] });
        let cookies: Cookies = serde_json::from_value(cookies).unwrap();
        let kept: Vec<Cookie> = cookies
            .cookies
            .into_iter()
            .filter_map(BrowserCookie::into_cookie)
            .collect();
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].domain.as_deref(), Some("a.example"));
        assert!(kept[0].http_only && kept[0].same_site == Some(SameSite::Lax));
    }
}
