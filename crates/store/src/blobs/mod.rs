//! Large things kept beside the database, each whole or not there at all: in files, or in any store that
//! speaks S3. One trait, one suite that both pass (`tests/blobs.rs`).

mod attempt;
mod file;
mod s3;
mod transport;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

pub use attempt::AttemptBlob;
pub use file::FileBlobs;
pub use s3::{S3Blobs, S3Config};

/// One kind of blob by name. Names are ids of ours; anything else is refused as
/// [`io::ErrorKind::InvalidInput`]. Every answer has a deadline.
#[async_trait]
pub trait Blobs: Debug + Send + Sync + 'static {
    /// Replaces what was there. Whoever reads meanwhile gets the old one or the new one.
    async fn put(&self, name: &str, bytes: Vec<u8>) -> io::Result<()>;

    /// As [`Blobs::put`], from a file that is read in parts: memory does not grow with its size. The
    /// file may be gone afterwards. Awaited to its end, this leaves no part of a blob behind.
    async fn put_file(&self, name: &str, file: &Path) -> io::Result<()>;

    async fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Whether or not it was there.
    async fn remove(&self, name: &str) -> io::Result<()>;

    /// Removes what was written longer ago than `age` before `now`; returns how many.
    async fn remove_older(&self, age: Duration, now: SystemTime) -> io::Result<u64>;
}

fn check_name(name: &str) -> io::Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    Ok(())
}
