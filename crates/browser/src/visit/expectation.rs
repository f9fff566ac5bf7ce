//! Checks that the measured page is the one that the client expects.

use std::time::Duration;

use plumbline_bundle::{Failure, FailureCode};
use plumbline_seam::Expectation;
use serde::Deserialize;
use serde_json::json;

use crate::page::{Page, VisitError};
use crate::protocol::CallError;

const DEADLINE: Duration = Duration::from_secs(10);

/// Returns a failure that names the first condition that the page does not meet.
pub(crate) async fn check(page: &mut Page<'_>, expect: &Expectation) -> Result<(), VisitError> {
    if let Some(pattern) = &expect.url
        && !matches(pattern, page.final_url())
    {
        return Err(failure(page, &format!("its URL is not `{pattern}`")));
    }
    if let Some(name) = &expect.cookie
        && !has_cookie(page, name).await?
    {
        return Err(failure(page, &format!("it has no cookie `{name}`")));
    }
    if let Some(selector) = &expect.selector {
        let script = format!(
            "({})({})",
            include_str!("expect-selector.js"),
            json!(selector)
        );
        match evaluate(page, &script).await?.as_str() {
            "found" => {}
            "invalid" => {
                let reason = format!("`{selector}` is not a valid CSS selector");
                return Err(failure(page, &reason));
            }
            _ => return Err(failure(page, &format!("no element matches `{selector}`"))),
        }
    }
    if let Some(text) = &expect.text {
        let script = format!("({})({})", include_str!("expect-text.js"), json!(text));
        if evaluate(page, &script).await? != "found" {
            return Err(failure(
                page,
                &format!("it does not show the text `{text}`"),
            ));
        }
    }
    Ok(())
}

fn failure(page: &Page<'_>, reason: &str) -> VisitError {
    let message = format!(
        "The page at {} is not the expected one: {reason}.",
        page.final_url()
    );
    Failure::new(FailureCode::PreconditionFailed, message).into()
}

async fn evaluate(page: &mut Page<'_>, script: &str) -> Result<String, VisitError> {
    match page.evaluate::<String>(DEADLINE, script).await {
        Err(CallError::TimedOut { .. }) => Err(failure(page, "it did not respond")),
        result => Ok(result?),
    }
}

/// Returns whether requests to the page's URL carry a cookie, also one that scripts cannot read.
async fn has_cookie(page: &mut Page<'_>, name: &str) -> Result<bool, VisitError> {
    #[derive(Deserialize)]
    struct Cookies {
        cookies: Vec<Cookie>,
    }
    #[derive(Deserialize)]
    struct Cookie {
        name: String,
    }
    let urls = json!({ "urls": [page.final_url()] });
    let cookies: Cookies = page.call("Network.getCookies", urls).await?;
    Ok(cookies.cookies.iter().any(|cookie| cookie.name == name))
}

/// Returns whether a text matches a pattern, in which `*` stands for any characters.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asterisk_stands_for_any_characters() {
        let url = "https://shop.example/account?tab=1";
        for pattern in [
            url,
            "*",
            "*/account*",
            "https://shop.example/*",
            "https://*.example/*tab=*",
            "*?tab=1",
            "https://shop.example/account?tab=1*",
        ] {
            assert!(matches(pattern, url), "{pattern}");
        }
        for pattern in [
            "https://shop.example/account",
            "/account",
            "*/login*",
            "https://shop.example/*tab",
            "*1*1",
            "*account*account*",
        ] {
            assert!(!matches(pattern, url), "{pattern}");
        }
    }
}
