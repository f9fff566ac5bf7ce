//! Input formats of traces and logs: plain or gzipped, with or without a byte order mark.

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::MultiGzDecoder;

use crate::TraceError;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Decodes the file as text. Invalid UTF-8 only affects the string it occurs in, not the whole
/// file.
pub(crate) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, TraceError> {
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok(String::from_utf8_lossy(without_mark(bytes)));
    }
    let mut plain = Vec::new();
    MultiGzDecoder::new(bytes)
        .read_to_end(&mut plain)
        .map_err(TraceError::Gzip)?;
    if plain.starts_with(BYTE_ORDER_MARK) {
        plain.drain(..BYTE_ORDER_MARK.len());
    }
    let text = String::from_utf8(plain)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(Cow::Owned(text))
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}
