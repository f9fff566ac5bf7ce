use std::future::Future;

use plumbline_bundle::Screenshot;
use plumbline_catalog::Device;
use serde::Deserialize;
use serde_json::json;

use crate::page::Caller;
use crate::protocol::CallError;

/// JPEG quality, small enough for a report, with readable text.
const QUALITY: u32 = 70;
/// Image format. Encoding takes Chromium 60 to 100 ms on a phone's screen as JPEG, 130 to 200 as
/// WebP at half the size; PNG is large.
const FORMAT: &str = "jpeg";

/// Takes a screenshot of the viewport at the end, in device pixels. It is requested immediately,
/// even if the future is awaited later.
pub(super) fn take(
    page: &Caller,
    device: &Device,
) -> impl Future<Output = Result<Screenshot, CallError>> + use<> {
    #[derive(Deserialize)]
    struct Captured {
        data: String,
    }
    let params = json!({"format": FORMAT, "quality": QUALITY, "optimizeForSpeed": true});
    let capturing = page.call::<Captured>("Page.captureScreenshot", params);
    let width_px = in_device_pixels(device.viewport.width, device.scale);
    let height_px = in_device_pixels(device.viewport.height, device.scale);
    async move {
        Ok(Screenshot {
            mime_type: format!("image/{FORMAT}"),
            width_px,
            height_px,
            data: capturing.await?.data,
        })
    }
}

fn in_device_pixels(css_pixels: u32, scale: f64) -> u32 {
    (f64::from(css_pixels) * scale).round() as u32
}
