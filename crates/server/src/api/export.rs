//! Exports a report as a file for other tools.

use std::io;
use std::sync::Arc;

use axum::{
    body::Body,
    extract::FromRequestParts,
    http::{HeaderValue, header, request::Parts},
    response::{IntoResponse, Response},
};
use plumbline_report::{ExportError, Format, StoredAudit};
use plumbline_store::{AttemptBlob, StoredReport};
use tokio::task::spawn_blocking;
use url::form_urlencoded;

use crate::{
    errors::{Failure, InvalidValue},
    evidence_part::read_part,
    logo::Logo,
    query::Query,
    state::SharedState,
};

/// The parameter `format`, if it is given. An unknown format is an invalid value, like an unknown
/// device.
pub(crate) struct RequestedFormat(pub(crate) Option<Format>);

impl<S: Send + Sync> FromRequestParts<S> for RequestedFormat {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let query = parts.uri.query().unwrap_or_default();
        Query::parse(query).only(&["format"])?;
        let mut formats =
            form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "format");
        match (formats.next(), formats.next()) {
            (None, _) => Ok(Self(None)),
            (Some((_, name)), None) => Format::from_name(&name)
                .map(|format| Self(Some(format)))
                .ok_or_else(invalid_format),
            _ => Err(invalid_format()),
        }
    }
}

fn invalid_format() -> Failure {
    let names = Format::ALL.map(Format::name).join(", ");
    let reason = format!("The formats are {names}.");
    Failure::InvalidFormat(InvalidValue::new("format", reason))
}

/// Exports a report on a blocking thread.
pub(crate) async fn file(
    service: &SharedState,
    stored: StoredReport,
    format: Format,
) -> Result<Response, Failure> {
    let permit = if format.uses_evidence() || format.uses_media() {
        let permit = Arc::clone(&service.exports).acquire_owned().await;
        Some(permit.map_err(Failure::unavailable)?)
    } else {
        None
    };
    let bundle = match &service.app.bundles {
        Some(bundles) if format.uses_evidence() => {
            let parts = format.bundle_parts();
            let is_wanted = |name: &str| parts.contain(name);
            let bundle = read_part(AttemptBlob::from(&stored), &**bundles, is_wanted).await;
            bundle.map_err(read_failure)?
        }
        _ => None,
    };
    let use_media = format.uses_media() && !(format.uses_evidence() && bundle.is_some());
    let media = match &service.app.pages {
        Some(pages) if use_media => pages.media_part(&stored, |_| true).await?,
        _ => None,
    };
    let pages = service.app.pages.as_ref();
    let logo = pages.and_then(|pages| pages.logo.clone());
    let name = format!("{}.{}", stored.audit_id, format.extension());
    let exporting = spawn_blocking(move || {
        let exported = format.export_stored(&StoredAudit {
            report_json: &stored.report,
            bundle: bundle.as_deref(),
            media: media.as_deref(),
            made_at_ms: stored.created_at.0,
            logo: logo.as_deref().map(Logo::file),
        });
        // Held to the end of the work, even if the request was dropped.
        drop(permit);
        exported.map_err(|error| export_failure(error, format, &stored))
    });
    let bytes = exporting.await.map_err(Failure::internal)??;
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\""))
        .map_err(Failure::internal)?;
    let content_type = HeaderValue::from_static(format.content_type());
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, Body::from(bytes)).into_response())
}

fn read_failure(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::InvalidData {
        Failure::internal(error)
    } else {
        Failure::unavailable(error)
    }
}

fn export_failure(error: ExportError, format: Format, stored: &StoredReport) -> Failure {
    match error {
        ExportError::NoProfile => Failure::NotFound,
        ExportError::NoEvidence(_) | ExportError::NoScreenshots => Failure::NoEvidence,
        other => Failure::internal(format!("{} of {}: {other}", format.name(), stored.audit_id)),
    }
}
