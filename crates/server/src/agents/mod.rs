//! Agents elsewhere: what they are told and what they hand in, over HTTP. `docs/agents.md` says the
//! same in words.
//!
//! [`Desk`] is what the agent inside this process uses as well; the rest turns requests into its
//! steps. Every step but the first names an attempt, and none is taken for an attempt that the
//! asker's token does not hold.

mod caller;
mod confirmation;
mod desk;
mod evidence;
mod places;
mod polls;
mod report_room;
mod roll;
mod steps;
mod uploads;

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    http::{HeaderName, HeaderValue},
    middleware::{self, Next},
    response::Response,
    routing::{get, post},
};
use plumbline_seam as seam;
use plumbline_store::AgentStore;

pub use desk::{Asker, Beside, DEFAULT_LEASE, Desk, DeskParts, EMBEDDED, TokenScope};
pub(crate) use evidence::UPLOAD_WITHIN;
pub(crate) use steps::{REPORT_WITHIN, WAIT_AT_MOST};
pub use uploads::Uploads;

use crate::{errors::Failure, router::Shared};

/// What agents elsewhere are served from.
#[derive(Clone)]
pub struct Agents {
    pub desk: Arc<Desk>,
    pub store: Arc<dyn AgentStore>,
    pub uploads: Uploads,
}

pub(crate) const EVIDENCE_ROUTE: &str = "/agent/v1/evidence/{id}/{attempt}/{kind}";

/// Every route for agents. They are no part of the public description: they are spoken by our own
/// program, at its own version, with a token that no client has.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route(seam::LEASE, post(steps::lease))
        .route(seam::HEARTBEAT, post(steps::heartbeat))
        .route(seam::PROGRESS, post(steps::progress))
        .route(seam::FINISH, post(steps::finish))
        .route(seam::RETURN, post(steps::give_back))
        .route(
            EVIDENCE_ROUTE,
            get(evidence::received).put(evidence::upload),
        )
        .layer(middleware::from_fn(speak))
}

/// Every answer says which protocol is spoken here, above all one that refuses another.
async fn speak(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert(
        HeaderName::from_static(seam::PROTOCOL_HEADER),
        HeaderValue::from(seam::PROTOCOL),
    );
    response
}

/// The agents' part of the service; their routes exist only where there is one.
fn of(service: &Shared) -> Result<&Agents, Failure> {
    service.app.agents.as_ref().ok_or(Failure::NotFound)
}
