//! Pixels of a picture.

/// A picture in red, green and blue.
pub struct Pixels {
    width: usize,
    height: usize,
    /// Three bytes for each pixel, row after row.
    rgb: Vec<u8>,
}

impl Pixels {
    /// Returns `None` unless there are as many bytes as the sides tell, and at least one pixel.
    pub fn new(width: usize, height: usize, rgb: Vec<u8>) -> Option<Self> {
        let bytes = width.checked_mul(height)?.checked_mul(3)?;
        (bytes > 0 && bytes == rgb.len()).then_some(Self { width, height, rgb })
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns a pixel. Beyond the right and the lower side, those pixels repeat.
    pub fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let (x, y) = (x.min(self.width - 1), y.min(self.height - 1));
        let start = 3 * (y * self.width + x);
        [self.rgb[start], self.rgb[start + 1], self.rgb[start + 2]]
    }

    /// Returns the picture with a smaller width. Each pixel is the mean of the area it covers.
    pub fn shrunk(&self, width: usize) -> Self {
        let old = (self.width, self.height);
        let (width, height) = proportional(old, width);
        let mut rgb = Vec::with_capacity(3 * width * height);
        let at = |x, y| self.at(x, y).map(f32::from);
        for_each_mean(old, (width, height), at, |mean| {
            rgb.extend(mean.map(|value| value.round() as u8));
        });
        Self { width, height, rgb }
    }
}

/// Returns a width and the height that is in proportion to it, which are at most the old ones.
pub fn proportional((old_width, old_height): (usize, usize), width: usize) -> (usize, usize) {
    let width = width.clamp(1, old_width);
    let height = (old_height * width + old_width / 2) / old_width;
    (width, height.clamp(1, old_height))
}

/// Calls `put` with each pixel of a picture of a `new` width and height, row after row: the mean of
/// the area that it covers in the `old` one, whose pixels are those of `at`.
pub fn for_each_mean<const N: usize>(
    old: (usize, usize),
    new: (usize, usize),
    at: impl Fn(usize, usize) -> [f32; N],
    mut put: impl FnMut([f32; N]),
) {
    let columns = spans(old.0, new.0);
    for rows in spans(old.1, new.1) {
        for columns in &columns {
            let mut sum = [0.0; N];
            let mut area = 0.0;
            for (y, row_share) in &rows {
                for (x, column_share) in columns {
                    let share = row_share * column_share;
                    area += share;
                    for (sum, value) in sum.iter_mut().zip(at(*x, *y)) {
                        *sum += share * value;
                    }
                }
            }
            put(sum.map(|sum| sum / area));
        }
    }
}

/// Returns for each of `new` equal parts the positions among `old` that it covers, with shares.
fn spans(old: usize, new: usize) -> Vec<Vec<(usize, f32)>> {
    let scale = old as f32 / new as f32;
    let span = |index: usize| {
        let (start, end) = (index as f32 * scale, (index + 1) as f32 * scale);
        let first = start as usize;
        let last = (end.ceil() as usize).clamp(first + 1, old.max(first + 1));
        let share = |at: usize| (end.min(at as f32 + 1.0) - start.max(at as f32)).max(1e-6);
        (first..last)
            .map(|at| (at.min(old - 1), share(at)))
            .collect()
    };
    (0..new).map(span).collect()
}
