//! Gzipped JSON, in which earlier versions stored bundles and report media, and which servers of
//! earlier versions still need.

use std::io::{BufWriter, Read};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{PackError, versioned_json};

const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Packs a value.
pub fn pack(value: &impl Serialize) -> Result<Vec<u8>, PackError> {
    // Packed as it is written: a trace as JSON in JSON is large, and need never be there whole.
    let packed = GzEncoder::new(Vec::new(), Compression::fast());
    let mut text = BufWriter::with_capacity(WRITE_BUFFER_BYTES, packed);
    serde_json::to_writer(&mut text, value).map_err(PackError::unreadable)?;
    let packed = text.into_inner().map_err(PackError::unreadable)?;
    packed.finish().map_err(PackError::unreadable)
}

/// Unpacks a value with a member `format` up to `supported`, and at most `max` bytes of text.
pub fn unpack<T: DeserializeOwned>(bytes: &[u8], supported: u32, max: u64) -> Result<T, PackError> {
    let mut text = Vec::new();
    GzDecoder::new(bytes)
        .take(max + 1)
        .read_to_end(&mut text)
        .map_err(PackError::unreadable)?;
    if text.len() as u64 > max {
        return Err(PackError::TooLarge { max });
    }
    versioned_json::parse(&text, supported)
}
