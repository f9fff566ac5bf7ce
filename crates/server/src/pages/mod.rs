//! The web pages. Each page has a folder with its handlers, its template and the struct that fills
//! it; the report page takes its content from `plumbline_report::html`. `frame.rs` renders what is
//! around the content of all pages.
//!
//! `middleware.rs` turns failures of page requests into pages, compresses responses, and sets the
//! headers of pages. `session.rs` identifies signed-in users, and `page_rate.rs` limits the rate of
//! requests.

mod again;
mod assets;
mod audit_list;
mod audits;
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
mod shared_page;
mod sharing;
mod sign_in;
mod start;
#[cfg(test)]
mod testing;

use std::io;

use axum::{
    Router,
    routing::{get, post},
};
use plumbline_model::media::ReportMedia;
use plumbline_store::{AttemptBlob, StoredReport};

pub(crate) use assets::Asset;
pub(crate) use middleware::process_response;
pub(crate) use sharing::Origin;

use crate::{
    app::Pages,
    errors::Failure,
    evidence_part::read_part,
    state::{ServiceState, SharedState},
};

/// The routes of all pages.
pub(crate) fn routes() -> Router<SharedState> {
    Router::new()
        .route("/", get(start::page))
        .route("/sign-in", post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/audits", get(audits::page).post(start::start))
        .route("/audits/{id}", get(progress::page))
        .route("/audits/{id}/events", get(progress::events))
        .route("/audits/{id}/cancel", post(progress::cancel))
        .route("/reports/{id}", get(report::page))
        .route("/reports/{id}/again", post(again::start))
        .route("/reports/{id}/share", post(report::share))
        .route(
            "/reports/{id}/experiments",
            post(report::replays::experiment),
        )
        .route(
            "/reports/{id}/third-parties",
            post(report::replays::price_list),
        )
        .route("/reports/{id}/matrix", post(report::replays::matrix))
        .route("/reports/{id}/recording", get(report::replays::recording))
        .route("/reports/{id}/export/{format}", get(report::export))
        .route("/reports/{id}/{picture}", get(report::picture))
        .route("/shared/{token}", get(report::shared))
        .route(
            "/shared/{token}/export/{format}",
            get(report::shared_export),
        )
        .route("/shared/{token}/{picture}", get(report::shared_picture))
        .route("/history", get(history::page))
        .route("/history/share", post(shared_page::share_history))
        .route("/compare", get(compare::page))
        .route("/compare/share", post(shared_page::share_comparison))
        .route("/shared-pages/{token}", get(shared_page::page))
        .route(
            "/shared-pages/{token}/before/{picture}",
            get(shared_page::picture_before),
        )
        .route(
            "/shared-pages/{token}/after/{picture}",
            get(shared_page::picture_after),
        )
        .route("/assets/{file}", get(assets::asset))
        .route("/favicon.ico", get(assets::favicon))
        .route(assets::LOGO_PATH, get(assets::logo))
}

impl Pages {
    /// Returns the report media of a report without pictures, or `None` if there are none, or no
    /// longer. Fails if the storage cannot be reached.
    async fn media_of(&self, stored: &StoredReport) -> Result<Option<Vec<u8>>, Failure> {
        self.media_part(stored, ReportMedia::is_page_member).await
    }

    /// Returns some members of the report media of a report, like [`Pages::media_of`].
    pub(crate) async fn media_part(
        &self,
        stored: &StoredReport,
        is_wanted: impl Fn(&str) -> bool + Send,
    ) -> Result<Option<Vec<u8>>, Failure> {
        match read_part(AttemptBlob::from(stored), &*self.media, is_wanted).await {
            // The id is not a valid name of a blob, so there is none.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(Failure::internal(error))
            }
            media => media.map_err(Failure::unavailable),
        }
    }
}

/// Returns the parts that serve pages; the routes exist only if there are any.
fn parts(service: &ServiceState) -> Result<&Pages, Failure> {
    service.app.pages.as_ref().ok_or(Failure::NotFound)
}
