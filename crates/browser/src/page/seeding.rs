//! Seeds cookies, storage and a script into the fresh profile of a visit.

use plumbline_bundle::{Failure, FailureCode};
use plumbline_seam::{Cookie, Secret, VisitState};
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
    let mut sources = Vec::new();
    if !state.local_storage.is_empty() || !state.session_storage.is_empty() {
        let items = |(name, value): (&String, &Secret)| json!([name, value.expose()]);
        let local: Vec<Value> = state.local_storage.iter().map(items).collect();
        let session: Vec<Value> = state.session_storage.iter().map(items).collect();
        sources.push(format!(
            "({})({origins}, {}, {});",
            include_str!("seed-storage.js"),
            json!(local),
            json!(session)
        ));
    }
    if let Some(script) = &state.script {
        let script = script.expose();
        sources.push(format!(
            "if ({origins}.includes(location.origin)) {{\n{script}\n}}"
        ));
    }
    sources
        .into_iter()
        .map(|source| (NEW_DOCUMENT, json!({ "source": source })))
        .collect()
}

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
        #[derive(Deserialize)]
        struct Response {
            success: bool,
        }
        for cookie in cookies {
            let call = self.call("Network.setCookie", params(cookie, url)).await;
            if !call.is_ok_and(|response: Response| response.success) {
                self.check_size()?;
                let message = format!("The browser refused the cookie `{}`.", cookie.name);
                return Err(Failure::new(FailureCode::PreconditionFailed, message).into());
            }
        }
        Ok(())
    }
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
