//! Bodies of responses: decoded for reading and editing, and encoded again.

mod coding;

use bytes::Bytes;

use crate::{BodyChunk, MAX_BODY_BYTES, RecordedResponse};
pub(crate) use coding::{Coding, Effort};

/// The maximum size of a decoded body, which protects against compression bombs.
const MAX_DECODED_BYTES: u64 = 64 << 20;

/// The maximum size of all bodies that one operation on a recording decodes, as large as they may
/// be without compression. A recording of small compression bombs could take hours otherwise.
const MAX_ALL_DECODED_BYTES: u64 = MAX_BODY_BYTES;

/// The reason why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("the content encoding `{0}` is unknown")]
    UnknownCoding(String),
    #[error("the body does not agree with its content encoding: {0}")]
    Corrupt(String),
    #[error(
        "its content has more than {MAX_DECODED_BYTES} bytes, or all contents together too many"
    )]
    TooLarge,
}

/// Decodes bodies until they have [`MAX_ALL_DECODED_BYTES`]; all others are too large.
#[derive(Debug)]
pub(crate) struct Decoder {
    remaining_bytes: u64,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            remaining_bytes: MAX_ALL_DECODED_BYTES,
        }
    }
}

impl Decoder {
    /// Decodes the content encodings of a body.
    pub(crate) fn decode(&mut self, response: &RecordedResponse) -> Result<Bytes, BodyError> {
        let max_bytes = self.remaining_bytes.min(MAX_DECODED_BYTES);
        let mut decoded_bytes = 0;
        let result = response.decode(max_bytes, &mut decoded_bytes);
        self.remaining_bytes = self.remaining_bytes.saturating_sub(decoded_bytes);
        result
    }
}

/// A content that is put together from parts. It does not get larger than what can be decoded
/// again.
#[derive(Debug, Default)]
pub(crate) struct NewContent {
    bytes: Vec<u8>,
}

impl NewContent {
    /// Adds a part.
    pub(crate) fn push(&mut self, part: &[u8]) -> Result<(), BodyError> {
        let size = self.bytes.len().saturating_add(part.len());
        if size as u64 > MAX_DECODED_BYTES {
            return Err(BodyError::TooLarge);
        }
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    /// Returns all parts as one content.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

impl RecordedResponse {
    /// Returns the content encodings of the body, in the order in which they were applied.
    pub(crate) fn codings(&self) -> Result<Vec<Coding>, BodyError> {
        let values = self
            .headers
            .iter()
            .filter(|(name, _)| name == "content-encoding");
        let names = values.flat_map(|(_, value)| value.split(','));
        let names = names.map(|name| name.trim().to_ascii_lowercase());
        let names = names.filter(|name| !name.is_empty() && name != "identity");
        names
            .map(|name| Coding::parse(&name).ok_or(BodyError::UnknownCoding(name)))
            .collect()
    }

    /// Decodes the content encodings of the body.
    pub fn decoded_body(&self) -> Result<Bytes, BodyError> {
        self.decode(MAX_DECODED_BYTES, &mut 0)
    }

    /// Decodes the body, and adds to `decoded_bytes` how many bytes that made, also if it fails.
    fn decode(&self, max_bytes: u64, decoded_bytes: &mut u64) -> Result<Bytes, BodyError> {
        let mut content = self.body.clone();
        if content.is_empty() {
            return Ok(content);
        }
        let codings = self.codings()?;
        if codings.is_empty() {
            *decoded_bytes += content.len() as u64;
        }
        for coding in codings.iter().rev() {
            content = coding.decode(&content, max_bytes, decoded_bytes)?.into();
        }
        if content.len() as u64 > max_bytes {
            return Err(BodyError::TooLarge);
        }
        Ok(content)
    }

    /// Replaces the body by the encoded form of a content, with the same content encodings and as
    /// much effort as the sender of the old body made. An equal content leaves the body as it is.
    pub fn set_decoded_body(&mut self, content: &[u8]) -> Result<(), BodyError> {
        if content.len() as u64 > MAX_DECODED_BYTES {
            return Err(BodyError::TooLarge);
        }
        let codings = self.codings()?;
        let old_content = self.decoded_body()?;
        if old_content == content {
            return Ok(());
        }
        let mut body = content.to_vec();
        // The effort shows in the size only if there is one encoding, which is nearly always so.
        let effort = match codings[..] {
            [coding] => coding.effort(&old_content, self.body.len()),
            _ => Effort::default(),
        };
        for coding in codings {
            body = coding.encode(&body, effort);
        }
        self.set_body(body.into());
        Ok(())
    }

    /// Replaces the body as it is transferred. `content-length` is corrected, and the chunks come
    /// at the same times with sizes in proportion.
    pub fn set_body(&mut self, body: Bytes) {
        let bytes = body.len() as u64;
        for (name, value) in &mut self.headers {
            if name == "content-length" {
                *value = bytes.to_string();
            }
        }
        self.chunks = scaled(&self.chunks, bytes);
        self.body = body;
    }

    /// Replaces all headers of a name in lower case by one.
    pub(crate) fn set_header(&mut self, name: &str, value: &str) {
        let position = self.headers.iter().position(|(key, _)| key == name);
        self.remove_header(name);
        let position = position.unwrap_or(self.headers.len());
        let header = (name.to_owned(), value.to_owned());
        self.headers.insert(position, header);
    }

    /// Removes all headers of a name in lower case.
    pub(crate) fn remove_header(&mut self, name: &str) {
        self.headers.retain(|(key, _)| key != name);
    }

    /// Returns the media type in lower case, without parameters.
    pub(crate) fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        let media_type = value.split(';').next().unwrap_or_default();
        media_type.trim().to_ascii_lowercase()
    }
}

/// Scales the sizes of chunks so that they add up to a number of bytes. Chunks without bytes are
/// left out.
fn scaled(chunks: &[BodyChunk], bytes: u64) -> Vec<BodyChunk> {
    let old_total: u128 = chunks.iter().map(|chunk| u128::from(chunk.bytes)).sum();
    if bytes == 0 {
        return Vec::new();
    }
    if old_total == 0 {
        let after_ms = chunks.first().map_or(0.0, |chunk| chunk.after_ms);
        return vec![BodyChunk { after_ms, bytes }];
    }
    let mut old_end = 0_u128;
    let mut end = 0_u64;
    let mut result = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        old_end += u128::from(chunk.bytes);
        let start = end;
        // At most `bytes`, since `old_end` is at most `old_total`.
        end = (u128::from(bytes) * old_end / old_total) as u64;
        if end > start {
            result.push(BodyChunk {
                after_ms: chunk.after_ms,
                bytes: end - start,
            });
        }
    }
    result
}

#[cfg(test)]
mod tests;
