//! Report pages, for their owners and for anyone with a shared link.

pub(super) mod replays;

use std::{error::Error, io};

use askama::Template;
use axum::{
    extract::State,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use plumbline_model::media::ReportMedia;
use plumbline_model::report::Report;
use plumbline_report::Format;
use plumbline_report::html::{self, PictureId, PictureSource, ReportPage};
use plumbline_store::{AttemptBlob, BlobPart, StoredReport};

use super::assets::LOGO_PATH;
use super::form::Form;
use super::frame::PageFrame;
use super::page_rate::Guest;
use super::parts as page_parts;
use super::session::{Visitor, see_other};
use super::sharing::{Origin, SharedLink, Sharing, parse_days};
use crate::{
    api::{PathId, PathIds, export::file as export_file},
    errors::Failure,
    replays as all_replays,
    share::{new_share, store_share},
    state::SharedState,
};
use replays::Choices;

/// `GET /reports/{id}`: the report page for its owner.
pub(crate) async fn page(
    State(service): State<SharedState>,
    visitor: Visitor,
    origin: Origin,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let stored = service.app.store.report(&visitor.account_id, &id).await?;
    let stored = stored.ok_or(Failure::NotFound)?;
    let now = (service.app.clock)();
    let store = &page_parts(&service)?.store;
    let share = store.shared(&visitor.account_id, &id, now).await?;
    let path = format!("/reports/{id}");
    let sharing = Sharing {
        action: format!("{path}/share"),
        fields: Vec::new(),
        link: share.map(|share| SharedLink::new(&origin, "/shared", &share)),
    };
    let frame = visitor.page_frame();
    render(&service, stored, frame, path, Reader::Owner(sharing)).await
}

/// `GET /shared/{token}`: the report page for anyone with the link.
pub(crate) async fn shared(
    State(service): State<SharedState>,
    _guest: Guest,
    PathId(token): PathId,
) -> Result<Response, Failure> {
    let stored = shared_report(&service, &token).await?;
    let path = format!("/shared/{token}");
    let mut page = render(&service, stored, PageFrame::Shared, path, Reader::Guest).await?;
    page.headers_mut().insert(ROBOTS_TAG, NO_INDEX);
    Ok(page)
}

/// The header that tells search engines what they may do with a response.
pub(super) const ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");
/// A shared link is for those who have it, and must not be found by searching.
pub(super) const NO_INDEX: HeaderValue = HeaderValue::from_static("noindex");

/// The reader of a report.
enum Reader {
    /// The owner, who can share the report.
    Owner(Sharing),
    /// Anyone with a shared link.
    Guest,
}

/// The actions that the reader of a report has, below its heading.
#[derive(Template)]
#[template(path = "report/actions.html")]
struct Actions<'a> {
    /// The path of the report page.
    path: &'a str,
    /// The formats that the report can be downloaded in.
    formats: Vec<Format>,
    /// Whether there is a summary to print.
    is_measured: bool,
    owner: Option<OwnerActions<'a>>,
}

/// Returns the formats that a report can be downloaded in. `has_evidence` is whether the evidence
/// of the audit is stored.
fn offered_formats(
    report: &Report,
    media: Option<&ReportMedia>,
    has_evidence: bool,
) -> Vec<Format> {
    let is_offered = |format: &Format| match format {
        Format::Profile => has_evidence && report.profile.is_some(),
        Format::Video => {
            media.is_some_and(|media| media.film.iter().any(|frame| frame.picture.is_some()))
        }
        format => has_evidence || !format.needs_evidence(),
    };
    Format::ALL.into_iter().filter(is_offered).collect()
}

/// The actions that only the owner of a report has.
struct OwnerActions<'a> {
    audit_id: &'a str,
    /// Whether the traffic of the visit was recorded.
    is_recorded: bool,
    /// Whether the visit was of a recording.
    is_replay: bool,
    sharing: &'a Sharing,
}

impl<'a> OwnerActions<'a> {
    fn new(stored: &'a StoredReport, sharing: &'a Sharing) -> Self {
        let options = &stored.order.options;
        Self {
            audit_id: &stored.audit_id,
            is_recorded: options.record,
            is_replay: options.replay.is_some(),
            sharing,
        }
    }
}

/// Returns the sentence about the credits of an audit that was not measured.
async fn refund_note(service: &SharedState, stored: &StoredReport) -> Result<String, Failure> {
    let store = &service.app.store;
    let status = store.status(&stored.account_id, &stored.tracking_id);
    let credits = status.await?.map_or(1, |status| status.runs);
    Ok(match credits {
        1 => "The credit for this audit was refunded.".to_owned(),
        credits => format!("The {credits} credits for this audit were refunded."),
    })
}

