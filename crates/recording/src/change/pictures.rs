//! Recompresses and resizes pictures. Only JPEG is encoded again: encoders for WebP and AVIF in
//! Rust are lossless or large dependencies, and PNG has no quality.

use std::cell::Cell;

use super::editor::Editor;
use super::{ChangeProblem, Effect, Pattern};
use crate::picture::{Picture, quality_of};

/// The quality of resized pictures whose own quality is unknown; the default of most tools.
const USUAL_QUALITY: u8 = 80;

/// The maximum number of pixels of all pictures that one change decodes: about a hundred
/// photographs of four million each, which take half a minute.
const MAX_ALL_PIXELS: usize = 500_000_000;

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
        self.edit_pictures(pattern, |jpeg, picture| {
            Some(picture.encode(quality)).filter(|it| it.len() < jpeg.len())
        })
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
        self.edit_pictures(pattern, |jpeg, mut picture| {
            if picture.width() <= max_width {
                return None;
            }
            picture.shrink(max_width);
            Some(picture.encode(quality_of(jpeg).unwrap_or(USUAL_QUALITY)))
        })
    }

    /// Edits JPEG pictures.
    fn edit_pictures(
        &mut self,
        pattern: Option<&Pattern>,
        edit: impl Fn(&[u8], Picture) -> Option<Vec<u8>>,
    ) -> Result<Effect, ChangeProblem> {
        let mut indexes = match pattern {
            Some(pattern) => self.selected(pattern)?,
            None => (0..self.recording.exchanges.len()).collect(),
        };
        indexes.retain(|index| {
            let response = self.recording.exchanges[*index].response.as_ref();
            // Servers choose the format by what the browser accepts, so that names do not tell it.
            response.is_some_and(|it| it.status == 200 && it.body.starts_with(&[0xff, 0xd8, 0xff]))
        });
        let remaining_pixels = Cell::new(MAX_ALL_PIXELS);
        Ok(self.edit_bodies(&indexes, |_, content| {
            let picture = Picture::decode(content, remaining_pixels.get())?;
            remaining_pixels.set(remaining_pixels.get().saturating_sub(picture.pixel_count()));
            Ok(edit(content, picture))
        }))
    }
}
