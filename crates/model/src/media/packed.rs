//! The serialization of report media: gzipped JSON, like a bundle.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Deserialize;

use super::{FORMAT, ReportMedia};

#[derive(Debug, thiserror::Error)]
pub enum ReportMediaError {
    #[error("not report media: {0}")]
    Unreadable(String),
    #[error("the report media have format {found}; this version reads up to {FORMAT}")]
    Newer { found: u32 },
    #[error("the report media unpack to more than {MAX_BYTES} bytes")]
    TooLarge,
}

/// The maximum unpacked size; a thousand requests and every picture stay far below.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
struct Header {
    format: u32,
}

impl ReportMedia {
    pub fn pack(&self) -> Result<Vec<u8>, ReportMediaError> {
        let text =
            serde_json::to_vec(self).map_err(|e| ReportMediaError::Unreadable(e.to_string()))?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        let unreadable = |e: std::io::Error| ReportMediaError::Unreadable(e.to_string());
        packed.write_all(&text).map_err(unreadable)?;
        packed.finish().map_err(unreadable)
    }

    pub fn unpack(bytes: &[u8]) -> Result<Self, ReportMediaError> {
        let mut text = Vec::new();
        GzDecoder::new(bytes)
            .take(MAX_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(|e| ReportMediaError::Unreadable(e.to_string()))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(ReportMediaError::TooLarge);
        }
        let unreadable = |e: serde_json::Error| ReportMediaError::Unreadable(e.to_string());
        let header: Header = serde_json::from_slice(&text).map_err(unreadable)?;
        if header.format > FORMAT {
            return Err(ReportMediaError::Newer {
                found: header.format,
            });
        }
        serde_json::from_slice(&text).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_media_unpack_and_other_bytes_are_rejected() {
        let media = ReportMedia {
            format: FORMAT,
            end_ms: 1234.5,
            ..ReportMedia::default()
        };
        let packed = media.pack().unwrap();
        assert_eq!(ReportMedia::unpack(&packed).unwrap(), media);
        assert!(matches!(
            ReportMedia::unpack(&packed[..20]),
            Err(ReportMediaError::Unreadable(_))
        ));
        let newer = ReportMedia {
            format: FORMAT + 1,
            ..ReportMedia::default()
        };
        assert!(matches!(
            ReportMedia::unpack(&newer.pack().unwrap()),
            Err(ReportMediaError::Newer { .. })
        ));
    }
}
