//! The web pages, rendered by `plumbline_report::html`.
//!
//! `middleware.rs` turns failures of page requests into pages, compresses responses, and sets the
//! headers of pages. `session.rs` handles sign-in, and `page_rate.rs` limits the rate of requests.

mod assets;
mod compare;
mod cookies;
mod form;
mod middleware;
mod page_rate;
mod progress;
mod report;
mod session;
mod start;

use std::io;

use axum::{
    Router,
    routing::{get, post},
};
use plumbline_store::{AttemptBlob, StoredReport};

pub(crate) use middleware::process_response;

use crate::{
    app::Pages,
    errors::Failure,
    state::{ServiceState, SharedState},
};

/// The routes of all pages.
pub(crate) fn routes() -> Router<SharedState> {
    Router::new()
        .route("/", get(start::page))
        .route("/sign-in", post(session::sign_in))
        .route("/sign-out", post(session::sign_out))
        .route("/audits", post(start::start))
        .route("/audits/{id}", get(progress::page))
        .route("/audits/{id}/events", get(progress::events))
        .route("/reports/{id}", get(report::page))
        .route("/reports/{id}/share", post(report::share))
        .route("/reports/{id}/{picture}", get(report::picture))
        .route("/shared/{token}", get(report::shared))
        .route("/shared/{token}/{picture}", get(report::shared_picture))
        .route("/history", get(compare::history))
        .route("/compare", get(compare::compare))
        .route("/assets/{file}", get(assets::asset))
}

impl Pages {
    /// Returns the report media of a report, or `None` if there are none, or no longer. Fails if
    /// the storage cannot be reached.
    pub(crate) async fn media_of(&self, stored: &StoredReport) -> Result<Option<Vec<u8>>, Failure> {
        match AttemptBlob::from(stored).get(&*self.media).await {
            // The id is not a valid name of a blob, so there is none.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
            media => media.map_err(Failure::unavailable),
        }
    }
}

/// Returns the parts that serve pages; the routes exist only if there are any.
fn parts(service: &ServiceState) -> Result<&Pages, Failure> {
    service.app.pages.as_ref().ok_or(Failure::NotFound)
}
