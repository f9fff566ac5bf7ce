//! Encodes PNG pictures again, smaller or with fewer bytes.

mod encoder;
mod raster;

use std::io::Cursor;

use png::{ColorType, Decoder, Info, Limits, ScaledFloat, Transformations};
use png::{SourceChromaticities, SrgbRenderingIntent};

use super::{MAX_PIXELS, MAX_SIDE, TOO_MANY_PIXELS, exif};
use raster::Raster;

/// The most memory for what precedes the pixels of a file, such as the profile of its colours,
/// which is compressed.
const MAX_PREFACE_BYTES: usize = 8 << 20;

/// A decoded PNG with what changes its appearance.
pub(crate) struct LosslessPicture {
    raster: Raster,
    color_space: ColorSpace,
    /// The direction in which it is shown, as in Exif.
    orientation: u16,
}

/// The meaning of colours, which stays as it is.
#[derive(Debug, Clone, PartialEq, Default)]
struct ColorSpace {
    gamma: Option<ScaledFloat>,
    chromaticities: Option<SourceChromaticities>,
    srgb: Option<SrgbRenderingIntent>,
    profile: Option<Profile>,
}

/// The profile of the colours of a picture, which fits either pictures in grey or others.
#[derive(Debug, Clone, PartialEq)]
struct Profile {
    content: Vec<u8>,
    is_for_gray: bool,
}

impl LosslessPicture {
    /// Decodes a PNG, with eight bits for each colour. The error is the reason why it cannot be
    /// encoded again.
    pub fn decode(png: &[u8], max_pixels: usize) -> Result<Self, String> {
        let failure = |_| "it cannot be decoded as PNG".to_owned();
        let limits = Limits {
            bytes: MAX_PREFACE_BYTES,
        };
        let mut decoder = Decoder::new_with_limits(Cursor::new(png), limits);
        decoder.set_ignore_text_chunk(true);
        decoder.set_transformations(
            Transformations::EXPAND | Transformations::ALPHA | Transformations::STRIP_16,
        );
        let (width, height) = decoder.read_header_info().map_err(failure)?.size();
        let [width, height] = [width, height].map(|it| usize::try_from(it).unwrap_or(usize::MAX));
        if width.max(height) > MAX_SIDE || width.saturating_mul(height) > max_pixels.min(MAX_PIXELS)
        {
            return Err(TOO_MANY_PIXELS.to_owned());
        }
        let mut reader = decoder.read_info().map_err(failure)?;
        let info = reader.info();
        if info.animation_control.is_some() {
            return Err("it is an animation".to_owned());
        }
        if info.coding_independent_code_points.is_some() {
            return Err("its colours are not those of ordinary screens".to_owned());
        }
        let color_space = ColorSpace::of(info);
        let exif = info.exif_metadata.as_deref();
        let orientation = exif.map_or(1, exif::orientation);
        let bytes = reader.output_buffer_size();
        let mut samples = vec![0; bytes.ok_or_else(|| TOO_MANY_PIXELS.to_owned())?];
        let output = reader.next_frame(&mut samples).map_err(failure)?;
        let raster = match output.color_type {
            ColorType::GrayscaleAlpha => Raster::of_gray(width, height, &samples),
            _ => Raster::new(width, height, samples),
        };
        Ok(Self {
            raster: raster.ok_or("it cannot be decoded as PNG")?,
            color_space,
            orientation,
        })
    }

    /// Returns the width in pixels, as the picture is shown.
    pub fn width(&self) -> usize {
        if exif::is_on_its_side(self.orientation) {
            self.raster.height()
        } else {
            self.raster.width()
        }
    }

    /// Returns the number of pixels.
    pub fn pixel_count(&self) -> usize {
        self.raster.width() * self.raster.height()
    }

    /// Shrinks the picture to a width of at least one pixel, in proportion.
    pub fn shrink(&mut self, width: usize) {
        let width = if exif::is_on_its_side(self.orientation) {
            self.raster.width() * width / self.raster.height()
        } else {
            width
        };
        self.raster = self.raster.shrunk(width);
    }

    /// Encodes the picture without loss. Returns `None` if the file would be too large.
    pub fn encode(&self) -> Option<Vec<u8>> {
        encoder::encode(&self.raster, &self.color_space, self.orientation).ok()
    }
}

impl ColorSpace {
    fn of(info: &Info<'_>) -> Self {
        let is_for_gray = matches!(
            info.color_type,
            ColorType::Grayscale | ColorType::GrayscaleAlpha
        );
        let profile = info.icc_profile.as_deref().map(|content| Profile {
            content: content.to_vec(),
            is_for_gray,
        });
        Self {
            gamma: info.gama_chunk,
            chromaticities: info.chrm_chunk,
            // Browsers prefer the profile, and the encoder writes only one of them.
            srgb: info.srgb.filter(|_| profile.is_none()),
            profile,
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
