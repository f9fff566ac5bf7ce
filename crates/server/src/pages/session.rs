//! Sessions: a random secret in a cookie that scripts cannot read, whose digest is in the store.

use std::time::Duration;

use axum::{
    extract::{FromRequestParts, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use plumbline_report::html::PageFrame;
use plumbline_store::{Key, random_text, session_digest};

use super::cookies::Cookies;
use super::form::Form;
use super::page_rate::{self, Guest};
use super::{parts as page_parts, start};
use crate::{auth::authenticate_key, errors::Failure, peer::client_address, state::SharedState};

const COOKIE: &str = "plumbline_session";
const SECRET_CHARS: usize = 43;
const SESSION_DURATION: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// The number of sessions of a key; a further sign-in ends the oldest.
const MAX_SESSIONS_PER_KEY: u32 = 20;

/// A user who is signed in.
pub(crate) struct Visitor {
    pub(crate) key_id: String,
    pub(crate) account_id: String,
    pub(crate) account_name: String,
    pub(crate) credits: i64,
}

impl Visitor {
    pub(crate) fn page_frame(&self) -> PageFrame {
        PageFrame::signed_in(self.account_name.clone())
    }

    /// Returns the visitor of a session, or `None` if there is no session, it has expired, or its
    /// key is revoked.
    pub(crate) async fn of(
        headers: &HeaderMap,
        service: &SharedState,
    ) -> Result<Option<Self>, Failure> {
        let Some(secret) = Cookies::of(service, headers).get(COOKIE) else {
            return Ok(None);
        };
        let now = (service.app.clock)();
        let digest = session_digest(secret);
        let key = page_parts(service)?.store.session(digest, now).await?;
        Ok(key.filter(|key| key.is_usable(now)).map(|key| Self {
            key_id: key.id,
            account_id: key.account_id,
            account_name: key.account_name,
            credits: key.credits,
        }))
    }
}

/// Redirects to the sign-in form if there is no session, and back to the page after the sign-in.
impl FromRequestParts<SharedState> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &SharedState,
    ) -> Result<Self, Response> {
        match page_rate::visitor(parts, service).await {
            Ok(Some(visitor)) => Ok(visitor),
            Ok(None) => {
                let to = parts.uri.path_and_query().map_or("/", |to| to.as_str());
                let query: String = url::form_urlencoded::Serializer::new(String::new())
                    .append_pair("to", to)
                    .finish();
                Err(see_other(&format!("/?{query}")))
            }
            Err(failure) => Err(failure.into_response()),
        }
    }
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
    let secret = random_text(SECRET_CHARS)
        .map_err(|error| Failure::internal(format!("no random source: {error}")))?;
    let now = (service.app.clock)();
    let cookies = Cookies::of(&service, &parts.headers);
    close_sessions_of(&service, &cookies).await?;
    let (digest, until) = (session_digest(&secret), now.plus(SESSION_DURATION));
    let store = &page_parts(&service)?.store;
    let opening = store.open_session(digest, &key.id, until, MAX_SESSIONS_PER_KEY, now);
    opening.await?;
    let mut response = see_other(&to);
    cookies.remove_others(&mut response, COOKIE);
    cookies.set(&mut response, COOKIE, &secret, SESSION_DURATION);
    Ok(response)
}

/// Returns the sign-in form with the problem. Failures that do not concern the key are returned as
/// they are.
fn sign_in_failure(failure: Failure, to: &str) -> Result<Response, Failure> {
    let problem = match &failure {
        Failure::Unauthorized => {
            "That key is not valid. It may be mistyped, expired or revoked.".to_owned()
        }
        Failure::TooManyFailedKeys(wait_s) => {
            format!("Too many wrong keys came from your address. Try again in {wait_s} seconds.")
        }
        _ => return Err(failure),
    };
    let page = start::signed_out(to, Some(&problem))?.into_response();
    Ok(with_status_of(failure, page))
}

/// Returns a page with the status and the `Retry-After` header of a failure.
pub(super) fn with_status_of(failure: Failure, mut page: Response) -> Response {
    let response = failure.into_response();
    *page.status_mut() = response.status();
    if let Some(wait) = response.headers().get(header::RETRY_AFTER) {
        let wait = wait.clone();
        page.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    page
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
        _ => return Err(Failure::InvalidBody),
    };
    if ends_all && let Some(visitor) = Visitor::of(&headers, &service).await? {
        let store = &page_parts(&service)?.store;
        store.close_sessions(Some(&visitor.key_id)).await?;
    }
    let cookies = Cookies::of(&service, &headers);
    close_sessions_of(&service, &cookies).await?;
    let mut response = see_other("/");
    cookies.remove(&mut response, COOKIE);
    Ok(response)
}

/// Ends the sessions of a browser, including one whose cookie has the name of an earlier version.
async fn close_sessions_of(service: &SharedState, cookies: &Cookies<'_>) -> Result<(), Failure> {
    let store = &page_parts(service)?.store;
    for secret in cookies.get_any(COOKIE) {
        store.close_session(session_digest(secret)).await?;
    }
    Ok(())
}

/// Returns the path if it is one of this service, or else the start page: never another site.
fn own_path(to: String) -> String {
    let is_own = to.starts_with('/')
        && !to.starts_with("//")
        && !to.contains('\\')
        && !to.contains(|c: char| c.is_control());
    if is_own { to } else { "/".to_owned() }
}

/// Redirects to a path.
pub(super) fn see_other(to: &str) -> Response {
    match HeaderValue::try_from(to) {
        Ok(to) => (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response(),
        Err(error) => Failure::internal(error).into_response(),
    }
}

#[cfg(test)]
mod tests {
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
}
