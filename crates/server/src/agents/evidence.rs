//! Uploads of evidence: one request if nothing goes wrong, resumable otherwise.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::{
    extract::{Path, Request, State},
    response::Response,
};
use plumbline_seam::{Evidence, LeaseState, UploadStatus};

use super::{caller::AgentCaller, parts};
use crate::{
    envelope,
    errors::Failure,
    query::Query,
    state::SharedState,
    uploads::{UploadError, Uploads},
};

/// How long one request may take; a connection that needs longer continues in the next.
pub(super) const UPLOAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The largest upload of report media. Unpacked they may not be larger either: a page view holds
/// them in memory.
const MEDIA_BYTES: u64 = 64 * 1024 * 1024;

type UploadPath = Path<(String, u32, String)>;

/// `GET /agent/v1/evidence/{id}/{attempt}/{kind}`: the offset at which to continue.
pub(crate) async fn received(
    State(service): State<SharedState>,
    caller: AgentCaller,
    Path((tracking_id, attempt, kind)): UploadPath,
) -> Result<Response, Failure> {
    let kind = Evidence::from_name(&kind).ok_or(Failure::NotFound)?;
    let lease = caller.lease(&service, &tracking_id, attempt).await?;
    if lease.is_none() {
        return Ok(lost_response());
    }
    let name = upload_name(&tracking_id, attempt, kind);
    let received = parts(&service)?.uploads.received(&name).await;
    let received = received.map_err(storage_failure)?;
    Ok(received_response(received, false))
}

/// `PUT /agent/v1/evidence/{id}/{attempt}/{kind}?offset=…&bytes=…&sha256=…`
///
/// An upload is complete, and stored, when `bytes` bytes with this digest have arrived.
pub(crate) async fn upload(
    State(service): State<SharedState>,
    caller: AgentCaller,
    Path((tracking_id, attempt, kind)): UploadPath,
    query: Query,
    request: Request,
) -> Result<Response, Failure> {
    let kind = Evidence::from_name(&kind).ok_or(Failure::NotFound)?;
    let number = |name| -> Result<u64, Failure> {
        query.required(name, "must be a whole number", |text| text.parse().ok())
    };
    let offset = number("offset")?;
    let total = number("bytes")?;
    let sha256 = query.required("sha256", "must be a digest in hex", parse_digest)?;
    let agents = parts(&service)?;
    let uploads = &agents.uploads;
    if total > max_bytes(uploads, kind) {
        return Err(Failure::BodyTooLarge);
    }
    let lease = caller.lease(&service, &tracking_id, attempt).await?;
    if lease.is_none() {
        return Ok(lost_response());
    }
    let name = upload_name(&tracking_id, attempt, kind);
    let appended = uploads
        .append(&name, offset, total, request.into_body())
        .await;
    let received = match appended {
        Ok(received) => received,
        Err(error) => return Err(remove_if_full(uploads, &name, upload_failure(error)).await),
    };
    if received < total {
        return Ok(received_response(received, false));
    }
    let upload = uploads.complete(&name, sha256).await;
    let upload = upload.map_err(upload_failure)?;
    // The lease may have been lost while the upload arrived.
    let Some(lease) = caller.lease(&service, &tracking_id, attempt).await? else {
        remove(uploads, &name).await;
        return Ok(lost_response());
    };
    // Storing is finished even if the agent no longer waits: nothing partial stays in a bucket.
    let dispatcher = Arc::clone(&agents.dispatcher);
    let storing = tokio::spawn(async move {
        dispatcher
            .store_evidence_file(&lease, kind, upload.path())
            .await
    });
    let state = match storing.await.map_err(Failure::internal)? {
        Ok(state) => state,
        Err(error) => return Err(remove_if_full(uploads, &name, storage_failure(error)).await),
    };
    remove(uploads, &name).await;
    Ok(match state {
        LeaseState::Held => received_response(total, true),
        LeaseState::Lost => lost_response(),
    })
}

/// Removes an upload that failed because the disk is full: its sender does not continue, and the
/// partial file would only keep the disk full.
async fn remove_if_full(uploads: &Uploads, name: &str, failure: Failure) -> Failure {
    if matches!(failure, Failure::StorageFull(_)) {
        remove(uploads, name).await;
    }
    failure
}

async fn remove(uploads: &Uploads, name: &str) {
    if let Err(error) = uploads.remove(name).await {
        tracing::warn!(%error, "failed to remove an upload; it is removed once it is old");
    }
}

/// The largest upload of this kind.
fn max_bytes(uploads: &Uploads, kind: Evidence) -> u64 {
    match kind {
        Evidence::Bundle => uploads.max_bytes,
        Evidence::ReportMedia => uploads.max_bytes.min(MEDIA_BYTES),
    }
}

fn upload_name(tracking_id: &str, attempt: u32, kind: Evidence) -> String {
    format!("{tracking_id}-{attempt}-{}", kind.as_str())
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    hex::decode_to_slice(text, &mut digest).ok()?;
    Some(digest)
}

fn received_response(received: u64, complete: bool) -> Response {
    envelope::data(UploadStatus {
        lease: LeaseState::Held,
        received,
        complete,
    })
}

fn lost_response() -> Response {
    envelope::data(UploadStatus {
        lease: LeaseState::Lost,
        received: 0,
        complete: false,
    })
}

fn upload_failure(error: UploadError) -> Failure {
    match error {
        UploadError::OffsetConflict => Failure::UploadConflict,
        UploadError::TooLong => Failure::BodyTooLarge,
        UploadError::Interrupted => Failure::BodyTooSlow,
        UploadError::Corrupt => Failure::CorruptUpload,
        UploadError::File(error) => storage_failure(error),
    }
}

/// Converts an error of the file system. A full disk has a failure of its own, because the agent
/// can then continue without its evidence.
fn storage_failure(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Failure::StorageFull(error.into())
        }
        io::ErrorKind::InvalidInput => Failure::NotFound,
        _ => Failure::internal(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_are_limited_more_strictly_than_bundles() {
        let dir = tempfile::tempdir().unwrap();
        let limit = |bytes, kind| max_bytes(&Uploads::open(dir.path(), bytes).unwrap(), kind);
        assert_eq!(limit(1 << 30, Evidence::Bundle), 1 << 30);
        assert_eq!(limit(1 << 30, Evidence::ReportMedia), MEDIA_BYTES);
        assert_eq!(limit(10, Evidence::ReportMedia), 10);
    }

    #[test]
    fn a_digest_has_sixty_four_digits() {
        let hex = "00ff".repeat(16);
        assert_eq!(parse_digest(&hex).unwrap()[..2], [0, 255]);
        for wrong in [
            "",
            "00",
            &"0g".repeat(32),
            &"é".repeat(32),
            &"+1".repeat(32),
        ] {
            assert_eq!(parse_digest(wrong), None, "{wrong}");
        }
    }
}
