//! The times of a video's frames.

/// The shortest time for which a frame is shown. Browsers show frames of up to 10 ms for 100 ms.
const MIN_FRAME_MS: u32 = 20;
/// The intervals between two captions to choose from.
const TICKS_MS: [u32; 8] = [100, 200, 500, 1000, 2000, 5000, 10_000, 30_000];
/// The maximum number of captions between pictures, so that they stay a small part of the file.
const MAX_TICKS: u32 = 200;

/// A frame of the video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) at_ms: u32,
    /// The screenshot that it shows; `None` before the first.
    pub(super) shot: Option<usize>,
}

/// Returns the indexes of at most `max` of the screenshots at these times, which are in order: the
/// last in each of `max` equal parts of the load.
pub(super) fn thinned(times_ms: &[u32], max: usize) -> Vec<usize> {
    let Some(last_ms) = times_ms.last() else {
        return Vec::new();
    };
    if times_ms.len() <= max {
        return (0..times_ms.len()).collect();
    }
    let span_ms = u64::from(*last_ms) + 1;
    let part = |index: usize| u64::from(times_ms[index]) * max as u64 / span_ms;
    let is_last = |index: &usize| {
        let next = index + 1;
        next == times_ms.len() || part(next) > part(*index)
    };
    (0..times_ms.len()).filter(is_last).collect()
}

/// Returns the frames of a video with screenshots at these times, which are in order: the first at
/// 0, one for each screenshot, and one whenever the caption changes.
pub(super) fn moments(times_ms: &[u32]) -> Vec<Moment> {
    let last_ms = times_ms.last().copied().unwrap_or_default();
    let fits = |tick_ms: &u32| last_ms / tick_ms <= MAX_TICKS;
    let tick_ms = TICKS_MS.into_iter().find(fits).unwrap_or(u32::MAX);
    let mut all_ms: Vec<u32> = (1..=last_ms / tick_ms).map(|tick| tick * tick_ms).collect();
    all_ms.extend(times_ms);
    all_ms.sort_unstable();
    // Of several frames that follow each other too soon, the last is shown, which is true at its
    // time.
    let mut from_end: Vec<u32> = Vec::new();
    for at_ms in all_ms.into_iter().rev() {
        let is_long_enough = |next_ms: &u32| at_ms + MIN_FRAME_MS <= *next_ms;
        if at_ms >= MIN_FRAME_MS && from_end.last().is_none_or(is_long_enough) {
            from_end.push(at_ms);
        }
    }
    from_end.push(0);
    let moment = |at_ms: u32| {
        // The first frame also stands for what is too soon after it.
        let until_ms = at_ms.max(MIN_FRAME_MS - 1);
        Moment {
            at_ms,
            shot: times_ms.iter().rposition(|shot_ms| *shot_ms <= until_ms),
        }
    };
    from_end.into_iter().rev().map(moment).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_begin_with_the_navigation_with_screenshots_and_with_captions() {
        let moment = |at_ms, shot| Moment { at_ms, shot };
        assert_eq!(
            moments(&[130, 190, 210, 305]),
            [
                moment(0, None),
                moment(100, None),
                moment(130, Some(0)),
                moment(190, Some(1)),
                moment(210, Some(2)),
                moment(305, Some(3)),
            ]
        );
        assert_eq!(moments(&[5]), [moment(0, Some(0))]);
        assert_eq!(moments(&[]), [moment(0, None)]);
    }

    #[test]
    fn long_visits_are_thinned_evenly() {
        let times_ms: Vec<u32> = (0..450).map(|index| index * 22).collect();
        let kept = thinned(&times_ms, 150);
        assert_eq!((kept.len(), kept[149]), (150, 449));
        let gaps_ms: Vec<u32> = kept
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as u32 * 22)
            .collect();
        assert!(
            gaps_ms.iter().all(|gap_ms| (44..=88).contains(gap_ms)),
            "{gaps_ms:?}"
        );
    }

    proptest! {
        #[test]
        fn frames_are_few_and_each_shows_the_screenshot_of_its_time(
            mut times_ms in proptest::collection::vec(0_u32..4_000_000, 1..400),
            max in 1_usize..200,
        ) {
            times_ms.sort_unstable();
            let kept = thinned(&times_ms, max);
            prop_assert!(kept.len() <= max && kept.last() == Some(&(times_ms.len() - 1)));
            let kept_ms: Vec<u32> = kept.iter().map(|index| times_ms[*index]).collect();
            let moments = moments(&kept_ms);
            prop_assert!(moments.len() <= max + MAX_TICKS as usize + 1);
            prop_assert_eq!(moments[0].at_ms, 0);
            prop_assert_eq!(moments.last().unwrap().shot, Some(kept.len() - 1));
            for pair in moments.windows(2) {
                let length_ms = pair[1].at_ms - pair[0].at_ms;
                prop_assert!((MIN_FRAME_MS..=u32::from(u16::MAX)).contains(&length_ms));
            }
            for moment in moments {
                if let Some(shot) = moment.shot {
                    prop_assert!(kept_ms[shot] <= moment.at_ms.max(MIN_FRAME_MS));
                }
            }
        }
    }
}
