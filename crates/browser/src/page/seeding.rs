//! Seeds cookies, storage and scripts into the fresh profile of a visit.

use std::collections::BTreeMap;

use plumbline_bundle::{Failure, FailureCode};
use plumbline_seam::{Cookie, SavedState, Secret, VisitState};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Page;
use super::failure::VisitError;
use crate::emulate::ProtocolCall;

const NEW_DOCUMENT: &str = "Page.addScriptToEvaluateOnNewDocument";

/// Returns the calls that seed storage and script, for the page and for each of its frames. They
/// run in every new document of the state's origins, before its own scripts.
pub(super) fn scripts(state: &VisitState, url: &str) -> Vec<ProtocolCall> {
    let origins = json!(state.origins_for(url));
    let storage = storage_source(&origins, &state.local_storage, &state.session_storage);
    let mut sources: Vec<String> = storage.into_iter().collect();
    if let Some(script) = &state.script {
        let script = script.expose();
        sources.push(format!(
            "if ({origins}.includes(location.origin)) {{\n{script}\n}}"
        ));
    }
    sources.into_iter().map(new_document).collect()
}

/// Returns the calls that seed the storage of a saved session, each in documents of its origin.
pub(super) fn saved_scripts(saved: &SavedState) -> Vec<ProtocolCall> {
    let sources = saved.storage.iter().filter_map(|storage| {
        let origins = json!([storage.origin]);
        storage_source(&origins, &storage.local_storage, &storage.session_storage)
    });
    sources.map(new_document).collect()
}

/// Returns the call with which dates begin at a time and random numbers repeat.
pub(super) fn repeatable_script(since_ms: i64) -> ProtocolCall {
    let script = include_str!("repeatable.js");
    new_document(format!("({})({since_ms});", script.trim_end()))
}

fn new_document(source: String) -> ProtocolCall {
    (NEW_DOCUMENT, json!({ "source": source }))
}

/// Returns a script that seeds items into documents of some origins, if there are items.
fn storage_source(origins: &Value, local: &Items, session: &Items) -> Option<String> {
    if local.is_empty() && session.is_empty() {
        return None;
    }
    let list = |items: &Items| -> Value {
        let items = items.iter();
        items
            .map(|(name, value)| json!([name, value.expose()]))
            .collect()
    };
    let (local, session) = (list(local), list(session));
    let seed = include_str!("seed-storage.js");
    Some(format!("({seed})({origins}, {local}, {session});"))
}

/// Items of a storage by name.
type Items = BTreeMap<String, Secret>;

impl Page<'_> {
    /// Checks that Chromium can parse the script of a state. Otherwise its error would be reported
    /// as one of the page.
    pub(super) async fn check_script(&mut self, script: &Secret) -> Result<(), VisitError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Compiled {
            #[serde(default)]
            exception_details: Option<SyntaxError>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct SyntaxError {
            #[serde(default)]
            line_number: u32,
        }
        // In a block, as it will run.
        let source = format!("{{\n{}\n}}", script.expose());
        let params = json!({ "expression": source, "sourceURL": "", "persistScript": false });
        let compiled: Compiled = self.call("Runtime.compileScript", params).await?;
        match compiled.exception_details {
            None => Ok(()),
            Some(SyntaxError { line_number }) => {
                let message =
                    format!("The script of the state has a syntax error in line {line_number}.");
                Err(Failure::new(FailureCode::PreconditionFailed, message).into())
            }
        }
    }

    /// Sets the cookies of a state.
    pub(super) async fn set_cookies(
        &mut self,
        cookies: &[Cookie],
        url: &str,
    ) -> Result<(), VisitError> {
        for cookie in cookies {
            self.set_cookie(cookie, params(cookie, url)).await?;
        }
        Ok(())
    }

    /// Sets the cookies of a saved session.
    pub(super) async fn restore_cookies(&mut self, cookies: &[Cookie]) -> Result<(), VisitError> {
        for cookie in cookies {
            self.set_cookie(cookie, restored_params(cookie)).await?;
        }
        Ok(())
    }

    async fn set_cookie(&mut self, cookie: &Cookie, params: Value) -> Result<(), VisitError> {
        #[derive(Deserialize)]
        struct Response {
            success: bool,
        }
        let call = self.call("Network.setCookie", params).await;
        if !call.is_ok_and(|response: Response| response.success) {
            self.check_size()?;
            let message = format!("The browser refused the cookie `{}`.", cookie.name);
            return Err(Failure::new(FailureCode::PreconditionFailed, message).into());
        }
        Ok(())
    }
}

