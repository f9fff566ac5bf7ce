//! The visual progress of each screenshot towards the last one, by comparing colour histograms.
//!
//! The algorithm and its shortcut are those of speedline-core 1.4 (lib/frame.js,
//! lib/speed-index.js): the page starts white, near-white pixels count as not painted, and
//! screenshots between two that differ little are not decoded.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use plumbline_trace::TracedScreenshot;

use super::MetricError;
use super::picture::DecodedPicture;

/// A pixel with all three channels at least this bright is background.
const WHITE: u8 = 249;

/// The number of pixels with each value of each channel.
type Histogram = [[u32; 256]; 3];

/// A screenshot that is decoded at most once, when its progress is first needed.
pub(crate) struct ProgressFrame<'a> {
    at_ms: f64,
    shot: &'a TracedScreenshot,
    histogram: OnceCell<Box<Histogram>>,
}

impl<'a> ProgressFrame<'a> {
    pub(crate) fn new(at_ms: f64, shot: &'a TracedScreenshot) -> Self {
        Self {
            at_ms,
            shot,
            histogram: OnceCell::new(),
        }
    }

    fn histogram(&self) -> Result<&Histogram, MetricError> {
        if let Some(histogram) = self.histogram.get() {
            return Ok(histogram);
        }
        let jpeg = self.shot.jpeg().ok_or(MetricError::UnreadableScreenshot)?;
        let picture = DecodedPicture::decode(&jpeg).ok_or(MetricError::UnreadableScreenshot)?;
        Ok(self.histogram.get_or_init(|| histogram_of(&picture)))
    }
}

fn histogram_of(picture: &DecodedPicture) -> Box<Histogram> {
    let mut histogram = Box::new([[0; 256]; 3]);
    picture.for_each_pixel(|pixel| {
        if pixel.iter().all(|value| *value >= WHITE) {
            return;
        }
        for (channel, value) in histogram.iter_mut().zip(pixel) {
            channel[usize::from(value)] += 1;
        }
    });
    histogram
}

/// Returns time and percentage for a white start and then each frame.
pub(crate) fn visual_progress(
    start_ms: f64,
    frames: &[ProgressFrame],
) -> Result<Vec<(f64, f64)>, MetricError> {
    let Some(last) = frames.last() else {
        return Err(MetricError::NoScreenshots);
    };
    let target = last.histogram()?;
    let mut times_ms = vec![start_ms];
    times_ms.extend(frames.iter().map(|frame| frame.at_ms));
    // Animations show the same pictures repeatedly.
    let percents: RefCell<HashMap<&str, f64>> = RefCell::default();
    let percent_at = |index: usize| {
        let Some(frame) = index.checked_sub(1).map(|at| &frames[at]) else {
            return Ok(percent_of(&[[0; 256]; 3], target));
        };
        let image = frame.shot.base64();
        if let Some(percent) = percents.borrow().get(image) {
            return Ok(*percent);
        }
        let percent = percent_of(frame.histogram()?, target);
        percents.borrow_mut().insert(image, percent);
        Ok(percent)
    };
    let mut percent = vec![0.0; times_ms.len()];
    let end = times_ms.len() - 1;
    percent[0] = percent_at(0)?;
    percent[end] = percent_at(end)?;
    fill(&mut percent, &times_ms, (0, end), &percent_at)?;
    Ok(times_ms.into_iter().zip(percent).collect())
}

/// Fills in the progress between two computed frames: all frames in between get the earlier one's
/// progress if the two differ little, otherwise the middle one is computed and both halves are
/// filled recursively.
fn fill(
    percent: &mut [f64],
    times_ms: &[f64],
    (from, to): (usize, usize),
    percent_at: &impl Fn(usize) -> Result<f64, MetricError>,
) -> Result<(), MetricError> {
    let change = (percent[from] - percent[to]).abs();
    if change < negligible_change(times_ms[to] - times_ms[from]) {
        let same = percent[from];
        percent[from + 1..to].fill(same);
    } else if to - from > 1 {
        let middle = usize::midpoint(from, to);
        percent[middle] = percent_at(middle)?;
        fill(percent, times_ms, (from, middle), percent_at)?;
        fill(percent, times_ms, (middle, to), percent_at)?;
    }
    Ok(())
}

/// Returns the difference in percentage points that is negligible: 5 between frames at the same
/// time, 3 for a second apart, and negative for frames far apart.
fn negligible_change(elapsed_ms: f64) -> f64 {
    const AT_ONCE: f64 = 5.0;
    const AFTER_A_SECOND: f64 = 3.0;
    const AT_THE_END: f64 = -1.0;
    let span = AT_ONCE - AT_THE_END;
    let decay_per_second = ((AFTER_A_SECOND - AT_THE_END) / span).ln();
    span * (decay_per_second * elapsed_ms / 1000.0).exp() + AT_THE_END
}

/// Returns the share of the final picture's pixels that are present already, by value and channel,
/// in whole percent.
fn percent_of(now: &Histogram, target: &Histogram) -> f64 {
    let pairs = now.iter().flatten().zip(target.iter().flatten());
    let present: u64 = pairs.map(|(now, target)| u64::from(*now.min(target))).sum();
    let all: u64 = target.iter().flatten().map(|count| u64::from(*count)).sum();
    if all == 0 {
        return 100.0;
    }
    (present as f64 / all as f64 * 100.0).floor()
}
