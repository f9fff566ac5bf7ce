//! Evidence on its way: what has arrived of it, in files, until all of it has.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The next bytes of an upload must come within.
const SILENT_AT_MOST: Duration = Duration::from_secs(20);
/// What nobody has added to for so long belongs to nobody any more.
const KEPT_FOR: Duration = Duration::from_secs(60 * 60);
/// Written and read at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// How many finished uploads are checked and kept at a time: on its way to S3 each has a part of
/// 8 MB in memory.
const KEPT_AT_ONCE: usize = 8;

/// A directory of unfinished uploads.
#[derive(Debug, Clone)]
pub struct Uploads {
    dir: PathBuf,
    /// The largest that one may become.
    pub(crate) most_bytes: u64,
    keeping: Arc<Semaphore>,
}

/// Why nothing, or not all, was added to an upload.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    #[error("this is not where the upload goes on, or another adds to it")]
    Elsewhere,
    #[error("more than was announced")]
    TooLong,
    #[error("the sender broke off")]
    BrokenOff,
    #[error("what arrived is not what was sent")]
    Corrupt,
    #[error(transparent)]
    File(#[from] io::Error),
}

impl Uploads {
    /// Creates the directory, private to its owner.
    pub fn open(dir: &Path, most_bytes: u64) -> io::Result<Self> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            most_bytes,
            keeping: Arc::new(Semaphore::new(KEPT_AT_ONCE)),
        })
    }

    /// How much there is of an upload.
    pub(crate) async fn received(&self, name: &str) -> io::Result<u64> {
        let path = self.path(name)?;
        blocking(move || match std::fs::metadata(path) {
            Ok(about) => Ok(about.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        })
        .await
    }

    /// Adds what comes to what is there, from `offset` on, up to `total` bytes. What was added before
    /// a failure stays. Returns how much there is.
    pub(crate) async fn append(
        &self,
        name: &str,
        offset: u64,
        total: u64,
        mut body: Body,
    ) -> Result<u64, UploadError> {
        let path = self.path(name)?;
        let mut part = blocking(move || Part::open(&path, offset)).await?;
        loop {
            let frame = match timeout(SILENT_AT_MOST, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => break,
                Ok(Some(Err(_))) | Err(_) => {
                    part.flush().await?;
                    return Err(UploadError::BrokenOff);
                }
            };
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            if part.length() + bytes.len() as u64 > total {
                return Err(UploadError::TooLong);
            }
            part.add(bytes).await?;
        }
        part.flush().await
    }

    /// The whole of a finished upload, if it has this digest; one that has another is removed. Waits
    /// while too many others are being kept.
    pub(crate) async fn whole(&self, name: &str, sha256: [u8; 32]) -> Result<Whole, UploadError> {
        let turn = Arc::clone(&self.keeping).acquire_owned().await;
        let turn = turn.map_err(io::Error::other)?;
        let path = self.path(name)?;
        blocking(move || {
            let mut file = match File::open(&path) {
                // Another request has kept it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(UploadError::Elsewhere);
                }
                opened => opened?,
            };
            lock(&file)?;
            if digest(&mut file)? == sha256 {
                return Ok(Whole {
                    path,
                    _file: file,
                    _turn: turn,
                });
            }
            std::fs::remove_file(&path)?;
            Err(UploadError::Corrupt)
        })
        .await
    }

    pub(crate) async fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path(name)?;
        blocking(move || match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
        .await
    }

    /// Removes what is old, now and every hour.
    pub async fn sweep_by_itself(self) {
        let mut hour = tokio::time::interval(KEPT_FOR);
        loop {
            hour.tick().await;
            let uploads = self.clone();
            match spawn_blocking(move || uploads.sweep(SystemTime::now())).await {
                Ok(Ok(0)) => {}
                Ok(Ok(removed)) => tracing::info!(removed, "abandoned uploads are removed"),
                Ok(Err(error)) => tracing::warn!(%error, "uploads could not be removed"),
                Err(error) => tracing::warn!(%error, "uploads could not be removed"),
            }
        }
    }

    fn sweep(&self, now: SystemTime) -> io::Result<u64> {
        let mut removed = 0;
        for entry in std::fs::read_dir(&self.dir)? {
            let entry = entry?;
            let written = entry.metadata().and_then(|about| about.modified());
            let is_old = written.is_ok_and(|written| {
                now.duration_since(written)
                    .is_ok_and(|since| since > KEPT_FOR)
            });
            // Another process may have removed it first.
            removed += u64::from(is_old && std::fs::remove_file(entry.path()).is_ok());
        }
        Ok(removed)
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(self.dir.join(name).with_extension("part"))
    }
}

/// An upload that has arrived as it was sent. While this lives, nobody adds to it.
pub(crate) struct Whole {
    path: PathBuf,
    /// Locked.
    _file: File,
    _turn: OwnedSemaphorePermit,
}

