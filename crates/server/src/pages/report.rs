//! Report pages, for their owners and for anyone with a shared link.

use std::error::Error;
use std::time::Duration;

use axum::{
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use plumbline_report::html::{self, PageFrame, PictureId, ReportPage, Sharing};
use plumbline_store::{Share, StoreError, StoredReport, random_text};

use super::form::Form;
use super::page_rate::Guest;
use super::parts as page_parts;
use super::session::{Visitor, see_other};
use crate::{
    api::{PathId, PathIds},
    errors::Failure,
    state::SharedState,
};

/// The length of a token, in letters and digits: 190 bits, which cannot be guessed.
const TOKEN_CHARS: usize = 32;
/// The longest validity of a link with an expiry.
const MAX_SHARED_DAYS: u32 = 366;

/// `GET /reports/{id}`: the report page for its owner.
pub(crate) async fn page(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let stored = service.app.store.report(&visitor.account_id, &id).await?;
    let stored = stored.ok_or(Failure::NotFound)?;
    let now = (service.app.clock)();
    let store = &page_parts(&service)?.store;
    let share = store.shared(&visitor.account_id, &id, now).await?;
    let sharing = match share {
        Some(share) => OwnedSharing::On {
            path: format!("/shared/{}", share.token),
            until_ms: share.expires_at.map(|until| until.0),
        },
        None => OwnedSharing::Off,
    };
    let path = format!("/reports/{id}");
    render(&service, stored, visitor.page_frame(), path, sharing).await
}

/// `GET /shared/{token}`: the report page for anyone with the link.
pub(crate) async fn shared(
    State(service): State<SharedState>,
    _guest: Guest,
    PathId(token): PathId,
) -> Result<Response, Failure> {
    let stored = shared_report(&service, &token).await?;
    let path = format!("/shared/{token}");
    let sharing = OwnedSharing::NotOwner;
    render(&service, stored, PageFrame::shared(), path, sharing).await
}

/// A [`Sharing`] that can be sent to another thread.
enum OwnedSharing {
    Off,
    On { path: String, until_ms: Option<i64> },
    NotOwner,
}

impl OwnedSharing {
    fn borrow(&self) -> Sharing<'_> {
        match self {
            Self::Off => Sharing::Off,
            Self::On { path, until_ms } => Sharing::On {
                path,
                until_ms: *until_ms,
            },
            Self::NotOwner => Sharing::NotOwner,
        }
    }
}

async fn render(
    service: &SharedState,
    stored: StoredReport,
    page_frame: PageFrame,
    path: String,
    sharing: OwnedSharing,
) -> Result<Response, Failure> {
    // The report is shown even if its report media cannot be reached.
    let (media, is_unreachable) = match page_parts(service)?.media_of(&stored).await {
        Ok(media) => (media, false),
        Err(error) => {
            let cause = error.source().map(ToString::to_string);
            tracing::warn!(
                audit = stored.audit_id,
                cause,
                "failed to read report media"
            );
            (None, true)
        }
    };
    let page = service.render_pool.page(move || {
        html::report_page(&ReportPage {
            is_unreachable,
            page_frame,
            audit_id: &stored.audit_id,
            created_at_ms: stored.created_at.0,
            report: &stored.report,
            media: media.as_deref(),
            path: &path,
            sharing: sharing.borrow(),
        })
    });
    Ok(page.await?.into_response())
}

/// Returns the report of a shared link that is valid.
async fn shared_report(service: &SharedState, token: &str) -> Result<StoredReport, Failure> {
    let now = (service.app.clock)();
    let stored = page_parts(service)?.store.shared_report(token, now).await?;
    stored.ok_or(Failure::NotFound)
}

/// `POST /reports/{id}/share` with `share=on` or `share=off`: starts or stops sharing a report.
/// The link expires after N days with `days=N`.
pub(crate) async fn share(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathId(id): PathId,
    mut form: Form,
) -> Result<Response, Failure> {
    let now = (service.app.clock)();
    let share = match form.take("share").as_str() {
        "on" => Some(Share {
            token: random_text(TOKEN_CHARS)
                .map_err(|error| Failure::internal(format!("no random source: {error}")))?,
            expires_at: parse_validity(&form.take("days"))?.map(|validity| now.plus(validity)),
        }),
        "off" => None,
        _ => return Err(Failure::InvalidBody),
    };
    let store = &page_parts(&service)?.store;
    match store.share(&visitor.account_id, &id, share, now).await {
        Ok(()) => Ok(see_other(&format!("/reports/{id}"))),
        Err(StoreError::NotFound(_)) => Err(Failure::NotFound),
        Err(error) => Err(error.into()),
    }
}

/// Parses the validity of a link; `None` means that it does not expire.
fn parse_validity(days: &str) -> Result<Option<Duration>, Failure> {
    if days.is_empty() {
        return Ok(None);
    }
    let days: Option<u32> = days.parse().ok();
    let days = days.filter(|days| (1..=MAX_SHARED_DAYS).contains(days));
    let days = days.ok_or(Failure::InvalidBody)?;
    Ok(Some(Duration::from_secs(24 * 60 * 60) * days))
}

/// `GET /reports/{id}/{picture}`: a picture of a report, for its owner.
pub(crate) async fn picture(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathIds((id, file)): PathIds,
) -> Result<Response, Failure> {
    let stored = service.app.store.report(&visitor.account_id, &id).await?;
    picture_response(&service, &stored.ok_or(Failure::NotFound)?, &file).await
}

/// `GET /shared/{token}/{picture}`: a picture of a shared report.
pub(crate) async fn shared_picture(
    State(service): State<SharedState>,
    _guest: Guest,
    PathIds((token, file)): PathIds,
) -> Result<Response, Failure> {
    let stored = shared_report(&service, &token).await?;
    picture_response(&service, &stored, &file).await
}

async fn picture_response(
    service: &SharedState,
    stored: &StoredReport,
    file: &str,
) -> Result<Response, Failure> {
    let id = PictureId::parse(file).ok_or(Failure::NotFound)?;
    let media = page_parts(service)?.media_of(stored).await?;
    let media = media.ok_or(Failure::NotFound)?;
    let picture = service.render_pool.run(move || html::picture(&media, id));
    let picture = picture.await?.map_err(Failure::internal)?;
    let (bytes, media_type) = picture.ok_or(Failure::NotFound)?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        // A report never changes; only the browser that may see it caches the picture, for an hour.
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, max-age=3600"),
        ),
    ];
    Ok((headers, bytes).into_response())
}
