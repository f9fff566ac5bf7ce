//! The sign-in page, which is the start page without a session, and signing out.

use askama::Template;
use axum::{
    extract::State,
    http::{HeaderMap, request::Parts},
    response::{Html, IntoResponse, Response},
};
use plumbline_store::Key;

use super::cookies::Cookies;
use super::form::Form;
use super::frame::{Page, PageFrame};
use super::page_rate::Guest;
use super::parts as page_parts;
use super::session::{self, Visitor, see_other, with_status_of};
use crate::{auth::authenticate_key, errors::Failure, peer::client_address, state::SharedState};

/// The title of the start page, with and without a session.
pub(super) const TITLE: &str = "Plumbline: audit a web page";
/// The description of the start page, with and without a session.
pub(super) const DESCRIPTION: &str = "Loads a web page in a real browser with the device, network \
     and location you choose, and reports scores, metrics and what to fix first.";

/// The sign-in page.
#[derive(Template)]
#[template(path = "sign_in/sign_in.html")]
struct SignInPage<'a> {
    /// The path to open after signing in.
    to: &'a str,
    /// The error of the last attempt.
    problem: Option<&'a str>,
}

impl Page for SignInPage<'_> {
    fn title(&self) -> String {
        TITLE.to_owned()
    }

    fn description(&self) -> String {
        DESCRIPTION.to_owned()
    }
}

/// Renders the sign-in page.
pub(super) fn form(to: &str, problem: Option<&str>) -> Result<Html<String>, Failure> {
    let page = PageFrame::SignedOut.render(&SignInPage { to, problem });
    Ok(Html(page.map_err(Failure::internal)?))
}

/// `POST /sign-in`: starts a session.
pub(crate) async fn sign_in(
    State(service): State<SharedState>,
    _guest: Guest,
    parts: Parts,
    mut form: Form,
) -> Result<Response, Failure> {
    let to = own_path(form.take("to"));
    let address = client_address(&parts, &service.app.limits);
    let key = Key::parse(form.take("key").trim());
    let key = match authenticate_key(key, address, &service).await {
        Ok(key) => key,
        Err(failure) => return sign_in_failure(failure, &to),
    };
    let cookies = Cookies::of(&service, &parts.headers);
    let mut response = see_other(&to);
    session::open(&service, &cookies, &key.id, &mut response).await?;
    Ok(response)
}

/// Returns the sign-in form with the problem. Failures that do not concern the key are returned as
/// they are.
fn sign_in_failure(failure: Failure, to: &str) -> Result<Response, Failure> {
    let problem = match &failure {
        Failure::Unauthorized(reason) => (*reason).to_owned(),
        Failure::TooManyFailedKeys(wait_s) => {
            format!("Too many wrong keys came from your address. Try again in {wait_s} seconds.")
        }
        _ => return Err(failure),
    };
    let page = form(to, Some(&problem))?.into_response();
    Ok(with_status_of(failure, page))
}

/// `POST /sign-out`: ends the session; with `sessions=all`, all sessions of the same key.
pub(crate) async fn sign_out(
    State(service): State<SharedState>,
    _guest: Guest,
    headers: HeaderMap,
    mut form: Form,
) -> Result<Response, Failure> {
    let ends_all = match form.take("sessions").as_str() {
        "" => false,
        "all" => true,
        _ => return Err(Failure::InvalidBody("invalid `sessions`".into())),
    };
    if ends_all && let Some(visitor) = Visitor::of(&headers, &service).await? {
        let store = &page_parts(&service)?.store;
        store.close_sessions(Some(&visitor.key_id)).await?;
    }
    let cookies = Cookies::of(&service, &headers);
    let mut response = see_other("/");
    session::close(&service, &cookies, &mut response).await?;
    Ok(response)
}

/// Returns the path if it is one of this service, or else the start page: never another site.
fn own_path(to: String) -> String {
    let is_own = to.starts_with('/')
        && !to.starts_with("//")
        && !to.contains('\\')
        && !to.contains(|c: char| c.is_control());
    if is_own { to } else { "/".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{EVIL, assert_text_only};
    use super::*;

    #[test]
    fn signing_in_never_leads_to_another_site() {
        for (to, expected) in [
            ("/reports/aud_1", "/reports/aud_1"),
            ("/history?audit=a", "/history?audit=a"),
            ("", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/\r\nSet-Cookie: a", "/"),
        ] {
            assert_eq!(own_path(to.to_owned()), expected);
        }
    }

    #[test]
    fn texts_of_a_request_are_escaped() {
        assert_text_only(&SignInPage {
            to: EVIL,
            problem: Some(EVIL),
        });
    }
}
