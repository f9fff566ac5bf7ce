//! A report as a file that other tools open.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::FromRequestParts,
    http::{HeaderValue, header, request::Parts},
    response::{IntoResponse, Response},
};
use plumbline_report::{ExportError, Format, StoredAudit};
use plumbline_store::{AttemptBlob, StoredReport};
use tokio::{sync::Semaphore, task::spawn_blocking};
use url::form_urlencoded;

use crate::{errors::Failure, router::Shared};

/// How many files are made of evidence at a time: each may hold a whole bundle in memory, packed and
/// unpacked. Who waits longer than an answer may take is told so.
const AT_A_TIME: usize = 1;

pub(crate) struct Turns(Arc<Semaphore>);

impl Default for Turns {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
    }
}

/// `?format=…`: none where it is not asked for. What is no format is an invalid value, like a device
/// that there is not.
pub(crate) struct Wanted(pub(crate) Option<Format>);

impl<S: Send + Sync> FromRequestParts<S> for Wanted {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let query = parts.uri.query().unwrap_or_default();
        let mut asked =
            form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "format");
        match (asked.next(), asked.next()) {
            (None, _) => Ok(Self(None)),
            (Some((_, name)), None) => Format::from_name(&name)
                .map(|format| Self(Some(format)))
                .ok_or(Failure::InvalidFormat),
            _ => Err(Failure::InvalidFormat),
        }
    }
}

/// Unpacks and renders away from the threads that answer others.
pub(crate) async fn file(
    service: &Shared,
    stored: StoredReport,
    format: Format,
) -> Result<Response, Failure> {
    let (turn, bundle) = match &service.app.bundles {
        Some(bundles) if format.uses_evidence() => {
            let turn = Arc::clone(&service.exports.0).acquire_owned().await;
            let turn = turn.map_err(Failure::unavailable)?;
            let bundle = AttemptBlob::from(&stored).get(&**bundles).await;
            (Some(turn), bundle.map_err(Failure::unavailable)?)
        }
        _ => (None, None),
    };
    let name = format!("{}.{}", stored.audit_id, format.extension());
    let made = spawn_blocking(move || {
        let made = make(bundle.as_deref(), &stored, format);
        // Held to the end of the work, even when nobody waits for it any more.
        drop(turn);
        made
    });
    let bytes = made.await.map_err(Failure::internal)??;
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\""))
        .map_err(Failure::internal)?;
    let content_type = HeaderValue::from_static(format.content_type());
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, Body::from(bytes)).into_response())
}

fn make(bundle: Option<&[u8]>, stored: &StoredReport, format: Format) -> Result<Vec<u8>, Failure> {
    let made = format.export_stored(&StoredAudit {
        report_json: &stored.report,
        bundle,
        made_at_ms: stored.created_at.0,
    });
    made.map_err(|error| match error {
        ExportError::NoEvidence(_) => Failure::NoEvidence,
        other => Failure::internal(format!("{} of {}: {other}", format.name(), stored.audit_id)),
    })
}
