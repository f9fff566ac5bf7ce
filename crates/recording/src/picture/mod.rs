//! Encodes pictures again: JPEG smaller or with another quality, PNG smaller or with fewer bytes.

mod encoder;
mod exif;
mod format;
mod huffman;
mod lossless;
mod pixels;
mod size;

pub(crate) use format::Format;
pub(crate) use lossless::LosslessPicture;
pub(crate) use size::size;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use pixels::Pixels;

/// The largest side of a picture, which is also the largest of the format.
const MAX_SIDE: usize = 65_535;

/// The largest number of pixels: far above those of pages. Decoding and encoding takes six bytes
/// for each of JPEG, and up to twelve for each of PNG.
const MAX_PIXELS: usize = 40_000_000;

/// The reason why a picture with too many pixels stays as it is.
const TOO_MANY_PIXELS: &str = "it has too many pixels, alone or with the pictures before it";

/// A decoded JPEG with what changes its appearance.
pub(crate) struct Picture {
    pixels: Pixels,
    /// The direction in which it is shown, as in Exif.
    orientation: u16,
    /// The profile of its colours.
    profile: Option<Vec<u8>>,
}

impl Picture {
    /// Decodes a JPEG. The error is the reason why it cannot be encoded again.
    pub fn decode(jpeg: &[u8], max_pixels: usize) -> Result<Self, String> {
        let options = DecoderOptions::default()
            .jpeg_set_out_colorspace(ColorSpace::RGB)
            .set_max_width(MAX_SIDE)
            .set_max_height(MAX_SIDE);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(jpeg), options);
        let failure = "it cannot be decoded as JPEG";
        decoder.decode_headers().map_err(|_| failure)?;
        let (width, height) = decoder.dimensions().ok_or(failure)?;
        if width.saturating_mul(height) > max_pixels.min(MAX_PIXELS) {
            return Err(TOO_MANY_PIXELS.to_owned());
        }
        // Pictures for printers have four colours.
        let colors = decoder.input_colorspace();
        if !matches!(colors, Some(ColorSpace::YCbCr | ColorSpace::Luma)) {
            return Err("its colours are not those of screens".to_owned());
        }
        let rgb = decoder.decode().map_err(|_| failure)?;
        let pixels = Pixels::new(width, height, rgb).ok_or(failure)?;
        Ok(Self {
            pixels,
            orientation: decoder.exif().map_or(1, |it| exif::orientation(it)),
            profile: decoder.icc_profile(),
        })
    }

    /// Returns the width in pixels, as the picture is shown.
    pub fn width(&self) -> usize {
        if self.is_on_its_side() {
            self.pixels.height()
        } else {
            self.pixels.width()
        }
    }

    /// Returns whether the stored rows are shown as columns.
    fn is_on_its_side(&self) -> bool {
        exif::is_on_its_side(self.orientation)
    }

    /// Returns the number of pixels.
    pub fn pixel_count(&self) -> usize {
        self.pixels.width() * self.pixels.height()
    }

    /// Shrinks the picture to a width of at least one pixel, in proportion.
    pub fn shrink(&mut self, width: usize) {
        let width = if self.is_on_its_side() {
            self.pixels.width() * width / self.pixels.height()
        } else {
            width
        };
        self.pixels = self.pixels.shrunk(width);
    }

    /// Encodes the picture with a quality between 1 and 100, as other encoders understand it.
    pub fn encode(&self, quality: u8) -> Vec<u8> {
        let exif = (self.orientation != 1).then(|| exif::segment(self.orientation));
        encoder::encode(
            &self.pixels,
            quality,
            exif.as_deref(),
            self.profile.as_deref(),
        )
    }
}

/// Estimates the quality with which a JPEG was encoded, from its first quantization table. Returns
/// `None` if it has none.
pub(crate) fn quality_of(jpeg: &[u8]) -> Option<u8> {
    encoder::quality_of(jpeg)
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
