//! Sessions: a random secret in a cookie that scripts cannot read, whose digest is in the store.

use std::time::Duration;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use plumbline_store::{random_text, session_digest};

use super::cookies::Cookies;
use super::frame::PageFrame;
use super::{page_rate, parts as page_parts};
use crate::{auth::Starter, errors::Failure, request_context::RequestContext, state::SharedState};

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
        PageFrame::SignedIn(self.account_name.clone())
    }

    /// Returns who starts audits in the name of the visitor.
    pub(super) fn starter(&self) -> Starter {
        Starter {
            key_id: self.key_id.clone(),
            account_id: self.account_id.clone(),
            // The headers of a page do not describe the limit of starts.
            context: RequestContext::default(),
        }
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

/// Starts a session of a key, in place of one that the browser has, and sets its cookie.
pub(super) async fn open(
    service: &SharedState,
    cookies: &Cookies<'_>,
    key_id: &str,
    response: &mut Response,
) -> Result<(), Failure> {
    let secret = random_text(SECRET_CHARS)
        .map_err(|error| Failure::internal(format!("no random source: {error}")))?;
    let now = (service.app.clock)();
    end_sessions_of(service, cookies).await?;
    let (digest, until) = (session_digest(&secret), now.plus(SESSION_DURATION));
    let store = &page_parts(service)?.store;
    let opening = store.open_session(digest, key_id, until, MAX_SESSIONS_PER_KEY, now);
    opening.await?;
    cookies.remove_others(response, COOKIE);
    cookies.set(response, COOKIE, &secret, SESSION_DURATION);
    Ok(())
}

/// Ends the session of a browser and removes its cookie.
pub(super) async fn close(
    service: &SharedState,
    cookies: &Cookies<'_>,
    response: &mut Response,
) -> Result<(), Failure> {
    end_sessions_of(service, cookies).await?;
    cookies.remove(response, COOKIE);
    Ok(())
}

/// Ends the sessions of a browser, including one whose cookie has the name of an earlier version.
async fn end_sessions_of(service: &SharedState, cookies: &Cookies<'_>) -> Result<(), Failure> {
    let store = &page_parts(service)?.store;
    for secret in cookies.get_any(COOKIE) {
        store.close_session(session_digest(secret)).await?;
    }
    Ok(())
}

/// Redirects to a path.
pub(super) fn see_other(to: &str) -> Response {
    match HeaderValue::try_from(to) {
        Ok(to) => (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response(),
        Err(error) => Failure::internal(error).into_response(),
    }
}