impl Whole {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn lock(file: &File) -> Result<(), UploadError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(UploadError::Elsewhere),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// The SHA-256 of all that is left to read, which is read in pieces.
fn digest(file: &mut File) -> io::Result<[u8; 32]> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; CHUNK_BYTES]);
    loop {
        let length = match file.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if length == 0 {
            return Ok(hash.finalize().into());
        }
        hash.update(&piece[..length]);
    }
}

/// A file that one sender at a time adds to.
struct Part {
    file: Option<File>,
    written: u64,
    waiting: Vec<u8>,
}

impl Part {
    fn open(path: &Path, offset: u64) -> Result<Self, UploadError> {
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)?;
        lock(&file)?;
        if file.seek(SeekFrom::End(0))? != offset {
            return Err(UploadError::Elsewhere);
        }
        Ok(Self {
            file: Some(file),
            written: offset,
            waiting: Vec::new(),
        })
    }

    fn length(&self) -> u64 {
        self.written + self.waiting.len() as u64
    }

    async fn add(&mut self, bytes: Bytes) -> Result<(), UploadError> {
        self.waiting.extend_from_slice(&bytes);
        if self.waiting.len() >= CHUNK_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// How much there is.
    async fn flush(&mut self) -> Result<u64, UploadError> {
        let bytes = std::mem::take(&mut self.waiting);
        let Some(mut file) = self.file.take() else {
            return Err(io::Error::other("a write before this one failed").into());
        };
        let length = bytes.len() as u64;
        let write = move || file.write_all(&bytes).map(|()| file);
        self.file = Some(blocking(write).await?);
        self.written += length;
        Ok(self.written)
    }
}

impl Drop for Part {
    /// A connection that breaks ends its request wherever that is: what had arrived stays, or a line
    /// that breaks again and again would never get anything through.
    fn drop(&mut self) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&self.waiting)
        {
            tracing::warn!(%error, "the last bytes of an upload are not kept");
        }
    }
}

async fn blocking<T: Send + 'static, E: From<io::Error> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match spawn_blocking(work).await {
        Ok(done) => done,
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
    async fn an_upload_goes_on_where_it_was_broken_off_and_nowhere_else() {
        let (_dir, uploads) = uploads();
        assert_eq!(uploads.received("a").await.unwrap(), 0);
        let first = uploads.append("a", 0, 10, Body::from("01234")).await;
        assert_eq!(first.unwrap(), 5);
        for offset in [0, 4, 6] {
            let elsewhere = uploads.append("a", offset, 10, Body::from("x")).await;
            assert!(matches!(elsewhere, Err(UploadError::Elsewhere)), "{offset}");
        }
        assert_eq!(uploads.received("a").await.unwrap(), 5);
        let rest = uploads.append("a", 5, 10, Body::from("56789")).await;
        assert_eq!(rest.unwrap(), 10);
        let whole = uploads.whole("a", sha256(b"0123456789")).await.unwrap();
        assert_eq!(std::fs::read(whole.path()).unwrap(), b"0123456789");
        let more = uploads.append("a", 10, 10, Body::empty()).await;
        assert!(matches!(more, Err(UploadError::Elsewhere)), "being kept");
        drop(whole);
        uploads.remove("a").await.unwrap();
        uploads.remove("a").await.unwrap();
    }

    #[tokio::test]
    async fn more_than_was_announced_is_refused() {
        let (_dir, uploads) = uploads();
        let long = uploads.append("a", 0, 4, Body::from("01234")).await;
        assert!(matches!(long, Err(UploadError::TooLong)));
    }

    #[tokio::test]
    async fn what_arrived_wrong_is_thrown_away() {
        let (_dir, uploads) = uploads();
        uploads.append("a", 0, 3, Body::from("abc")).await.unwrap();
        let corrupt = uploads.whole("a", sha256(b"abd")).await;
        assert!(matches!(corrupt, Err(UploadError::Corrupt)));
        assert_eq!(uploads.received("a").await.unwrap(), 0);
    }

    #[tokio::test]
    async fn two_senders_do_not_mix() {
        let (_dir, uploads) = uploads();
        let path = uploads.path("a").unwrap();
        let _other = Part::open(&path, 0).unwrap_or_else(|error| panic!("{error}"));
        let second = uploads.append("a", 0, 4, Body::from("0123")).await;
        assert!(matches!(second, Err(UploadError::Elsewhere)));
    }

    #[tokio::test]
    async fn only_what_is_old_is_swept() {
        let (_dir, uploads) = uploads();
        uploads.append("a", 0, 3, Body::from("abc")).await.unwrap();
        let now = SystemTime::now();
        assert_eq!(uploads.sweep(now).unwrap(), 0);
        assert_eq!(uploads.sweep(now + 2 * KEPT_FOR).unwrap(), 1);
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
