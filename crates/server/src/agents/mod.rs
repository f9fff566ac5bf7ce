//! The HTTP interface for agents on other machines, as documented in `docs/agents.md`.
//!
//! The handlers call the [`Dispatcher`](crate::Dispatcher), which the agent inside this process
//! uses as well. Every request but the first names an attempt, and is refused if the caller's token
//! does not hold that attempt.

mod caller;
mod evidence;
mod handlers;

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue},
    middleware::{self, Next},
    response::Response,
};
use plumbline_seam as seam;

use crate::{app::Agents, errors::Failure, routes::Routes, state::ServiceState};

const EVIDENCE_ROUTE: &str = "/agent/v1/evidence/{id}/{attempt}/{kind}";

/// The routes for agents. They are not part of the API's description: only Plumbline's own agents
/// use them, at their own protocol version, with tokens that no client has.
pub(crate) fn routes() -> Routes {
    let mut routes = Routes::default()
        .post(seam::LEASE, handlers::lease)
        .extra_time(handlers::MAX_WAIT)
        .post(seam::HEARTBEAT, handlers::heartbeat)
        .post(seam::PROGRESS, handlers::progress)
        .post(seam::RECORDING, handlers::recording)
        .post(seam::FINISH, handlers::finish)
        .extra_time(handlers::REPORT_TIMEOUT)
        .post(seam::RETURN, handlers::release)
        .get(EVIDENCE_ROUTE, evidence::received)
        .put(EVIDENCE_ROUTE, evidence::upload)
        .extra_time(evidence::UPLOAD_TIMEOUT);
    routes.router = routes
        .router
        .layer(middleware::from_fn(add_protocol_header));
    routes
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
