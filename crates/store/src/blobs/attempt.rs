use std::io;
use std::path::Path;

use super::Blobs;
use crate::{Lease, StoredReport};

/// One kind of blob of an audit. Each attempt keeps its own, under its own name: one that writes late, its lease long lost,
/// overwrites nothing. Which of them counts is decided with the report: the attempt that finished.
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

    /// Under the audit's name alone where there is none of the attempt: so they were kept before.
    pub async fn get(self, blobs: &dyn Blobs) -> io::Result<Option<Vec<u8>>> {
        match blobs.get(&self.name()).await? {
            Some(bytes) => Ok(Some(bytes)),
            None => blobs.get(self.audit_id).await,
        }
    }

    pub async fn remove(self, blobs: &dyn Blobs) -> io::Result<()> {
        blobs.remove(&self.name()).await
    }

    /// What attempts before this one left.
    pub async fn remove_earlier(self, blobs: &dyn Blobs) -> io::Result<()> {
        for attempt in 1..self.attempt {
            Self { attempt, ..self }.remove(blobs).await?;
        }
        Ok(())
    }

    /// What this attempt and those before it left. After the one that finished there is none.
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
