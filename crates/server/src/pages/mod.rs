//! The service as people see it: pages made by `plumbline_report::html`, served here.
//!
//! `door.rs` makes errors of page routes into pages, compresses, and sets the pages' headers; `session.rs`
//! knows who is signed in, `turn.rs` how often they may ask, and `renders.rs` how many pages are made at a
//! time. What a page needs beyond the API's store is [`Pages`].

mod assets;
mod compare;
mod cookies;
mod door;
mod form;
mod phases;
mod progress;
mod renders;
mod report;
mod session;
mod start;
mod turn;

use std::io;
use std::sync::Arc;

use axum::{
    Router,
    routing::{get, post},
};
use plumbline_store::{AttemptBlob, Blobs, PageStore, StoredReport};

pub(crate) use door::page_door;
pub use phases::Phases;
pub(crate) use renders::Renders;
pub(crate) use turn::guests_per_minute;

use crate::{errors::Failure, router::Shared};

/// What pages are made from.
#[derive(Clone)]
pub struct Pages {
    pub store: Arc<dyn PageStore>,
    /// Packed report media by attempt.
    pub media: Arc<dyn Blobs>,
    /// How far running audits are.
    pub phases: Phases,
}

/// Every page there is.
pub(crate) fn routes() -> Router<Shared> {
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
    /// None where they were not kept, or no longer; a failure where they cannot be reached.
    async fn media_of(&self, stored: &StoredReport) -> Result<Option<Vec<u8>>, Failure> {
        match AttemptBlob::from(stored).get(&*self.media).await {
            // No name of a blob: then there is none.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
            read => read.map_err(Failure::unavailable),
        }
    }
}

/// The pages' part of the service; their routes exist only where there is one.
fn of(service: &Shared) -> Result<&Pages, Failure> {
    service.app.pages.as_ref().ok_or(Failure::NotFound)
}
