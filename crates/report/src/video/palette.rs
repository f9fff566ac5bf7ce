//! The colours of a video: one palette for all frames, chosen from all pictures.

/// The index that leaves a pixel as it was in the previous frame.
pub(super) const TRANSPARENT: u8 = 0;
/// The index of a page without content, and of text in captions.
pub(super) const WHITE: u8 = 1;
/// The index of the background of captions.
pub(super) const DARK: u8 = 2;

/// The colours at the first indexes. The one of [`TRANSPARENT`] is not shown.
const RESERVED: [[u8; 3]; 3] = [[0; 3], [255; 3], [32; 3]];
/// The maximum number of colours, which is that of the format.
const MAX_COLORS: usize = 256;
/// A pixel with all channels at least this bright is white; JPEG differs by as much on white areas.
const NEAR_WHITE: u8 = 253;
/// Colours are counted by the upper five bits of each channel.
const BITS: u32 = 5;
const LEVELS: usize = 1 << BITS;

/// The frequency of colours.
pub(super) struct Histogram {
    bins: Vec<Bin>,
}

/// Colours that are counted together.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    levels: [u8; 3],
    pixels: u64,
    sums: [u64; 3],
}

pub(super) struct Palette {
    colors: Vec<[u8; 3]>,
    /// The index of the colour of each bin.
    indexes: Vec<u8>,
}

impl Default for Histogram {
    fn default() -> Self {
        let bin = |index: usize| Bin {
            levels: [index >> (2 * BITS), index >> BITS, index].map(|level| (level % LEVELS) as u8),
            ..Bin::default()
        };
        Self {
            bins: (0..LEVELS.pow(3)).map(bin).collect(),
        }
    }
}

fn is_white(rgb: [u8; 3]) -> bool {
    rgb.iter().all(|value| *value >= NEAR_WHITE)
}

/// Returns the index of the bin of a colour.
fn bin_of(rgb: [u8; 3]) -> usize {
    index_of(rgb.map(|value| value >> (8 - BITS)))
}

fn index_of(levels: [u8; 3]) -> usize {
    let [red, green, blue] = levels.map(usize::from);
    (red << (2 * BITS)) | (green << BITS) | blue
}

impl Histogram {
    /// Counts a pixel.
    pub(super) fn add(&mut self, rgb: [u8; 3]) {
        if is_white(rgb) {
            return;
        }
        let bin = &mut self.bins[bin_of(rgb)];
        bin.pixels += 1;
        for (sum, value) in bin.sums.iter_mut().zip(rgb) {
            *sum += u64::from(value);
        }
    }

    /// Returns the palette with the colours that represent the counted pixels.
    pub(super) fn palette(self) -> Palette {
        let occupied = self.bins.into_iter().filter(|bin| bin.pixels > 0).collect();
        let mut regions = vec![Region::new(occupied, [0; 3], [LEVELS as u8 - 1; 3])];
        while regions.len() < MAX_COLORS - RESERVED.len() {
            let spreads = regions.iter().map(|region| region.spread).enumerate();
            let widest = spreads.max_by(|a, b| a.1.total_cmp(&b.1));
            let Some((index, _)) = widest.filter(|(_, spread)| *spread > 0.0) else {
                break;
            };
            let halves = regions.swap_remove(index).halves();
            regions.extend(halves);
        }
        let mut palette = Palette {
            colors: RESERVED.to_vec(),
            indexes: vec![WHITE; LEVELS.pow(3)],
        };
        for region in regions.iter().filter(|region| !region.bins.is_empty()) {
            let index = palette.colors.len() as u8;
            palette.colors.push(region.color());
            for bin in region.all_bins() {
                palette.indexes[bin] = index;
            }
        }
        palette
    }
}

impl Palette {
    pub(super) fn colors(&self) -> &[[u8; 3]] {
        &self.colors
    }

    /// Returns the index of the colour that represents another.
    pub(super) fn index(&self, rgb: [u8; 3]) -> u8 {
        if is_white(rgb) {
            WHITE
        } else {
            self.indexes[bin_of(rgb)]
        }
    }
}

/// A part of all colours that one colour of the palette represents.
struct Region {
    bins: Vec<Bin>,
    /// The levels between which the region is, inclusively.
    low: [u8; 3],
    high: [u8; 3],
    /// The sum of the squared distances from the mean.
    spread: f64,
    /// The channel with the largest part of the spread, and its mean level, rounded down.
    axis: usize,
    mean: u8,
}

