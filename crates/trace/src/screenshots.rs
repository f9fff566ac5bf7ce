//! Screenshots of the page while it loads.

use serde::Deserialize;

use crate::event::TraceEvent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base64(String);

/// A screenshot of the viewport, taken when a frame was drawn.
#[derive(Debug, Clone)]
pub struct TracedScreenshot {
    pub ts_us: f64,
    encoded: Base64,
}

#[derive(Deserialize)]
struct ScreenshotArgs {
    snapshot: String,
}

impl TracedScreenshot {
    /// Reads the screenshot of an event. Recent Chromium writes instant events and older versions
    /// object snapshots, with the image in the same argument.
    pub(crate) fn of(event: &TraceEvent) -> Option<Self> {
        let args = event.args::<ScreenshotArgs>()?;
        Some(Self {
            ts_us: event.ts_us,
            encoded: Base64(args.snapshot),
        })
    }

    /// Returns the image as in the trace: a JPEG file in Base64.
    pub fn base64(&self) -> &str {
        &self.encoded.0
    }

    /// Decodes the image as a JPEG file; returns `None` if the trace has no valid Base64.
    pub fn jpeg(&self) -> Option<Vec<u8>> {
        self.encoded.decode()
    }
}

/// Returns the screenshots since the time origin in order, without consecutive duplicates.
pub(crate) fn distinct_from(
    mut shots: Vec<TracedScreenshot>,
    time_origin_us: f64,
) -> Vec<TracedScreenshot> {
    shots.retain(|shot| shot.ts_us >= time_origin_us);
    shots.sort_by(|a, b| a.ts_us.total_cmp(&b.ts_us));
    shots.dedup_by(|later, earlier| later.encoded == earlier.encoded);
    shots
}

impl Base64 {
    fn decode(&self) -> Option<Vec<u8>> {
        let text = self.0.trim_end_matches('=').as_bytes();
        let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
        for group in text.chunks(4) {
            let mut bits = 0_u32;
            for symbol in group {
                bits = bits << 6 | u32::from(sextet(*symbol)?);
            }
            bits <<= 6 * (4 - group.len());
            let whole_bytes = group.len() * 6 / 8;
            bytes.extend_from_slice(&bits.to_be_bytes()[1..=whole_bytes]);
        }
        Some(bytes)
    }
}

fn sextet(symbol: u8) -> Option<u8> {
    Some(match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shot(ts_us: f64, picture: &str) -> TracedScreenshot {
        TracedScreenshot {
            ts_us,
            encoded: Base64(picture.to_owned()),
        }
    }

    fn encode(bytes: &[u8]) -> String {
        const SYMBOLS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let mut padded = [0; 4];
            padded[1..=group.len()].copy_from_slice(group);
            let bits = u32::from_be_bytes(padded);
            for place in 0..4 {
                let symbol = SYMBOLS[(bits >> (18 - 6 * place) & 63) as usize];
                text.push(if place <= group.len() {
                    symbol as char
                } else {
                    '='
                });
            }
        }
        text
    }

    #[test]
    fn screenshots_before_the_navigation_and_repeated_ones_are_omitted() {
        let shots = vec![
            shot(30.0, "B"),
            shot(10.0, "A"),
            shot(20.0, "A"),
            shot(25.0, "A"),
            shot(40.0, "A"),
        ];
        let times_us: Vec<f64> = distinct_from(shots, 20.0)
            .iter()
            .map(|shot| shot.ts_us)
            .collect();
        assert_eq!(times_us, [20.0, 30.0, 40.0]);
    }

    #[test]
    fn invalid_base64_is_no_screenshot() {
        assert_eq!(shot(0.0, "not base64!").jpeg(), None);
    }

    proptest! {
        #[test]
        fn encoded_bytes_are_decoded_unchanged(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(shot(0.0, &encode(&bytes)).jpeg(), Some(bytes));
        }
    }
}
