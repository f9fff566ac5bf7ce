//! Who is signed in: a random secret in a cookie that scripts cannot read, its digest in the store.

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
use super::turn::{self, Guest};
use super::{of, start};
use crate::{auth::prove_key, errors::Failure, peer::address_of, router::Shared};

const COOKIE: &str = "plumbline_session";
const SECRET_CHARS: usize = 43;
const LASTS: Duration = Duration::from_secs(14 * 24 * 60 * 60);
/// Whoever signs in beyond this ends the oldest session of the key.
const SESSIONS_PER_KEY: u32 = 20;

/// Whoever is signed in.
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

    /// Nobody where there is no session, it is over, or its key is revoked.
    pub(crate) async fn of(headers: &HeaderMap, service: &Shared) -> Result<Option<Self>, Failure> {
        let Some(secret) = Cookies::of(service, headers).get(COOKIE) else {
            return Ok(None);
        };
        let now = (service.app.clock)();
        let digest = session_digest(secret);
        let key = of(service)?.store.session(digest, now).await?;
        Ok(key.filter(|key| key.is_usable(now)).map(|key| Self {
            key_id: key.id,
            account_id: key.account_id,
            account_name: key.account_name,
            credits: key.credits,
        }))
    }
}

/// Who is not signed in is asked to, and comes back to where they wanted to go.
impl FromRequestParts<Shared> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, service: &Shared) -> Result<Self, Response> {
        match turn::visitor(parts, service).await {
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

/// `POST /sign-in`
pub(crate) async fn sign_in(
    State(service): State<Shared>,
    _guest: Guest,
    parts: Parts,
    mut form: Form,
) -> Result<Response, Failure> {
    let to = own_path(form.take("to"));
    let from = address_of(&parts, &service.app.limits);
    let key = match prove_key(Key::parse(form.take("key").trim()), from, &service).await {
        Ok(key) => key,
        Err(refused) => return refusal(refused, &to),
    };
    let secret = random_text(SECRET_CHARS)
        .map_err(|error| Failure::internal(format!("no random source: {error}")))?;
    let now = (service.app.clock)();
    let cookies = Cookies::of(&service, &parts.headers);
    close_sessions_of(&service, &cookies).await?;
    let (digest, until) = (session_digest(&secret), now.plus(LASTS));
    let store = &of(&service)?.store;
    let opened = store.open_session(digest, &key.id, until, SESSIONS_PER_KEY, now);
    opened.await?;
    let mut response = see_other(&to);
    cookies.remove_others(&mut response, COOKIE);
    cookies.set(&mut response, COOKIE, &secret, LASTS);
    Ok(response)
}

/// The form again, with what was wrong; what is not about the key goes on as it is.
fn refusal(refused: Failure, to: &str) -> Result<Response, Failure> {
    let problem = match &refused {
        Failure::Unauthorized => "No such key. It may have been revoked.".to_owned(),
        Failure::TooManyFailedKeys(wait_s) => {
            format!("Too many wrong keys came from your address. Try again in {wait_s} seconds.")
        }
        _ => return Err(refused),
    };
    let page = start::signed_out(to, Some(&problem))?.into_response();
    Ok(with_status_of(refused, page))
}

/// A page in the place of a refusal, which keeps its status and says as well when to try again.
pub(super) fn with_status_of(refused: Failure, mut page: Response) -> Response {
    let answer = refused.into_response();
    *page.status_mut() = answer.status();
    if let Some(wait) = answer.headers().get(header::RETRY_AFTER) {
        let wait = wait.clone();
        page.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    page
}

/// `POST /sign-out`, with `sessions=all` of every session of the same key.
pub(crate) async fn sign_out(
    State(service): State<Shared>,
    _guest: Guest,
    headers: HeaderMap,
    mut form: Form,
) -> Result<Response, Failure> {
    let is_of_all = match form.take("sessions").as_str() {
        "" => false,
        "all" => true,
        _ => return Err(Failure::InvalidBody),
    };
    if is_of_all && let Some(visitor) = Visitor::of(&headers, &service).await? {
        let closed = of(&service)?.store.close_sessions(Some(&visitor.key_id));
        closed.await?;
    }
    let cookies = Cookies::of(&service, &headers);
    close_sessions_of(&service, &cookies).await?;
    let mut response = see_other("/");
    cookies.remove(&mut response, COOKIE);
    Ok(response)
}

/// Ends the sessions that a browser has, also one whose cookie has the name of an earlier version.
async fn close_sessions_of(service: &Shared, cookies: &Cookies<'_>) -> Result<(), Failure> {
    let store = &of(service)?.store;
    for secret in cookies.get_any(COOKIE) {
        store.close_session(session_digest(secret)).await?;
    }
    Ok(())
}

/// A place of ours to go on to, or the start: never another site.
fn own_path(to: String) -> String {
    let is_own = to.starts_with('/')
        && !to.starts_with("//")
        && !to.contains('\\')
        && !to.contains(|c: char| c.is_control());
    if is_own { to } else { "/".to_owned() }
}

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
        for (to, leads) in [
            ("/reports/aud_1", "/reports/aud_1"),
            ("/history?audit=a", "/history?audit=a"),
            ("", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/\r\nSet-Cookie: a", "/"),
        ] {
            assert_eq!(own_path(to.to_owned()), leads);
        }
    }
}
