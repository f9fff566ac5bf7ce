//! Where evidence is kept beside the database: named by flags, opened here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumbline_store::{AttemptBlob, Blobs, FileBlobs, PurgedAudit, S3Blobs, S3Config};

use crate::args::BlobArgs;
use crate::exit::Exit;

/// What is kept beside the database, by attempt.
#[derive(Debug, Clone)]
pub struct KeptBlobs {
    /// The evidence.
    pub bundles: Arc<dyn Blobs>,
    /// What pages show beside a report.
    pub media: Arc<dyn Blobs>,
}

/// As `--blobs` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Files(PathBuf),
    S3 { bucket: String, prefix: String },
}

impl KeptBlobs {
    /// In the data directory unless told otherwise.
    pub fn open(args: &BlobArgs, data: &Path) -> Result<Self, Exit> {
        match place(args.blobs.as_deref(), data)? {
            Place::Files(dir) => {
                let open = |kind: &str| {
                    FileBlobs::open(&dir.join(kind))
                        .map_err(|error| Exit::failed(format!("{}: {error}", dir.display())))
                };
                Ok(Self {
                    bundles: Arc::new(open("bundles")?),
                    media: Arc::new(open("exhibits")?),
                })
            }
            Place::S3 { bucket, prefix } => {
                let place = s3(args, bucket, prefix);
                let open = |kind: &str| {
                    S3Blobs::open(&place, kind)
                        .map_err(|error| Exit::usage(format!("--blobs {place:?}: {error}")))
                };
                Ok(Self {
                    bundles: Arc::new(open("bundles")?),
                    media: Arc::new(open("exhibits")?),
                })
            }
        }
    }

    /// Fails where they cannot be reached: better at the start than with the first audit.
    pub async fn check(&self) -> Result<(), Exit> {
        let asked = self.bundles.get("nothing-is-called-this").await;
        asked
            .map(drop)
            .map_err(|error| Exit::failed(format!("the blobs cannot be reached: {error}")))
    }

    /// What stays behind after a failure here goes when it is old.
    pub async fn remove(&self, audit: &PurgedAudit) {
        let blob = AttemptBlob {
            audit_id: &audit.audit_id,
            attempt: audit.attempt,
        };
        for blobs in [&self.bundles, &self.media] {
            if let Err(error) = blob.remove_all(&**blobs).await {
                tracing::warn!(audit = audit.audit_id, %error, "a blob could not be removed");
            }
        }
    }
}

fn place(named: Option<&str>, data: &Path) -> Result<Place, Exit> {
    let Some(named) = named else {
        return Ok(Place::Files(data.to_owned()));
    };
    if let Some(dir) = named.strip_prefix("file:").filter(|dir| !dir.is_empty()) {
        return Ok(Place::Files(PathBuf::from(dir)));
    }
    if let Some(rest) = named.strip_prefix("s3://") {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !bucket.is_empty() {
            return Ok(Place::S3 {
                bucket: bucket.to_owned(),
                prefix: prefix.trim_matches('/').to_owned(),
            });
        }
    }
    Err(Exit::usage(format!(
        "--blobs {named}: say file:DIR or s3://BUCKET[/PREFIX]"
    )))
}

/// Secrets come from the environment only: arguments can be read by everybody on the machine.
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
    fn a_place_is_a_directory_or_a_bucket_and_anything_else_is_refused() {
        let data = Path::new("/data");
        let s3 = |bucket: &str, prefix: &str| Place::S3 {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        };
        for (named, expected) in [
            (None, Place::Files(data.to_owned())),
            (Some("file:/blobs"), Place::Files(PathBuf::from("/blobs"))),
            (Some("s3://audits"), s3("audits", "")),
            (Some("s3://audits/a/b/"), s3("audits", "a/b")),
        ] {
            assert_eq!(place(named, data).ok(), Some(expected), "{named:?}");
        }
        for wrong in ["", "file:", "s3://", "s3:///x", "/blobs", "gs://bucket"] {
            assert!(place(Some(wrong), data).is_err(), "{wrong}");
        }
    }
}
