//! Encodes pixels as PNG with as few bytes as ordinary tools: with the fewest bits for each pixel
//! that lose nothing, and with the filter that compresses better.

use std::collections::BTreeSet;

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError, Filter, Info};

use super::ColorSpace;
use super::raster::Raster;
use crate::picture::exif;

/// The most colours of a palette.
const MAX_COLORS: usize = 256;

/// The most colours with which a palette takes fewer bits than levels of grey.
const FEW_COLORS: usize = 16;

/// Filters that are tried. Drawings often compress best without one, photographs with the one that
/// fits each row.
const FILTERS: [Filter; 2] = [Filter::NoFilter, Filter::Adaptive];

/// Encodes pixels.
pub fn encode(
    raster: &Raster,
    color_space: &ColorSpace,
    orientation: u16,
) -> Result<Vec<u8>, EncodingError> {
    let samples = Samples::of(raster, color_space);
    let mut info = Info::with_size(side(raster.width()), side(raster.height()));
    info.color_type = samples.color_type;
    info.bit_depth = samples.depth;
    if !samples.palette.is_empty() {
        let colors = samples.palette.iter();
        let rgb: Vec<u8> = colors.flat_map(|[_, rgb @ ..]| *rgb).collect();
        info.palette = Some(rgb.into());
        // Colours come in the order of their alpha, and those after the last one are opaque.
        let alphas = samples.palette.iter().map(|[alpha, ..]| *alpha);
        let alphas: Vec<u8> = alphas.take_while(|alpha| *alpha < u8::MAX).collect();
        info.trns = (!alphas.is_empty()).then(|| alphas.into());
    }
    info.source_gamma = color_space.gamma;
    info.source_chromaticities = color_space.chromaticities;
    info.srgb = color_space.srgb;
    let profile = color_space.profile.as_ref();
    info.icc_profile = profile.map(|it| it.content.as_slice().into());
    info.exif_metadata = (orientation != 1).then(|| exif::tiff(orientation).into());
    let mut best: Option<Vec<u8>> = None;
    for filter in FILTERS {
        let mut file = Vec::new();
        let mut encoder = Encoder::with_info(&mut file, info.clone())?;
        encoder.set_compression(Compression::High);
        encoder.set_filter(filter);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&samples.rows)?;
        writer.finish()?;
        if best.as_ref().is_none_or(|best| file.len() < best.len()) {
            best = Some(file);
        }
    }
    Ok(best.unwrap_or_default())
}

/// A side is at most that of the format, since pictures only get smaller.
fn side(side: usize) -> u32 {
    u32::try_from(side).unwrap_or(u32::MAX)
}

/// The pixels as a file has them.
struct Samples {
    color_type: ColorType,
    depth: BitDepth,
    /// The colours as alpha, red, green and blue; none unless pixels are positions among them.
    palette: Vec<[u8; 4]>,
    rows: Vec<u8>,
}

impl Samples {
    /// Chooses the fewest bits for each pixel.
    fn of(raster: &Raster, color_space: &ColorSpace) -> Self {
        let pixels = raster.pixels();
        let profile = color_space.profile.as_ref();
        let may_be_gray = profile.is_none_or(|it| it.is_for_gray);
        let may_be_colored = profile.is_none_or(|it| !it.is_for_gray);
        let is_opaque = pixels.iter().all(|[.., alpha]| *alpha == u8::MAX);
        // A profile for grey has come with pixels in grey, of which means are grey as well.
        let is_gray =
            may_be_gray && (!may_be_colored || pixels.iter().all(|[r, g, b, _]| r == g && g == b));
        let max_colors = match (may_be_colored, is_gray && is_opaque) {
            (false, _) => 0,
            (true, true) => FEW_COLORS,
            (true, false) => MAX_COLORS,
        };
        if let Some(palette) = palette(pixels, max_colors) {
            return Self::with_palette(raster, palette);
        }
        let pixels = pixels.iter();
        let (color_type, rows) = match (is_gray, is_opaque) {
            (true, true) => (ColorType::Grayscale, pixels.map(|it| it[0]).collect()),
            (true, false) => (
                ColorType::GrayscaleAlpha,
                pixels
                    .flat_map(|[gray, .., alpha]| [*gray, *alpha])
                    .collect(),
            ),
            (false, true) => (
                ColorType::Rgb,
                pixels.flat_map(|[rgb @ .., _]| *rgb).collect(),
            ),
            (false, false) => (ColorType::Rgba, pixels.copied().flatten().collect()),
        };
        Self {
            color_type,
            depth: BitDepth::Eight,
            palette: Vec::new(),
            rows,
        }
    }

    fn with_palette(raster: &Raster, palette: Vec<[u8; 4]>) -> Self {
        let (bits, depth) = match palette.len() {
            ..=2 => (1, BitDepth::One),
            3..=4 => (2, BitDepth::Two),
            5..=16 => (4, BitDepth::Four),
            _ => (8, BitDepth::Eight),
        };
        let position = |pixel: &[u8; 4]| {
            let position = palette.binary_search(&alpha_first(*pixel));
            u8::try_from(position.unwrap_or_default()).unwrap_or_default()
        };
        let pixels_of_byte = 8 / bits;
        let mut rows = Vec::new();
        for row in raster.pixels().chunks(raster.width()) {
            for pixels in row.chunks(pixels_of_byte) {
                // The first pixel has the highest bits, also if the last byte is not full.
                let shifts = (0..pixels_of_byte).rev().map(|it| it * bits);
                let shifted = pixels
                    .iter()
                    .zip(shifts)
                    .map(|(it, bits)| position(it) << bits);
                rows.push(shifted.fold(0, |byte, bits| byte | bits));
            }
        }
        Self {
            color_type: ColorType::Indexed,
            depth,
            palette,
            rows,
        }
    }
}

fn alpha_first([red, green, blue, alpha]: [u8; 4]) -> [u8; 4] {
    [alpha, red, green, blue]
}

/// Returns the colours in order, as alpha, red, green and blue; `None` if there are more.
fn palette(pixels: &[[u8; 4]], max_colors: usize) -> Option<Vec<[u8; 4]>> {
    let mut colors = BTreeSet::new();
    let mut last = None;
    for pixel in pixels {
        if last != Some(pixel) {
            colors.insert(alpha_first(*pixel));
            if colors.len() > max_colors {
                return None;
            }
            last = Some(pixel);
        }
    }
    Some(colors.into_iter().collect())
}
