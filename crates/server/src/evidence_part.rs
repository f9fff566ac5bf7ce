//! Reads parts of stored evidence.

use std::io;

use plumbline_bundle::container::{Index, Part, TAIL_BYTES};
use plumbline_bundle::{Bundle, BundleParts, PackError};
use plumbline_store::{AttemptBlob, BlobPart, Blobs};
use tokio::task::spawn_blocking;

/// Returns a container with the wanted members of a blob, of which only these are read. A blob in
/// the format of earlier versions is returned whole. Returns `None` if there is no blob, and
/// [`io::ErrorKind::InvalidData`] if its index is invalid.
pub(crate) async fn read_part(
    blob: AttemptBlob<'_>,
    blobs: &dyn Blobs,
    is_wanted: impl Fn(&str) -> bool + Send,
) -> io::Result<Option<Vec<u8>>> {
    let Some(tail) = blob
        .get_part(blobs, BlobPart::Last(TAIL_BYTES as u64))
        .await?
    else {
        return Ok(None);
    };
    let Some(index) = Index::from_tail(&tail).map_err(invalid_data)? else {
        return blob.get(blobs).await;
    };
    let part = Part::new(&index, is_wanted);
    let tail_start = index.container_bytes().checked_sub(tail.len() as u64);
    let tail_start = tail_start.ok_or(io::ErrorKind::InvalidData)?;
    let mut ranges = Vec::new();
    for range in part.ranges() {
        if range.start < tail_start {
            let start = range.start;
            let Some(bytes) = blob.get_part(blobs, BlobPart::Range(range)).await? else {
                return Ok(None);
            };
            ranges.push((start, bytes));
        }
    }
    ranges.push((tail_start, tail));
    let ranges: Vec<_> = ranges.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
    part.assemble(&ranges).map(Some).map_err(invalid_data)
}

/// Returns the packed recording in the evidence of an audit; `None` if there is none.
pub(crate) async fn read_recording(
    blob: AttemptBlob<'_>,
    blobs: &dyn Blobs,
) -> io::Result<Option<Vec<u8>>> {
    let parts = BundleParts::RECORDING;
    let Some(packed) = read_part(blob, blobs, |name| parts.contain(name)).await? else {
        return Ok(None);
    };
    let unpack = spawn_blocking(move || Bundle::unpack_parts(&packed, parts));
    let bundle = unpack.await.map_err(io::Error::other)?;
    Ok(bundle.map_err(invalid_data)?.recording)
}

fn invalid_data(error: PackError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
