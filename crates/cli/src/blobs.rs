//! Opens the storage for evidence.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumbline_store::{AttemptBlob, Blobs, FileBlobs, PurgedAudit, S3Blobs, S3Config};

use crate::args::BlobArgs;
use crate::exit::Exit;

/// The evidence of audits, which is stored outside the database, by attempt.
#[derive(Debug, Clone)]
pub struct EvidenceBlobs {
    /// The bundles.
    pub bundles: Arc<dyn Blobs>,
    /// The report media, which report pages show.
    pub media: Arc<dyn Blobs>,
}

/// The value of `--blobs`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum BlobLocation {
    Files(PathBuf),
    S3 { bucket: String, prefix: String },
}

impl EvidenceBlobs {
    /// Opens the storage, by default in the data directory.
    pub fn open(args: &BlobArgs, data: &Path) -> Result<Self, Exit> {
        match location(args.blobs.as_deref(), data)? {
            BlobLocation::Files(dir) => {
                let open = |kind: &str| {
                    FileBlobs::open(&dir.join(kind))
                        .map_err(|error| Exit::failed(format!("{}: {error}", dir.display())))
                };
                Ok(Self {
                    bundles: Arc::new(open("bundles")?),
                    media: Arc::new(open("exhibits")?),
                })
            }
            BlobLocation::S3 { bucket, prefix } => {
                let config = s3(args, bucket, prefix);
                let open = |kind: &str| {
                    S3Blobs::open(&config, kind)
                        .map_err(|error| Exit::usage(format!("--blobs {config:?}: {error}")))
                };
                Ok(Self {
                    bundles: Arc::new(open("bundles")?),
                    media: Arc::new(open("exhibits")?),
                })
            }
        }
    }

    /// Checks that the storage is reachable, so that a server fails at its start and not at the
    /// first audit.
    pub async fn check(&self) -> Result<(), Exit> {
        let result = self.bundles.get("nothing-is-called-this").await;
        result.map(drop).map_err(|error| {
            Exit::failed(format!(
                "the storage for evidence is not reachable: {error}"
            ))
        })
    }

    /// Removes the evidence of an audit. What could not be removed is removed later because of its
    /// age.
    pub async fn remove(&self, audit: &PurgedAudit) {
        let blob = AttemptBlob {
            audit_id: &audit.audit_id,
            attempt: audit.attempt,
        };
        for blobs in [&self.bundles, &self.media] {
            if let Err(error) = blob.remove_all(&**blobs).await {
                tracing::warn!(audit = audit.audit_id, %error, "failed to remove evidence");
            }
        }
    }
}

fn location(text: Option<&str>, data: &Path) -> Result<BlobLocation, Exit> {
    let Some(text) = text else {
        return Ok(BlobLocation::Files(data.to_owned()));
    };
    if let Some(dir) = text.strip_prefix("file:").filter(|dir| !dir.is_empty()) {
        return Ok(BlobLocation::Files(PathBuf::from(dir)));
    }
    if let Some(rest) = text.strip_prefix("s3://") {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !bucket.is_empty() {
            return Ok(BlobLocation::S3 {
                bucket: bucket.to_owned(),
                prefix: prefix.trim_matches('/').to_owned(),
            });
        }
    }
    Err(Exit::usage(format!(
        "--blobs {text}: expected file:DIR or s3://BUCKET[/PREFIX]"
    )))
}

/// Returns the configuration of a bucket. Secrets are read from the environment only, because all
/// users of the machine can see arguments.
fn s3(args: &BlobArgs, bucket: String, prefix: String) -> S3Config {
    let secret = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    S3Config {
        bucket,
        prefix,
        endpoint: args.s3_endpoint.clone(),
        region: args
            .s3_region
            .clone()
            .unwrap_or_else(|| "us-east-1".to_owned()),
        access_key_id: secret("AWS_ACCESS_KEY_ID"),
        secret_access_key: secret("AWS_SECRET_ACCESS_KEY"),
        session_token: secret("AWS_SESSION_TOKEN"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_a_directory_or_a_bucket_and_anything_else_is_refused() {
        let data = Path::new("/data");
        let s3 = |bucket: &str, prefix: &str| BlobLocation::S3 {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        };
        for (text, expected) in [
            (None, BlobLocation::Files(data.to_owned())),
            (
                Some("file:/blobs"),
                BlobLocation::Files(PathBuf::from("/blobs")),
            ),
            (Some("s3://audits"), s3("audits", "")),
            (Some("s3://audits/a/b/"), s3("audits", "a/b")),
        ] {
            assert_eq!(location(text, data).ok(), Some(expected), "{text:?}");
        }
        for wrong in ["", "file:", "s3://", "s3:///x", "/blobs", "gs://bucket"] {
            assert!(location(Some(wrong), data).is_err(), "{wrong}");
        }
    }
}
