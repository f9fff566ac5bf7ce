//! Uploads of evidence: in one request where nothing goes wrong, and gone on with where it did.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::{
    extract::{Path, Request, State},
    response::Response,
};
use plumbline_seam::{Evidence, LeaseState, UploadStatus};
use plumbline_store::Hold as Kept;

use super::{
    caller::AgentCaller,
    uploads::{UploadError, Uploads},
};
use crate::{answer, errors::Failure, query::Query, router::Shared};

/// For one request; a line that needs longer goes on in the next.
pub(crate) const UPLOAD_WITHIN: Duration = Duration::from_secs(10 * 60);

/// Unpacked they may not have more: a page view holds them in memory.
const MEDIA_BYTES: u64 = 64 * 1024 * 1024;

type Named = Path<(String, u32, String)>;

/// `GET /agent/v1/evidence/{id}/{attempt}/{kind}`: where to go on.
pub(crate) async fn received(
    State(service): State<Shared>,
    caller: AgentCaller,
    Path((tracking_id, attempt, kind)): Named,
) -> Result<Response, Failure> {
    let kind = Evidence::from_name(&kind).ok_or(Failure::NotFound)?;
    if caller
        .held(&service, &tracking_id, attempt)
        .await?
        .is_none()
    {
        return Ok(lost());
    }
    let name = name(&tracking_id, attempt, kind);
    let received = super::of(&service)?.uploads.received(&name).await;
    let received = received.map_err(unkept)?;
    Ok(answered(received, false))
}

/// `PUT /agent/v1/evidence/{id}/{attempt}/{kind}?offset=…&bytes=…&sha256=…`
///
/// Complete when `bytes` have arrived from the beginning and have this digest: then they are kept.
pub(crate) async fn upload(
    State(service): State<Shared>,
    caller: AgentCaller,
    Path((tracking_id, attempt, kind)): Named,
    query: Query,
    request: Request,
) -> Result<Response, Failure> {
    let kind = Evidence::from_name(&kind).ok_or(Failure::NotFound)?;
    let number = |name, called| -> Result<u64, Failure> {
        let given = query.get(name, called, |text| text.parse().ok())?;
        given.ok_or(Failure::InvalidParameter(called))
    };
    let offset = number("offset", "Offset")?;
    let total = number("bytes", "Bytes")?;
    let sha256 = query
        .get("sha256", "Sha256", digest)?
        .ok_or(Failure::InvalidParameter("Sha256"))?;
    let agents = super::of(&service)?;
    let uploads = &agents.uploads;
    if total > most_bytes(uploads, kind) {
        return Err(Failure::BodyTooLarge);
    }
    if caller
        .held(&service, &tracking_id, attempt)
        .await?
        .is_none()
    {
        return Ok(lost());
    }
    let name = name(&tracking_id, attempt, kind);
    let appended = uploads.append(&name, offset, total, request.into_body());
    let received = match appended.await {
        Ok(received) => received,
        Err(error) => return Err(without_room(uploads, &name, refused(error)).await),
    };
    if received < total {
        return Ok(answered(received, false));
    }
    let whole = uploads.whole(&name, sha256).await.map_err(refused)?;
    // Much may have happened while it came.
    let Some(lease) = caller.held(&service, &tracking_id, attempt).await? else {
        remove(uploads, &name).await;
        return Ok(lost());
    };
    // To its end, even when the agent no longer waits: nothing half kept stays in a bucket.
    let desk = Arc::clone(&agents.desk);
    let kept = tokio::spawn(async move { desk.keep_file(&lease, kind, whole.path()).await });
    let hold = match kept.await.map_err(Failure::internal)? {
        Ok(hold) => hold,
        Err(error) => return Err(without_room(uploads, &name, unkept(error)).await),
    };
    remove(uploads, &name).await;
    Ok(match hold {
        Kept::Held => answered(total, true),
        Kept::Lost => lost(),
    })
}

/// Who is told that there is no room does not go on: what has arrived would only keep the disk full.
async fn without_room(uploads: &Uploads, name: &str, failure: Failure) -> Failure {
    if matches!(failure, Failure::NoRoom(_)) {
        remove(uploads, name).await;
    }
    failure
}

async fn remove(uploads: &Uploads, name: &str) {
    if let Err(error) = uploads.remove(name).await {
        tracing::warn!(%error, "an upload could not be removed, and goes when it is old");
    }
}

/// How large an upload of this kind may be.
fn most_bytes(uploads: &Uploads, kind: Evidence) -> u64 {
    match kind {
        Evidence::Bundle => uploads.most_bytes,
        Evidence::ReportMedia => uploads.most_bytes.min(MEDIA_BYTES),
    }
}

fn name(tracking_id: &str, attempt: u32, kind: Evidence) -> String {
    format!("{tracking_id}-{attempt}-{}", kind.as_str())
}

fn digest(hex: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

fn answered(received: u64, complete: bool) -> Response {
    answer::data(UploadStatus {
        lease: LeaseState::Held,
        received,
        complete,
    })
}

fn lost() -> Response {
    answer::data(UploadStatus {
        lease: LeaseState::Lost,
        received: 0,
        complete: false,
    })
}

fn refused(error: UploadError) -> Failure {
    match error {
        UploadError::Elsewhere => Failure::UploadElsewhere,
        UploadError::TooLong => Failure::BodyTooLarge,
        UploadError::BrokenOff => Failure::BodyTooSlow,
        UploadError::Corrupt => Failure::CorruptUpload,
        UploadError::File(error) => unkept(error),
    }
}

/// A full disk is told apart: whoever uploads may go on without its evidence.
fn unkept(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Failure::NoRoom(error.into()),
        io::ErrorKind::InvalidInput => Failure::NotFound,
        _ => Failure::internal(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_may_not_be_as_large_as_a_bundle() {
        let dir = tempfile::tempdir().unwrap();
        let at_most = |bytes, kind| most_bytes(&Uploads::open(dir.path(), bytes).unwrap(), kind);
        assert_eq!(at_most(1 << 30, Evidence::Bundle), 1 << 30);
        assert_eq!(at_most(1 << 30, Evidence::ReportMedia), MEDIA_BYTES);
        assert_eq!(at_most(10, Evidence::ReportMedia), 10);
    }

    #[test]
    fn a_digest_has_sixty_four_digits() {
        let hex = "00ff".repeat(16);
        assert_eq!(digest(&hex).unwrap()[..2], [0, 255]);
        for wrong in [
            "",
            "00",
            &"0g".repeat(32),
            &"é".repeat(32),
            &"+1".repeat(32),
        ] {
            assert_eq!(digest(wrong), None, "{wrong}");
        }
    }
}
