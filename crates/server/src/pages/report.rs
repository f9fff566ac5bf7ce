//! Reports, for their owners and for whoever has a link.

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
use super::of;
use super::session::{Visitor, see_other};
use super::turn::Guest;
use crate::{
    api::{PathId, PathIds},
    errors::Failure,
    router::Shared,
};

/// Letters and digits, 62 kinds each: 190 bits, which nobody guesses.
const TOKEN_CHARS: usize = 32;
/// A link that is to be valid for longer has no end.
const SHARED_DAYS_AT_MOST: u32 = 366;

/// `GET /reports/{id}`
pub(crate) async fn page(
    State(service): State<Shared>,
    visitor: Visitor,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let found = service.app.store.report(&visitor.account_id, &id).await?;
    let stored = found.ok_or(Failure::NotFound)?;
    let now = (service.app.clock)();
    let shared = of(&service)?.store.shared(&visitor.account_id, &id, now);
    let sharing = match shared.await? {
        Some(share) => OwnedSharing::On {
            path: format!("/shared/{}", share.token),
            until_ms: share.expires_at.map(|until| until.0),
        },
        None => OwnedSharing::Off,
    };
    let path = format!("/reports/{id}");
    render(&service, stored, visitor.page_frame(), path, sharing).await
}

/// `GET /shared/{token}`
pub(crate) async fn shared(
    State(service): State<Shared>,
    _guest: Guest,
    PathId(token): PathId,
) -> Result<Response, Failure> {
    let stored = opened_by(&service, &token).await?;
    let path = format!("/shared/{token}");
    let sharing = OwnedSharing::NotOwner;
    render(&service, stored, PageFrame::shared(), path, sharing).await
}

/// A [`Sharing`] that can be taken to another thread.
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
    service: &Shared,
    stored: StoredReport,
    page_frame: PageFrame,
    path: String,
    sharing: OwnedSharing,
) -> Result<Response, Failure> {
    // The report is there even while what is kept beside it is not to be had.
    let (media, is_unreachable) = match of(service)?.media_of(&stored).await {
        Ok(media) => (media, false),
        Err(error) => {
            let cause = error.source().map(ToString::to_string);
            tracing::warn!(
                audit = stored.audit_id,
                cause,
                "report media cannot be reached"
            );
            (None, true)
        }
    };
    let page = service.renders.page(move || {
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

/// The report that a link opens, while it does.
async fn opened_by(service: &Shared, token: &str) -> Result<StoredReport, Failure> {
    let now = (service.app.clock)();
    let found = of(service)?.store.shared_report(token, now).await?;
    found.ok_or(Failure::NotFound)
}

/// `POST /reports/{id}/share` with `share=on` or `share=off`; with `days=N` the link ends by itself.
pub(crate) async fn share(
    State(service): State<Shared>,
    visitor: Visitor,
    PathId(id): PathId,
    mut form: Form,
) -> Result<Response, Failure> {
    let now = (service.app.clock)();
    let share = match form.take("share").as_str() {
        "on" => Some(Share {
            token: random_text(TOKEN_CHARS)
                .map_err(|error| Failure::internal(format!("no random source: {error}")))?,
            expires_at: lasting(&form.take("days"))?.map(|lasts| now.plus(lasts)),
        }),
        "off" => None,
        _ => return Err(Failure::InvalidBody),
    };
    let store = &of(&service)?.store;
    match store.share(&visitor.account_id, &id, share, now).await {
        Ok(()) => Ok(see_other(&format!("/reports/{id}"))),
        Err(StoreError::NotFound(_)) => Err(Failure::NotFound),
        Err(error) => Err(error.into()),
    }
}

/// How long a link is to be valid; `None` is without an end.
fn lasting(days: &str) -> Result<Option<Duration>, Failure> {
    if days.is_empty() {
        return Ok(None);
    }
    let days: Option<u32> = days.parse().ok();
    let days = days.filter(|days| (1..=SHARED_DAYS_AT_MOST).contains(days));
    let days = days.ok_or(Failure::InvalidBody)?;
    Ok(Some(Duration::from_secs(24 * 60 * 60) * days))
}

/// `GET /reports/{id}/{picture}`
pub(crate) async fn picture(
    State(service): State<Shared>,
    visitor: Visitor,
    PathIds((id, file)): PathIds,
) -> Result<Response, Failure> {
    let found = service.app.store.report(&visitor.account_id, &id).await?;
    show(&service, &found.ok_or(Failure::NotFound)?, &file).await
}

/// `GET /shared/{token}/{picture}`
pub(crate) async fn shared_picture(
    State(service): State<Shared>,
    _guest: Guest,
    PathIds((token, file)): PathIds,
) -> Result<Response, Failure> {
    show(&service, &opened_by(&service, &token).await?, &file).await
}

async fn show(service: &Shared, stored: &StoredReport, file: &str) -> Result<Response, Failure> {
    let id = PictureId::parse(file).ok_or(Failure::NotFound)?;
    let media = of(service)?.media_of(stored).await?;
    let media = media.ok_or(Failure::NotFound)?;
    let picture = service.renders.run(move || html::picture(&media, id));
    let picture = picture.await?.map_err(Failure::internal)?;
    let (bytes, media_type) = picture.ok_or(Failure::NotFound)?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        // A report never changes; only the one browser that may see it keeps a copy, for an hour.
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, max-age=3600"),
        ),
    ];
    Ok((headers, bytes).into_response())
}
