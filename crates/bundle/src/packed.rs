//! Serializes bundles as gzipped JSON, which common tools can read.

use std::io::{BufWriter, Read};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Deserialize;

use crate::{Bundle, FORMAT};

#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("not a bundle: {0}")]
    Unreadable(String),
    #[error("the bundle has format {found}; this version reads up to {FORMAT}")]
    Newer { found: u32 },
    #[error("the bundle unpacks to more than {MAX_BYTES} bytes")]
    TooLarge,
}

/// Maximum unpacked size: far above the limits of a visit, far below the memory of a host.
const MAX_BYTES: u64 = 1 << 30;

const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// The format version, parsed first so that a newer format is reported instead of misread.
#[derive(Deserialize)]
struct FormatVersion {
    format: u32,
}

impl Bundle {
    pub fn pack(&self) -> Result<Vec<u8>, BundleError> {
        let unreadable = |error: &dyn std::error::Error| BundleError::Unreadable(error.to_string());
        // Packed as it is written: a trace as JSON in JSON is large, and need never be there whole.
        let packed = GzEncoder::new(Vec::new(), Compression::fast());
        let mut text = BufWriter::with_capacity(WRITE_BUFFER_BYTES, packed);
        serde_json::to_writer(&mut text, self).map_err(|error| unreadable(&error))?;
        let packed = text.into_inner().map_err(|error| unreadable(&error))?;
        packed.finish().map_err(|error| unreadable(&error))
    }

    pub fn unpack(bytes: &[u8]) -> Result<Self, BundleError> {
        let mut text = Vec::new();
        GzDecoder::new(bytes)
            .take(MAX_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(|error| BundleError::Unreadable(error.to_string()))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(BundleError::TooLarge);
        }
        let unreadable = |error: serde_json::Error| BundleError::Unreadable(error.to_string());
        let version: FormatVersion = serde_json::from_slice(&text).map_err(unreadable)?;
        if version.format > FORMAT {
            return Err(BundleError::Newer {
                found: version.format,
            });
        }
        serde_json::from_slice(&text).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BrowserIdentity, MainDocument};

    fn bundle() -> Bundle {
        Bundle {
            format: FORMAT,
            requested_url: "https://example.com/".to_owned(),
            final_url: "https://example.com/".to_owned(),
            document: MainDocument::default(),
            browser: BrowserIdentity::default(),
            trace: b"{\"traceEvents\":[]}".to_vec(),
            log: b"[]".to_vec(),
            screenshot: None,
            artifacts: Default::default(),
            warnings: Vec::new(),
            timings: Vec::new(),
        }
    }

    #[test]
    fn a_packed_bundle_unpacks_unchanged() {
        let packed = bundle().pack().unwrap();
        let unpacked = Bundle::unpack(&packed).unwrap();
        assert_eq!(unpacked.trace, bundle().trace);
        assert_eq!(unpacked.pack().unwrap(), packed);
    }

    #[test]
    fn a_newer_format_is_reported() {
        let newer = Bundle {
            format: FORMAT + 1,
            ..bundle()
        };
        let error = Bundle::unpack(&newer.pack().unwrap()).unwrap_err();
        assert!(matches!(error, BundleError::Newer { found } if found == FORMAT + 1));
    }

    #[test]
    fn other_bytes_are_rejected() {
        for bytes in [&b""[..], b"{}", &bundle().pack().unwrap()[..40]] {
            assert!(matches!(
                Bundle::unpack(bytes),
                Err(BundleError::Unreadable(_))
            ));
        }
    }
}
