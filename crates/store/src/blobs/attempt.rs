use std::io;
use std::path::Path;

use super::{BlobPart, Blobs};
use crate::{Lease, StoredReport};

/// A blob of one attempt at an audit.
///
/// Each attempt has its own name, so that an attempt that writes after it lost its lease overwrites
/// nothing. The blob of the attempt that finished the audit is the valid one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptBlob<'a> {
    pub audit_id: &'a str,
    pub attempt: u32,
}

impl<'a> AttemptBlob<'a> {
    fn name(self) -> String {
        format!("{}-{}", self.audit_id, self.attempt)
    }

    pub async fn put(self, blobs: &dyn Blobs, bytes: Vec<u8>) -> io::Result<()> {
        blobs.put(&self.name(), bytes).await
    }

    pub async fn put_file(self, blobs: &dyn Blobs, file: &Path) -> io::Result<()> {
        blobs.put_file(&self.name(), file).await
    }

    /// Returns the blob of the attempt, or else the one under the audit's name alone, which earlier
    /// versions used.
    pub async fn get(self, blobs: &dyn Blobs) -> io::Result<Option<Vec<u8>>> {
        match blobs.get(&self.name()).await? {
            Some(bytes) => Ok(Some(bytes)),
            None => blobs.get(self.audit_id).await,
        }
    }

    /// Like [`AttemptBlob::get`], for a part of the blob.
    pub async fn get_part(self, blobs: &dyn Blobs, part: BlobPart) -> io::Result<Option<Vec<u8>>> {
        match blobs.get_part(&self.name(), part.clone()).await? {
            Some(bytes) => Ok(Some(bytes)),
            None => blobs.get_part(self.audit_id, part).await,
        }
    }

    pub async fn remove(self, blobs: &dyn Blobs) -> io::Result<()> {
        blobs.remove(&self.name()).await
    }

    /// Removes the blobs of earlier attempts.
    pub async fn remove_earlier(self, blobs: &dyn Blobs) -> io::Result<()> {
        for attempt in 1..self.attempt {
            Self { attempt, ..self }.remove(blobs).await?;
        }
        Ok(())
    }

    /// Removes the blobs of this attempt and of earlier ones. There is none after the attempt that
    /// finished.
    pub async fn remove_all(self, blobs: &dyn Blobs) -> io::Result<()> {
        self.remove(blobs).await?;
        self.remove_earlier(blobs).await?;
        blobs.remove(self.audit_id).await
    }
}

impl<'a> From<&'a Lease> for AttemptBlob<'a> {
    fn from(lease: &'a Lease) -> Self {
        Self {
            audit_id: &lease.audit_id,
            attempt: lease.attempt,
        }
    }
}

impl<'a> From<&'a StoredReport> for AttemptBlob<'a> {
    fn from(report: &'a StoredReport) -> Self {
        Self {
            audit_id: &report.audit_id,
            attempt: report.attempt,
        }
    }
}