impl Region {
    fn new(bins: Vec<Bin>, low: [u8; 3], high: [u8; 3]) -> Self {
        let pixels: u64 = bins.iter().map(|bin| bin.pixels).sum();
        let sum_of = |axis: usize| -> u64 {
            let sums = bins
                .iter()
                .map(|bin| bin.pixels * u64::from(bin.levels[axis]));
            sums.sum()
        };
        let spread_of = |axis: usize| {
            let squares = bins.iter().map(|bin| {
                let level = u64::from(bin.levels[axis]);
                bin.pixels * level * level
            });
            let (sum, squares) = (sum_of(axis) as f64, squares.sum::<u64>() as f64);
            (squares - sum * sum / pixels.max(1) as f64).max(0.0)
        };
        let spreads = [spread_of(0), spread_of(1), spread_of(2)];
        let splits = |axis: &usize| {
            let mut levels = bins.iter().map(|bin| bin.levels[*axis]);
            let first = levels.next();
            levels.any(|level| Some(level) != first)
        };
        // Rounding must not make a channel with only one level the widest.
        let axes = (0..3).filter(splits);
        let axis = axes.max_by(|a, b| spreads[*a].total_cmp(&spreads[*b]));
        Self {
            spread: axis.map_or(0.0, |_| spreads.iter().sum::<f64>().max(f64::MIN_POSITIVE)),
            axis: axis.unwrap_or_default(),
            mean: (axis.map_or(0, sum_of) / pixels.max(1)) as u8,
            bins,
            low,
            high,
        }
    }

    /// Divides the region at its mean. Its channel has several levels, so both halves have pixels.
    fn halves(self) -> [Self; 2] {
        let Self { axis, mean, .. } = self;
        let bins = self.bins.into_iter();
        let (lower, upper) = bins.partition(|bin| bin.levels[axis] <= mean);
        let (mut middle_high, mut middle_low) = (self.high, self.low);
        middle_high[axis] = mean;
        middle_low[axis] = mean + 1;
        [
            Self::new(lower, self.low, middle_high),
            Self::new(upper, middle_low, self.high),
        ]
    }

    /// Returns the mean colour.
    fn color(&self) -> [u8; 3] {
        let pixels: u64 = self.bins.iter().map(|bin| bin.pixels).sum();
        [0, 1, 2].map(|channel| {
            let sum: u64 = self.bins.iter().map(|bin| bin.sums[channel]).sum();
            ((sum + pixels / 2) / pixels.max(1)) as u8
        })
    }

    /// Returns the indexes of all bins of the region, with and without pixels.
    fn all_bins(&self) -> impl Iterator<Item = usize> {
        let levels = |channel: usize| self.low[channel]..=self.high[channel];
        let (greens, blues) = (levels(1), levels(2));
        levels(0).flat_map(move |red| {
            let blues = blues.clone();
            greens.clone().flat_map(move |green| {
                let blues = blues.clone();
                blues.map(move |blue| index_of([red, green, blue]))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_colours_are_kept_exactly_and_white_stays_white() {
        let mut histogram = Histogram::default();
        let colors: Vec<[u8; 3]> = (0..200)
            .map(|index| [index, 255 - index, index / 2])
            .collect();
        // One of each bin, because colours in one bin are not told apart.
        let mut seen = std::collections::BTreeSet::new();
        let colors: Vec<_> = colors
            .into_iter()
            .filter(|color| seen.insert(bin_of(*color)))
            .collect();
        assert!(colors.len() > 20);
        for (index, color) in colors.iter().enumerate() {
            (0..=index).for_each(|_| histogram.add(*color));
        }
        histogram.add([254, 255, 253]);
        let palette = histogram.palette();
        assert_eq!(palette.colors().len(), RESERVED.len() + colors.len());
        for color in colors {
            assert_eq!(palette.colors()[usize::from(palette.index(color))], color);
        }
        assert_eq!(palette.index([254, 255, 253]), WHITE);
        assert_eq!(Histogram::default().palette().colors(), RESERVED);
    }

    proptest! {
        #[test]
        fn any_colour_has_a_similar_one(
            colors in proptest::collection::vec(any::<[u8; 3]>(), 1..500),
            other in any::<[u8; 3]>(),
        ) {
            let mut histogram = Histogram::default();
            colors.iter().for_each(|color| histogram.add(*color));
            let palette = histogram.palette();
            prop_assert!(palette.colors().len() <= MAX_COLORS);
            for color in colors {
                let index = palette.index(color);
                prop_assert_ne!(index, TRANSPARENT);
                let similar = palette.colors()[usize::from(index)];
                let pairs = similar.iter().zip(&color);
                let distance: u32 = pairs.map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2)).sum();
                prop_assert!(distance < 60 * 60, "{color:?} as {similar:?}");
            }
            prop_assert!(usize::from(palette.index(other)) < palette.colors().len());
        }
    }
}
