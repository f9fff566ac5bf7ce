//! The serialization of exhibits: gzipped JSON, like a bundle.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Deserialize;

use super::{Exhibits, FORMAT};

#[derive(Debug, thiserror::Error)]
pub enum ExhibitsError {
    #[error("not exhibits: {0}")]
    Unreadable(String),
    #[error("the exhibits have format {found}; this version reads up to {FORMAT}")]
    Newer { found: u32 },
    #[error("the exhibits unpack to more than {MAX_BYTES} bytes")]
    TooLarge,
}

/// The maximum unpacked size; a thousand requests and every picture stay far below.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
struct Header {
    format: u32,
}

impl Exhibits {
    pub fn pack(&self) -> Result<Vec<u8>, ExhibitsError> {
        let text =
            serde_json::to_vec(self).map_err(|e| ExhibitsError::Unreadable(e.to_string()))?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        let unreadable = |e: std::io::Error| ExhibitsError::Unreadable(e.to_string());
        packed.write_all(&text).map_err(unreadable)?;
        packed.finish().map_err(unreadable)
    }

    pub fn unpack(bytes: &[u8]) -> Result<Self, ExhibitsError> {
        let mut text = Vec::new();
        GzDecoder::new(bytes)
            .take(MAX_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(|e| ExhibitsError::Unreadable(e.to_string()))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(ExhibitsError::TooLarge);
        }
        let unreadable = |e: serde_json::Error| ExhibitsError::Unreadable(e.to_string());
        let header: Header = serde_json::from_slice(&text).map_err(unreadable)?;
        if header.format > FORMAT {
            return Err(ExhibitsError::Newer {
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
    fn packed_exhibits_unpack_and_other_bytes_are_rejected() {
        let exhibits = Exhibits {
            format: FORMAT,
            end_ms: 1234.5,
            ..Exhibits::default()
        };
        let packed = exhibits.pack().unwrap();
        assert_eq!(Exhibits::unpack(&packed).unwrap(), exhibits);
        assert!(matches!(
            Exhibits::unpack(&packed[..20]),
            Err(ExhibitsError::Unreadable(_))
        ));
        let newer = Exhibits {
            format: FORMAT + 1,
            ..Exhibits::default()
        };
        assert!(matches!(
            Exhibits::unpack(&newer.pack().unwrap()),
            Err(ExhibitsError::Newer { .. })
        ));
    }
}
