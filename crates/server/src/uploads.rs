//! Unfinished uploads of evidence, stored in files until they are complete.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::{Body, Bytes};
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long a sender may pause.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// An upload to which nothing was added for this long is abandoned.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);
/// The size of one read or write.
const CHUNK_BYTES: usize = 64 * 1024;
/// The number of complete uploads that are checked and stored concurrently: while it is sent to S3,
/// each has a part of 8 MB in memory.
const CONCURRENT_STORES: usize = 8;

/// A directory of unfinished uploads.
#[derive(Debug, Clone)]
pub struct Uploads {
    dir: PathBuf,
    /// The largest upload.
    pub(crate) max_bytes: u64,
    store_permits: Arc<Semaphore>,
}

/// The reasons why an upload was not extended or completed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    #[error("upload offset conflict, or another request is writing")]
    OffsetConflict,
    #[error("the upload is longer than announced")]
    TooLong,
    #[error("the sender stopped sending")]
    Interrupted,
    #[error("upload checksum mismatch")]
    Corrupt,
    #[error(transparent)]
    File(#[from] io::Error),
}

impl Uploads {
    /// Creates the directory if needed, accessible to its owner only.
    pub fn open(dir: &Path, max_bytes: u64) -> io::Result<Self> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            max_bytes,
            store_permits: Arc::new(Semaphore::new(CONCURRENT_STORES)),
        })
    }

    /// Returns the number of bytes that have arrived.
    pub(crate) async fn received(&self, name: &str) -> io::Result<u64> {
        let path = self.path(name)?;
        blocking(move || match std::fs::metadata(path) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        })
        .await
    }

    /// Appends the body to an upload that has `offset` bytes, up to `total` bytes, and returns the
    /// number of bytes that have arrived. What was appended before a failure is kept.
    pub(crate) async fn append(
        &self,
        name: &str,
        offset: u64,
        total: u64,
        mut body: Body,
    ) -> Result<u64, UploadError> {
        let path = self.path(name)?;
        let mut upload = blocking(move || PartialUpload::open(&path, offset)).await?;
        loop {
            let frame = match timeout(READ_TIMEOUT, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => break,
                Ok(Some(Err(_))) | Err(_) => {
                    upload.flush().await?;
                    return Err(UploadError::Interrupted);
                }
            };
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            if upload.length() + bytes.len() as u64 > total {
                return Err(UploadError::TooLong);
            }
            upload.add(bytes).await?;
        }
        upload.flush().await
    }

    /// Returns a complete upload if it has this digest, and removes it if it has another. Waits
    /// while too many others are being stored.
    pub(crate) async fn complete(
        &self,
        name: &str,
        sha256: [u8; 32],
    ) -> Result<CompleteUpload, UploadError> {
        let permit = Arc::clone(&self.store_permits).acquire_owned().await;
        let permit = permit.map_err(io::Error::other)?;
        let path = self.path(name)?;
        blocking(move || {
            let mut file = match File::open(&path) {
                // Another request has stored it in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(UploadError::OffsetConflict);
                }
                opened => opened?,
            };
            lock(&file)?;
            if digest(&mut file)? == sha256 {
                return Ok(CompleteUpload {
                    path,
                    _locked_file: file,
                    _permit: permit,
                });
            }
            std::fs::remove_file(&path)?;
            Err(UploadError::Corrupt)
        })
        .await
    }

    /// Removes an upload, if it exists.
    pub(crate) async fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path(name)?;
        blocking(move || match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
        .await
    }

    /// Removes abandoned uploads, now and every hour.
    pub fn sweep_periodically(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let mut interval = tokio::time::interval(ABANDONED_AFTER);
            loop {
                interval.tick().await;
                let uploads = self.clone();
                match spawn_blocking(move || uploads.sweep(SystemTime::now())).await {
                    Ok(Ok(0)) => {}
                    Ok(Ok(removed)) => tracing::info!(removed, "removed abandoned uploads"),
                    Ok(Err(error)) => tracing::warn!(%error, "failed to remove abandoned uploads"),
                    Err(error) => tracing::warn!(%error, "failed to remove abandoned uploads"),
                }
            }
        })
    }

    fn sweep(&self, now: SystemTime) -> io::Result<u64> {
        let mut removed = 0;
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let is_abandoned = modified.is_ok_and(|modified| {
                now.duration_since(modified)
                    .is_ok_and(|age| age > ABANDONED_AFTER)
            });
            // Another process may have removed it first.
            removed += u64::from(is_abandoned && std::fs::remove_file(entry.path()).is_ok());
        }
        Ok(removed)
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(self.dir.join(name).with_extension("part"))
    }
}

/// A complete upload. While this exists, no request can append to it.
pub(crate) struct CompleteUpload {
    path: PathBuf,
    _locked_file: File,
    _permit: OwnedSemaphorePermit,
}

impl CompleteUpload {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn lock(file: &File) -> Result<(), UploadError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(UploadError::OffsetConflict),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Computes the SHA-256 of the rest of a file, which is read in chunks.
fn digest(file: &mut File) -> io::Result<[u8; 32]> {
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; CHUNK_BYTES]);
    loop {
        let length = match file.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if length == 0 {
            return Ok(hash.finalize().into());
        }
        hash.update(&chunk[..length]);
    }
}

