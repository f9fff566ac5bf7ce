//! Pixels of a picture with transparency.

use crate::picture::pixels::{for_each_mean, proportional};

/// A picture in red, green, blue and alpha. Pixels that cannot be seen are all zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Raster {
    width: usize,
    height: usize,
    /// Four bytes for each pixel, row after row.
    rgba: Vec<u8>,
}

impl Raster {
    /// Returns `None` unless there are as many bytes as the sides tell, and at least one pixel.
    pub fn new(width: usize, height: usize, mut rgba: Vec<u8>) -> Option<Self> {
        let bytes = width.checked_mul(height)?.checked_mul(4)?;
        if bytes == 0 || bytes != rgba.len() {
            return None;
        }
        for pixel in rgba.as_chunks_mut::<4>().0 {
            if let [.., 0] = *pixel {
                *pixel = [0; 4];
            }
        }
        Some(Self {
            width,
            height,
            rgba,
        })
    }

    /// Makes a picture of brightness and alpha.
    pub fn of_gray(width: usize, height: usize, samples: &[u8]) -> Option<Self> {
        let (pixels, _) = samples.as_chunks::<2>();
        let rgba = pixels
            .iter()
            .flat_map(|[gray, alpha]| [*gray, *gray, *gray, *alpha]);
        Self::new(width, height, rgba.collect())
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns all pixels, row after row.
    pub fn pixels(&self) -> &[[u8; 4]] {
        self.rgba.as_chunks::<4>().0
    }

    /// Returns the picture with a smaller width. Each pixel is the mean of the area it covers, to
    /// whose colour pixels contribute as much as they can be seen.
    pub fn shrunk(&self, width: usize) -> Self {
        let old = (self.width, self.height);
        let (width, height) = proportional(old, width);
        let mut rgba = Vec::with_capacity(4 * width * height);
        let pixels = self.pixels();
        let premultiplied = |x: usize, y: usize| {
            let [red, green, blue, alpha] = pixels[y * self.width + x].map(f32::from);
            [red * alpha, green * alpha, blue * alpha, alpha]
        };
        for_each_mean(old, (width, height), premultiplied, |mean| {
            let alpha = mean[3];
            let [red, green, blue, _] = mean.map(|it| (it / alpha.max(1e-6)).round() as u8);
            let alpha = alpha.round() as u8;
            rgba.extend(if alpha == 0 {
                [0; 4]
            } else {
                [red, green, blue, alpha]
            });
        });
        Self {
            width,
            height,
            rgba,
        }
    }
}
