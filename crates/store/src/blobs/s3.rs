//! Blobs in any store that speaks S3.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::task::spawn_blocking;

use super::transport::Transport;
use super::{Blobs, check_name};

/// Where a bucket is, and what opens it. Nothing of the secret is ever printed.
#[derive(Clone, Default)]
pub struct S3Config {
    pub bucket: String,
    /// What names begin with, `/` between its parts.
    pub prefix: String,
    /// None is Amazon's own for the region. `http://` is for a private network only.
    pub endpoint: Option<String>,
    pub region: String,
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<String>,
    pub session_token: Option<String>,
}

impl fmt::Debug for S3Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}

/// What is tried again within this is not told to anybody.
const RETRIES: usize = 3;
const RETRY_WITHIN: Duration = Duration::from_secs(20);
/// What is larger is sent in parts of this size. S3 wants 5 MiB or more.
const PART_BYTES: usize = 8 * 1024 * 1024;

pub struct S3Blobs {
    store: Arc<AmazonS3>,
    /// The part of the bucket that is ours.
    below: Path,
}

impl fmt::Debug for S3Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3 blobs below {}", self.below)
    }
}

impl S3Blobs {
    /// Blobs of one kind, below `prefix/kind`. Asks nobody yet; without keys, credentials are those of the
    /// machine (web identity, container or instance role).
    pub fn open(place: &S3Config, kind: &str) -> io::Result<Self> {
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&place.bucket)
            .with_region(&place.region)
            .with_http_connector(Transport::new())
            .with_retry(RetryConfig {
                max_retries: RETRIES,
                retry_timeout: RETRY_WITHIN,
                ..RetryConfig::default()
            });
        if let Some(endpoint) = &place.endpoint {
            builder = builder
                .with_endpoint(endpoint)
                .with_allow_http(endpoint.starts_with("http://"));
        }
        if let Some(id) = &place.access_key_id {
            builder = builder.with_access_key_id(id);
        }
        if let Some(secret) = &place.secret_access_key {
            builder = builder.with_secret_access_key(secret);
        }
        if let Some(token) = &place.session_token {
            builder = builder.with_token(token);
        }
        let store = builder.build().map_err(failed)?;
        let parts = place.prefix.split('/').chain([kind]);
        Ok(Self {
            store: Arc::new(store),
            below: Path::from_iter(parts.filter(|part| !part.is_empty())),
        })
    }

    fn path(&self, name: &str) -> io::Result<Path> {
        check_name(name)?;
        Ok(self.below.clone().join(format!("{name}.gz")))
    }
}

fn failed(error: Error) -> io::Error {
    io::Error::other(error)
}

/// One part after the other: no more than one is in memory.
async fn send_parts(
    upload: &mut dyn MultipartUpload,
    first: Vec<u8>,
    mut rest: File,
) -> io::Result<()> {
    let mut part = first;
    while !part.is_empty() {
        upload.put_part(part.into()).await.map_err(failed)?;
        (part, rest) = next_part(rest).await?;
    }
    upload.complete().await.map_err(failed)?;
    Ok(())
}

/// The next bytes of a file, as many as a part has unless it ends, and the rest of it.
async fn next_part(mut file: File) -> io::Result<(Vec<u8>, File)> {
    let read = move || {
        let mut part = Vec::with_capacity(PART_BYTES);
        let limit = PART_BYTES as u64;
        Read::by_ref(&mut file).take(limit).read_to_end(&mut part)?;
        Ok((part, file))
    };
    spawn_blocking(read).await?
}

#[async_trait]
impl Blobs for S3Blobs {
    async fn put(&self, name: &str, bytes: Vec<u8>) -> io::Result<()> {
        let path = self.path(name)?;
        self.store.put(&path, bytes.into()).await.map_err(failed)?;
        Ok(())
    }

    async fn put_file(&self, name: &str, file: &FilePath) -> io::Result<()> {
        let path = self.path(name)?;
        let file = file.to_owned();
        let file = spawn_blocking(move || File::open(file)).await??;
        let (first, rest) = next_part(file).await?;
        if first.len() < PART_BYTES {
            self.store.put(&path, first.into()).await.map_err(failed)?;
            return Ok(());
        }
        let mut upload = self.store.put_multipart(&path).await.map_err(failed)?;
        let sent = send_parts(&mut *upload, first, rest).await;
        if sent.is_err()
            && let Err(error) = upload.abort().await
        {
            tracing::warn!(%error, "parts of a blob stay in the bucket");
        }
        sent
    }

    async fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let found = match self.store.get(&self.path(name)?).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let bytes = found.bytes().await.map_err(failed)?;
        Ok(Some(bytes.into()))
    }

    async fn remove(&self, name: &str) -> io::Result<()> {
        match self.store.delete(&self.path(name)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    async fn remove_older(&self, age: Duration, now: SystemTime) -> io::Result<u64> {
        let is_old = move |blob: &ObjectMeta| {
            let written = SystemTime::from(blob.last_modified);
            now.duration_since(written).is_ok_and(|since| since > age)
        };
        let old = self
            .store
            .list(Some(&self.below))
            .try_filter_map(move |blob| async move { Ok(is_old(&blob).then_some(blob.location)) });
        let removed = self.store.delete_stream(old.boxed());
        let count = removed.try_fold(0, |count, _| async move { Ok(count + 1) });
        count.await.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_prints_no_secret() {
        let place = S3Config {
            bucket: "audits".to_owned(),
            access_key_id: Some("AKID".to_owned()),
            secret_access_key: Some("hush".to_owned()),
            session_token: Some("psst".to_owned()),
            ..S3Config::default()
        };
        assert_eq!(format!("{place:?}"), "s3://audits/");
        let blobs = S3Blobs::open(&place, "bundles").unwrap();
        assert_eq!(format!("{blobs:?}"), "S3 blobs below bundles");
    }
}