/// Returns the parameters of a cookie as the browser had it. Its domain is that of one host unless
/// it begins with a dot, and Chromium would set a cookie of all subdomains for a domain.
fn restored_params(cookie: &Cookie) -> Value {
    let domain = cookie.domain.as_deref().unwrap_or_default();
    if domain.starts_with('.') {
        return params(cookie, "");
    }
    let scheme = if cookie.secure { "https" } else { "http" };
    let path = cookie.path.as_deref().unwrap_or("/");
    let of_host = Cookie {
        domain: None,
        ..cookie.clone()
    };
    params(&of_host, &format!("{scheme}://{domain}{path}"))
}

fn params(cookie: &Cookie, url: &str) -> Value {
    let mut params = json!({
        "name": cookie.name,
        "value": cookie.value.expose(),
        "path": cookie.path.as_deref().unwrap_or("/"),
        "secure": cookie.secure,
        "httpOnly": cookie.http_only,
    });
    match &cookie.domain {
        Some(domain) => params["domain"] = json!(domain),
        None => params["url"] = json!(url),
    }
    if let Some(same_site) = cookie.same_site {
        params["sameSite"] = json!(same_site.as_str());
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_in_scripts() {
        let state = json!({
            "localStorage": { "a": "\"); alert(1); //" }, "sessionStorage": { "b": "</script>" },
            "script": "window.flag = true; // comment",
        });
        let state = serde_json::from_value(state).unwrap();
        let calls = scripts(&state, "https://shop.example/cart");
        let source = |index: usize| calls[index].1["source"].as_str().unwrap();
        assert!(source(0).ends_with(
            r#"(["https://shop.example"], [["a","\"); alert(1); //"]], [["b","</script>"]]);"#
        ));
        assert_eq!(
            source(1),
            "if ([\"https://shop.example\"].includes(location.origin)) {\n\
             window.flag = true; // comment\n}"
        );
    }

    #[test]
    fn a_saved_cookie_belongs_to_its_host_or_to_all_subdomains() {
        let mut cookie = Cookie {
            name: "a".to_owned(),
            domain: Some("shop.example".to_owned()),
            path: Some("/account".to_owned()),
            ..Cookie::default()
        };
        let params = restored_params(&cookie);
        assert_eq!(params["url"], "http://shop.example/account");
        assert!(params["domain"].is_null());
        cookie.secure = true;
        assert_eq!(
            restored_params(&cookie)["url"],
            "https://shop.example/account"
        );
        cookie.domain = Some(".shop.example".to_owned());
        let params = restored_params(&cookie);
        assert_eq!(params["domain"], ".shop.example");
        assert!(params["url"].is_null());
    }

    #[test]
    fn saved_storage_is_seeded_in_its_origin_only() {
        let saved = json!({ "storage": [
            { "origin": "https://a.example", "localStorage": { "a": "1" } },
            { "origin": "https://b.example", "sessionStorage": { "b": "2" } },
            { "origin": "https://c.example" },
        ] });
        let calls = saved_scripts(&serde_json::from_value(saved).unwrap());
        let ends = [
            r#"(["https://a.example"], [["a","1"]], []);"#,
            r#"(["https://b.example"], [], [["b","2"]]);"#,
        ];
        assert_eq!(calls.len(), ends.len());
        for ((_, params), end) in calls.iter().zip(ends) {
            assert!(params["source"].as_str().unwrap().ends_with(end));
        }
    }

    #[test]
    fn a_cookie_belongs_to_the_audited_url_unless_it_has_a_domain() {
        let mut cookie = Cookie {
            name: "a".to_owned(),
            ..Cookie::default()
        };
        let url = "https://shop.example/cart";
        assert_eq!(params(&cookie, url)["url"], url);
        cookie.domain = Some(".shop.example".to_owned());
        assert_eq!(params(&cookie, url)["domain"], ".shop.example");
        assert!(params(&cookie, url)["url"].is_null());
    }
}
