//! Blobs in an S3-compatible store.

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
use object_store::{
    Error, GetOptions, GetRange, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    RetryConfig,
};
use tokio::task::spawn_blocking;

use super::transport::Transport;
use super::{BlobPart, Blobs, check_name};

/// The address of a bucket and its credentials. `Debug` does not print the credentials.
#[derive(Clone, Default)]
pub struct S3Config {
    pub bucket: String,
    /// The prefix of all names, with `/` between its parts.
    pub prefix: String,
    /// The endpoint; `None` is Amazon's for the region. Use `http://` only in a private network.
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

/// Maximum number of retries of a failed request, and their total time.
const MAX_RETRIES: usize = 3;
const MAX_RETRY_TIME: Duration = Duration::from_secs(20);
/// Size of the parts of larger blobs. S3 requires at least 5 MiB.
const PART_BYTES: usize = 8 * 1024 * 1024;

pub struct S3Blobs {
    store: Arc<AmazonS3>,
    /// The prefix of all names of this kind in the bucket.
    prefix: Path,
}

impl fmt::Debug for S3Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3 blobs below {}", self.prefix)
    }
}

impl S3Blobs {
    /// Opens the blobs of one kind, below `prefix/kind`, without connecting yet. Without keys, the
    /// credentials are those of the machine (web identity, container or instance role).
    pub fn open(config: &S3Config, kind: &str) -> io::Result<Self> {
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&config.bucket)
            .with_region(&config.region)
            .with_http_connector(Transport::new())
            .with_retry(RetryConfig {
                max_retries: MAX_RETRIES,
                retry_timeout: MAX_RETRY_TIME,
                ..RetryConfig::default()
            });
        if let Some(endpoint) = &config.endpoint {
            builder = builder
                .with_endpoint(endpoint)
                .with_allow_http(endpoint.starts_with("http://"));
        }
        if let Some(id) = &config.access_key_id {
            builder = builder.with_access_key_id(id);
        }
        if let Some(secret) = &config.secret_access_key {
            builder = builder.with_secret_access_key(secret);
        }
        if let Some(token) = &config.session_token {
            builder = builder.with_token(token);
        }
        let store = builder.build().map_err(failed)?;
        let parts = config.prefix.split('/').chain([kind]);
        Ok(Self {
            store: Arc::new(store),
            prefix: Path::from_iter(parts.filter(|part| !part.is_empty())),
        })
    }

    async fn get_range(&self, name: &str, range: Option<GetRange>) -> io::Result<Option<Vec<u8>>> {
        let options = GetOptions {
            range,
            ..GetOptions::default()
        };
        let object = match self.store.get_opts(&self.path(name)?, options).await {
            Ok(object) => object,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let bytes = object.bytes().await.map_err(failed)?;
        Ok(Some(bytes.into()))
    }

    fn path(&self, name: &str) -> io::Result<Path> {
        check_name(name)?;
        Ok(self.prefix.clone().join(format!("{name}.gz")))
    }
}

fn failed(error: Error) -> io::Error {
    io::Error::other(error)
}

/// Sends one part after the other, so that at most one is in memory.
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

/// Reads the next part of a file, and returns it with the file.
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
        let result = send_parts(&mut *upload, first, rest).await;
        if result.is_err()
            && let Err(error) = upload.abort().await
        {
            tracing::warn!(%error, "failed to remove the parts of an upload from the bucket");
        }
        result
    }

    async fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.get_range(name, None).await
    }

    async fn get_part(&self, name: &str, part: BlobPart) -> io::Result<Option<Vec<u8>>> {
        let range = match part {
            BlobPart::Range(range) => range,
            // Not every server that implements S3 supports ranges that begin at the end.
            BlobPart::Last(bytes) => match self.store.head(&self.path(name)?).await {
                Ok(blob) => blob.size.saturating_sub(bytes)..blob.size,
                Err(Error::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(failed(error)),
            },
        };
        self.get_range(name, Some(GetRange::Bounded(range))).await
    }

    async fn remove(&self, name: &str) -> io::Result<()> {
        match self.store.delete(&self.path(name)?).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    async fn remove_older(&self, age: Duration, now: SystemTime) -> io::Result<u64> {
        let is_old = move |blob: &ObjectMeta| {
            let modified = SystemTime::from(blob.last_modified);
            now.duration_since(modified).is_ok_and(|since| since > age)
        };
        let old = self
            .store
            .list(Some(&self.prefix))
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
    fn debug_output_contains_no_secret() {
        let config = S3Config {
            bucket: "audits".to_owned(),
            access_key_id: Some("AKID".to_owned()),
            secret_access_key: Some("hush".to_owned()),
            session_token: Some("psst".to_owned()),
            ..S3Config::default()
        };
        assert_eq!(format!("{config:?}"), "s3://audits/");
        let blobs = S3Blobs::open(&config, "bundles").unwrap();
        assert_eq!(format!("{blobs:?}"), "S3 blobs below bundles");
    }
}