/// The file of an upload, locked for one request at a time.
struct PartialUpload {
    file: Option<File>,
    written: u64,
    buffer: Vec<u8>,
}

impl PartialUpload {
    fn open(path: &Path, offset: u64) -> Result<Self, UploadError> {
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)?;
        lock(&file)?;
        if file.seek(SeekFrom::End(0))? != offset {
            return Err(UploadError::OffsetConflict);
        }
        Ok(Self {
            file: Some(file),
            written: offset,
            buffer: Vec::new(),
        })
    }

    fn length(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    async fn add(&mut self, bytes: Bytes) -> Result<(), UploadError> {
        self.buffer.extend_from_slice(&bytes);
        if self.buffer.len() >= CHUNK_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Writes the buffer to the file, and returns the number of bytes that have arrived.
    async fn flush(&mut self) -> Result<u64, UploadError> {
        let bytes = std::mem::take(&mut self.buffer);
        let Some(mut file) = self.file.take() else {
            return Err(io::Error::other("an earlier write failed").into());
        };
        let length = bytes.len() as u64;
        let write = move || file.write_all(&bytes).map(|()| file);
        self.file = Some(blocking(write).await?);
        self.written += length;
        Ok(self.written)
    }
}

impl Drop for PartialUpload {
    /// Writes what has arrived. A broken connection drops its request at any point; if the buffer
    /// were lost, an upload over a connection that breaks repeatedly would never get ahead.
    fn drop(&mut self) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&self.buffer)
        {
            tracing::warn!(%error, "failed to write the last bytes of an upload");
        }
    }
}

async fn blocking<T: Send + 'static, E: From<io::Error> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(io::Error::other(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uploads() -> (tempfile::TempDir, Uploads) {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::open(&dir.path().join("uploads"), 1000).unwrap();
        (dir, uploads)
    }

    fn sha256(bytes: &[u8]) -> [u8; 32] {
        Sha256::digest(bytes).into()
    }

    #[tokio::test]
    async fn an_upload_continues_at_its_end_and_nowhere_else() {
        let (_dir, uploads) = uploads();
        assert_eq!(uploads.received("a").await.unwrap(), 0);
        let first = uploads.append("a", 0, 10, Body::from("01234")).await;
        assert_eq!(first.unwrap(), 5);
        for offset in [0, 4, 6] {
            let conflict = uploads.append("a", offset, 10, Body::from("x")).await;
            assert!(
                matches!(conflict, Err(UploadError::OffsetConflict)),
                "{offset}"
            );
        }
        assert_eq!(uploads.received("a").await.unwrap(), 5);
        let rest = uploads.append("a", 5, 10, Body::from("56789")).await;
        assert_eq!(rest.unwrap(), 10);
        let complete = uploads.complete("a", sha256(b"0123456789")).await.unwrap();
        assert_eq!(std::fs::read(complete.path()).unwrap(), b"0123456789");
        let more = uploads.append("a", 10, 10, Body::empty()).await;
        assert!(
            matches!(more, Err(UploadError::OffsetConflict)),
            "being stored"
        );
        drop(complete);
        uploads.remove("a").await.unwrap();
        uploads.remove("a").await.unwrap();
    }

    #[tokio::test]
    async fn an_upload_longer_than_announced_is_refused() {
        let (_dir, uploads) = uploads();
        let long = uploads.append("a", 0, 4, Body::from("01234")).await;
        assert!(matches!(long, Err(UploadError::TooLong)));
    }

    #[tokio::test]
    async fn a_corrupt_upload_is_removed() {
        let (_dir, uploads) = uploads();
        uploads.append("a", 0, 3, Body::from("abc")).await.unwrap();
        let corrupt = uploads.complete("a", sha256(b"abd")).await;
        assert!(matches!(corrupt, Err(UploadError::Corrupt)));
        assert_eq!(uploads.received("a").await.unwrap(), 0);
    }

    #[tokio::test]
    async fn two_requests_cannot_append_at_the_same_time() {
        let (_dir, uploads) = uploads();
        let path = uploads.path("a").unwrap();
        let _other = PartialUpload::open(&path, 0).unwrap_or_else(|error| panic!("{error}"));
        let second = uploads.append("a", 0, 4, Body::from("0123")).await;
        assert!(matches!(second, Err(UploadError::OffsetConflict)));
    }

    #[tokio::test]
    async fn only_abandoned_uploads_are_removed() {
        let (_dir, uploads) = uploads();
        uploads.append("a", 0, 3, Body::from("abc")).await.unwrap();
        let now = SystemTime::now();
        assert_eq!(uploads.sweep(now).unwrap(), 0);
        assert_eq!(uploads.sweep(now + 2 * ABANDONED_AFTER).unwrap(), 1);
        assert_eq!(uploads.received("a").await.unwrap(), 0);
    }

    #[tokio::test]
    async fn no_name_leads_out_of_the_directory() {
        let (_dir, uploads) = uploads();
        for name in ["", "..", "../x", "a/b", "a.b"] {
            assert!(uploads.received(name).await.is_err(), "{name:?}");
        }
    }
}