async fn render(
    service: &SharedState,
    stored: StoredReport,
    page_frame: PageFrame,
    path: String,
    reader: Reader,
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
    // Only what was recorded can be measured again.
    let is_recorded = stored.order.options.record;
    let (results, choices) = if is_recorded {
        let results = all_replays::results(service, &stored.account_id, &stored.audit_id).await?;
        (results, Choices::of(&service.app, &stored.order.device))
    } else {
        Default::default()
    };
    let failure_note = match stored.error {
        Some(_) => refund_note(service, &stored).await?,
        None => String::new(),
    };
    let has_evidence = has_evidence(service, &stored).await;
    let has_logo = page_parts(service)?.logo.is_some();
    let logo = has_logo.then_some(LOGO_PATH);
    let page = service.render_pool.page(move || {
        let report = Report::from_json(&stored.report)?;
        let media = media
            .as_deref()
            .map(ReportMedia::unpack_without_pictures)
            .transpose()?;
        let actions = Actions {
            path: &path,
            formats: offered_formats(&report, media.as_ref(), has_evidence),
            is_measured: report.error.is_none(),
            owner: match &reader {
                Reader::Owner(sharing) => Some(OwnerActions::new(&stored, sharing)),
                Reader::Guest => None,
            },
        };
        let actions = actions.render()?;
        let page = ReportPage {
            report: &report,
            media: media.as_ref(),
            is_unreachable,
            pictures: PictureSource::Linked(path.clone()),
            made_at_ms: Some(stored.created_at.0),
            logo,
            actions: &actions,
            failure_note: &failure_note,
            replays: {
                let is_owner = matches!(reader, Reader::Owner(_));
                let path = (is_recorded && is_owner).then_some(path.as_str());
                choices.with_results(&results, path)
            },
        };
        page_frame.wrap(&page.title(), &page.description(), &page.main()?)
    });
    Ok(page.await?.into_response())
}

/// Returns whether the evidence of an audit is stored. If the storage cannot be reached, it may be.
async fn has_evidence(service: &SharedState, stored: &StoredReport) -> bool {
    let Some(bundles) = &service.app.bundles else {
        return false;
    };
    let blob = AttemptBlob::from(stored);
    let last_byte = blob.get_part(&**bundles, BlobPart::Last(1)).await;
    last_byte.map_or_else(
        |error| error.kind() != io::ErrorKind::InvalidInput,
        |last_byte| last_byte.is_some(),
    )
}

/// `GET /reports/{id}/export/{format}`: the report as a file, for its owner.
pub(crate) async fn export(
    State(service): State<SharedState>,
    visitor: Visitor,
    PathIds((id, format)): PathIds,
) -> Result<Response, Failure> {
    let format = Format::from_name(&format).ok_or(Failure::NotFound)?;
    let stored = service.app.store.report(&visitor.account_id, &id).await?;
    export_file(&service, stored.ok_or(Failure::NotFound)?, format).await
}

/// `GET /shared/{token}/export/{format}`: the report as a file, for anyone with the link.
pub(crate) async fn shared_export(
    State(service): State<SharedState>,
    _guest: Guest,
    PathIds((token, format)): PathIds,
) -> Result<Response, Failure> {
    let format = Format::from_name(&format).ok_or(Failure::NotFound)?;
    let stored = shared_report(&service, &token).await?;
    let mut file = export_file(&service, stored, format).await?;
    file.headers_mut().insert(ROBOTS_TAG, NO_INDEX);
    Ok(file)
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
        "on" => Some(new_share(parse_days(&form.take("days"))?, now)?),
        "off" => None,
        _ => {
            return Err(Failure::InvalidBody(
                "`share` is neither `on` nor `off`.".into(),
            ));
        }
    };
    let pages = page_parts(&service)?;
    store_share(pages, &visitor.account_id, &id, share, now).await?;
    Ok(see_other(&format!("/reports/{id}")))
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

pub(super) async fn picture_response(
    service: &SharedState,
    stored: &StoredReport,
    file: &str,
) -> Result<Response, Failure> {
    let id = PictureId::from_name(file).ok_or(Failure::NotFound)?;
    let member = id.name();
    let media = page_parts(service)?
        .media_part(stored, |name| name == member)
        .await?;
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
