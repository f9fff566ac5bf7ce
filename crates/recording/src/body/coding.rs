//! Content encodings (RFC 9110, 8.4).

use std::io::{self, Cursor, Read, Write};

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::read::{DeflateDecoder, GzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};

use super::BodyError;

/// A content encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// The effort of an encoder, as a position in [`Coding::levels`]; `None` stands for the usual one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Effort(pub(super) Option<usize>);

/// The largest window of zstd that browsers accept, as a power of two (RFC 9659).
const ZSTD_WINDOW_LOG: u32 = 23;

/// The largest content that is encoded several times in order to find the effort of its sender.
const MAX_EFFORT_BYTES: usize = 4 << 20;

/// The deviation of sizes in parts per thousand below which two efforts are taken for equal.
const EQUAL_PERMILLE: usize = 3;

impl Coding {
    /// Parses a name in lower case.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "gzip" | "x-gzip" => Self::Gzip,
            "deflate" => Self::Deflate,
            "br" => Self::Brotli,
            "zstd" => Self::Zstd,
            _ => return None,
        })
    }

    /// The name in `content-encoding`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// The levels in use, from the least to the most effort.
    fn levels(self) -> &'static [u32] {
        match self {
            Self::Gzip | Self::Deflate => &[1, 4, 6, 9],
            Self::Brotli => &[1, 4, 5, 6, 9, 11],
            Self::Zstd => &[1, 3, 9, 19],
        }
    }

    /// The position of the level that servers use when they compress while they answer: gzip 6 and
    /// zstd 3 are the defaults of their libraries, brotli 5 that of large networks.
    fn usual_position(self) -> usize {
        match self {
            Self::Gzip | Self::Deflate | Self::Brotli => 2,
            Self::Zstd => 1,
        }
    }

    /// Decodes a body. More than `max_bytes` are an error. Adds to `decoded_bytes` how many bytes
    /// were decoded, also if it fails: a corrupt body takes as much time as a valid one.
    pub(crate) fn decode(
        self,
        body: &[u8],
        max_bytes: u64,
        decoded_bytes: &mut u64,
    ) -> Result<Vec<u8>, BodyError> {
        let mut read_all = |reader: &mut dyn Read| read_all(reader, max_bytes, decoded_bytes);
        let corrupt = |error: io::Error| BodyError::Corrupt(error.to_string());
        match self {
            Self::Gzip => read_all(&mut GzDecoder::new(body)),
            // Some servers send the raw format, and browsers accept both.
            Self::Deflate => match read_all(&mut ZlibDecoder::new(body)) {
                Err(BodyError::Corrupt(_)) => read_all(&mut DeflateDecoder::new(body)),
                result => result,
            },
            Self::Brotli => read_all(&mut brotli::Decompressor::new(body, 4096)),
            Self::Zstd => {
                let mut decoder =
                    zstd::stream::read::Decoder::with_buffer(body).map_err(corrupt)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(corrupt)?;
                read_all(&mut decoder)
            }
        }
    }

    /// Encodes a content.
    pub(crate) fn encode(self, content: &[u8], effort: Effort) -> Vec<u8> {
        let position = effort.0.unwrap_or_else(|| self.usual_position());
        let level = self.levels()[position.min(self.levels().len() - 1)];
        self.encode_at(content, level)
            .expect("writing to memory does not fail")
    }

    fn encode_at(self, content: &[u8], level: u32) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
                encoder.write_all(content)?;
                encoder.finish()
            }
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
                encoder.write_all(content)?;
                encoder.finish()
            }
            Self::Brotli => {
                let params = BrotliEncoderParams {
                    quality: i32::try_from(level).unwrap_or(i32::MAX),
                    size_hint: content.len(),
                    ..BrotliEncoderParams::default()
                };
                let mut output = Vec::new();
                brotli::BrotliCompress(&mut Cursor::new(content), &mut output, &params)?;
                Ok(output)
            }
            Self::Zstd => {
                let level = i32::try_from(level).unwrap_or(i32::MAX);
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), level)?;
                encoder.window_log(ZSTD_WINDOW_LOG)?;
                encoder.write_all(content)?;
                encoder.finish()
            }
        }
    }

    /// Finds the effort with which a content takes about as many bytes as it was transferred with.
    pub(crate) fn effort(self, content: &[u8], transferred_bytes: usize) -> Effort {
        if content.len() > MAX_EFFORT_BYTES {
            return Effort::default();
        }
        let tolerance = transferred_bytes.saturating_mul(EQUAL_PERMILLE) / 1000;
        let mut position = self.usual_position();
        let mut best = (usize::MAX, position);
        loop {
            let bytes = self.encode(content, Effort(Some(position))).len();
            let difference = bytes.abs_diff(transferred_bytes);
            if difference >= best.0 {
                break;
            }
            best = (difference, position);
            let next = if bytes > transferred_bytes {
                Some(position + 1).filter(|next| *next < self.levels().len())
            } else {
                position.checked_sub(1)
            };
            match next {
                Some(next) if difference > tolerance => position = next,
                _ => break,
            }
        }
        Effort(Some(best.1))
    }
}

/// Reads everything, up to a number of bytes, and adds how many were read.
fn read_all(
    reader: &mut dyn Read,
    max_bytes: u64,
    read_bytes: &mut u64,
) -> Result<Vec<u8>, BodyError> {
    let mut content = Vec::new();
    let result = reader.take(max_bytes + 1).read_to_end(&mut content);
    *read_bytes += content.len() as u64;
    result.map_err(|error| BodyError::Corrupt(error.to_string()))?;
    if content.len() as u64 > max_bytes {
        return Err(BodyError::TooLarge);
    }
    Ok(content)
}
