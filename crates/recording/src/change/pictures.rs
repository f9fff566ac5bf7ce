//! Recompresses and resizes pictures. Only JPEG and PNG are encoded again: encoders for WebP and
//! AVIF in Rust are lossless or large dependencies. No picture changes its format.

use std::cell::Cell;

use super::editor::{Edited, Editor};
use super::{ChangeProblem, Effect, Pattern};
use crate::picture::{self, Format, LosslessPicture, Picture, quality_of};

/// The quality of resized pictures whose own quality is unknown; the default of most tools.
const USUAL_QUALITY: u8 = 80;

/// The maximum number of pixels of all pictures that one change decodes: about a hundred
/// photographs of four million each, which take half a minute.
const MAX_ALL_PIXELS: usize = 500_000_000;

/// The number of pixels of a JPEG that are decoded and encoded in the time in which a pixel of a
/// PNG is encoded.
const PIXELS_PER_LOSSLESS_PIXEL: usize = 8;

/// A way to make pictures smaller.
#[derive(Clone, Copy)]
enum Edit {
    /// JPEG gets a quality, and PNG stays the same with fewer bytes.
    Recompress { quality: u8 },
    /// Pictures that are wider shrink, with about the quality that they have.
    Resize { max_width: usize },
}

impl Editor {
    /// Encodes pictures with another quality. Those that would not get smaller stay as they are.
    pub fn recompress_images(
        &mut self,
        pattern: Option<&Pattern>,
        quality: u8,
    ) -> Result<Effect, ChangeProblem> {
        if !(1..=100).contains(&quality) {
            return Err(ChangeProblem::Quality);
        }
        self.edit_pictures(pattern, Edit::Recompress { quality })
    }

    /// Shrinks pictures that are wider than `max_width`, with about the quality that they have.
    pub fn resize_images(
        &mut self,
        pattern: Option<&Pattern>,
        max_width: u32,
    ) -> Result<Effect, ChangeProblem> {
        let max_width = usize::try_from(max_width).unwrap_or(usize::MAX);
        if max_width == 0 {
            return Err(ChangeProblem::Width);
        }
        self.edit_pictures(pattern, Edit::Resize { max_width })
    }

    fn edit_pictures(
        &mut self,
        pattern: Option<&Pattern>,
        edit: Edit,
    ) -> Result<Effect, ChangeProblem> {
        let mut indexes = match pattern {
            Some(pattern) => self.selected(pattern)?,
            None => (0..self.recording.exchanges.len()).collect(),
        };
        indexes.retain(|index| {
            let response = self.recording.exchanges[*index].response.as_ref();
            response.is_some_and(|it| it.status == 200 && Format::of(&it.body).is_some())
        });
        let remaining_pixels = Cell::new(MAX_ALL_PIXELS);
        Ok(self.edit_bodies(&indexes, |_, content| {
            edit.apply(content, &remaining_pixels)
        }))
    }
}

impl Edit {
    /// Edits a picture, and takes the pixels that this costs from those that remain.
    fn apply(self, file: &[u8], remaining_pixels: &Cell<usize>) -> Edited {
        let Some(format) = Format::of(file).filter(|_| self.may_shrink(file)) else {
            return Ok(None);
        };
        match format {
            Format::Jpeg => self.apply_to_jpeg(file, remaining_pixels),
            Format::Png => self.apply_to_png(file, remaining_pixels),
            Format::Gif | Format::WebP | Format::Avif => Err(format!(
                "only JPEG and PNG are encoded again, and it is {format}"
            )),
        }
    }

    /// Returns false if a picture is certainly not too wide, whichever way it is turned.
    fn may_shrink(self, file: &[u8]) -> bool {
        match self {
            Self::Recompress { .. } => true,
            Self::Resize { max_width } => picture::size(file).is_none_or(|(width, height)| {
                usize::try_from(width.max(height)).is_ok_and(|side| side > max_width)
            }),
        }
    }

    fn apply_to_jpeg(self, jpeg: &[u8], remaining_pixels: &Cell<usize>) -> Edited {
        let mut picture = Picture::decode(jpeg, remaining_pixels.get())?;
        remaining_pixels.update(|it| it.saturating_sub(picture.pixel_count()));
        Ok(match self {
            Self::Recompress { quality } => {
                Some(picture.encode(quality)).filter(|it| it.len() < jpeg.len())
            }
            Self::Resize { max_width } if picture.width() <= max_width => None,
            Self::Resize { max_width } => {
                picture.shrink(max_width);
                Some(picture.encode(quality_of(jpeg).unwrap_or(USUAL_QUALITY)))
            }
        })
    }

    fn apply_to_png(self, png: &[u8], remaining_pixels: &Cell<usize>) -> Edited {
        let max_pixels = match self {
            Self::Recompress { .. } => remaining_pixels.get() / PIXELS_PER_LOSSLESS_PIXEL,
            Self::Resize { .. } => remaining_pixels.get(),
        };
        let mut picture = LosslessPicture::decode(png, max_pixels)?;
        remaining_pixels.update(|it| it.saturating_sub(picture.pixel_count()));
        if let Self::Resize { max_width } = self {
            if picture.width() <= max_width {
                return Ok(None);
            }
            picture.shrink(max_width);
        }
        let cost = PIXELS_PER_LOSSLESS_PIXEL * picture.pixel_count();
        remaining_pixels.update(|it| it.saturating_sub(cost));
        let encoded = picture.encode().filter(|it| it.len() < png.len());
        match self {
            // The colours between those of a drawing can take more bytes than fewer pixels save.
            Self::Resize { .. } if encoded.is_none() => {
                Err("it would have more bytes with fewer pixels".to_owned())
            }
            Self::Resize { .. } | Self::Recompress { .. } => Ok(encoded),
        }
    }
}
