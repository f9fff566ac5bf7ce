//! The web pages. Each page has a folder with its handlers, its template and the struct that fills
//! it; the report page takes its content from `plumbline_report::html`. `frame.rs` renders what is
//! around the content of all pages.
//!
//! `middleware.rs` turns failures of page requests into pages, compresses responses, and sets the
//! headers of pages. `session.rs` identifies signed-in users, and `page_rate.rs` limits the rate of
//! requests.

mod assets;
mod audit_list;
mod compare;
mod cookies;
mod form;
mod frame;
mod history;
mod middleware;
mod page_rate;
mod problem;
mod progress;
mod report;
mod session;
mod sign_in;
mod start;
#[cfg(test)]
mod testing;

use std::io;

use axum::{
    Router,
    routing::{get, post},
};
use plumbline_store::{AttemptBlob, StoredReport};

pub(crate) use assets::Asset;
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
        .route("/sign-in", post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/audits", post(start::start))
        .route("/audits/{id}", get(progress::page))
        .route("/audits/{id}/events", get(progress::events))
        .route("/reports/{id}", get(report::page))
        .route("/reports/{id}/share", post(report::share))
        .route("/reports/{id}/{picture}", get(report::picture))
        .route("/shared/{token}", get(report::shared))
        .route("/shared/{token}/{picture}", get(report::shared_picture))
        .route("/history", get(history::page))
        .route("/compare", get(compare::page))
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
