//! The HTTP interface for agents on other machines, as documented in `docs/agents.md`.
//!
//! The handlers call the [`Dispatcher`](crate::Dispatcher), which the agent inside this process
//! uses as well. Every request but the first names an attempt, and is refused if the caller's token
//! does not hold that attempt.

mod caller;
mod evidence;
mod handlers;

use axum::{
    Router,
    extract::Request,
    http::{HeaderName, HeaderValue},
    middleware::{self, Next},
    response::Response,
    routing::{get, post},
};
use plumbline_seam as seam;

pub(crate) use evidence::UPLOAD_TIMEOUT;
pub(crate) use handlers::{MAX_WAIT, REPORT_TIMEOUT};

use crate::{
    app::Agents,
    errors::Failure,
    state::{ServiceState, SharedState},
};

pub(crate) const EVIDENCE_ROUTE: &str = "/agent/v1/evidence/{id}/{attempt}/{kind}";

/// The routes for agents. They are not part of the API's description: only Plumbline's own agents
/// use them, at their own protocol version, with tokens that no client has.
pub(crate) fn routes() -> Router<SharedState> {
    Router::new()
        .route(seam::LEASE, post(handlers::lease))
        .route(seam::HEARTBEAT, post(handlers::heartbeat))
        .route(seam::PROGRESS, post(handlers::progress))
        .route(seam::FINISH, post(handlers::finish))
        .route(seam::RETURN, post(handlers::release))
        .route(
            EVIDENCE_ROUTE,
            get(evidence::received).put(evidence::upload),
        )
        .layer(middleware::from_fn(add_protocol_header))
}

/// Adds the protocol version to every response, including one that refuses another version.
async fn add_protocol_header(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(
        HeaderName::from_static(seam::PROTOCOL_HEADER),
        HeaderValue::from(seam::PROTOCOL),
    );
    response
}

/// Returns the parts that serve agents; the routes exist only if there are any.
fn parts(service: &ServiceState) -> Result<&Agents, Failure> {
    service.app.agents.as_ref().ok_or(Failure::NotFound)
}
