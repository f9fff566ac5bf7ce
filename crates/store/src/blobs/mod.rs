//! Storage of large objects outside the database, in files or in an S3-compatible store. Both pass
//! one suite of tests (`tests/store/blobs.rs`).

mod attempt;
mod file;
mod s3;
mod transport;

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

pub use attempt::AttemptBlob;
pub use file::FileBlobs;
pub use s3::{S3Blobs, S3Config};

/// Blobs of one kind by name. Names must be ids; others are refused as
/// [`io::ErrorKind::InvalidInput`]. Every operation has a deadline.
#[async_trait]
pub trait Blobs: Debug + Send + Sync + 'static {
    /// Stores a blob in place of an earlier one. Concurrent readers get the old one or the new one.
    async fn put(&self, name: &str, bytes: Vec<u8>) -> io::Result<()>;

    /// Like [`Blobs::put`], from a file that is read in parts, so that memory does not grow with
    /// its size. The file may be moved. If the future is awaited to its end, no part of a blob is
    /// left behind.
    async fn put_file(&self, name: &str, file: &Path) -> io::Result<()>;

    async fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Returns a part of a blob without reading the rest. It is shorter if the blob is.
    async fn get_part(&self, name: &str, part: BlobPart) -> io::Result<Option<Vec<u8>>>;

    /// Removes a blob, if it exists.
    async fn remove(&self, name: &str) -> io::Result<()>;

    /// Removes the blobs that at `now` are older than `age`, and returns their number.
    async fn remove_older(&self, age: Duration, now: SystemTime) -> io::Result<u64>;
}

/// A part of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobPart {
    /// The bytes at these positions, at least one.
    Range(Range<u64>),
    /// The last bytes, at most this number and at least one.
    Last(u64),
}

fn check_name(name: &str) -> io::Result<()> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(is_allowed) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    Ok(())
}
