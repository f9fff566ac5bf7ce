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
pub(super) fn of_device(
    page: &Caller,
    device: &Device,
) -> impl Future<Output = Result<Screenshot, CallError>> + use<> {
    take(page, device_pixels(device), QUALITY)
}

/// Takes a screenshot of a viewport with this width and height in device pixels.
pub(crate) fn take(
    page: &Caller,
    (width_px, height_px): (u32, u32),
    quality: u32,
) -> impl Future<Output = Result<Screenshot, CallError>> + use<> {
    #[derive(Deserialize)]
    struct Captured {
        data: String,
    }
    let params = json!({"format": FORMAT, "quality": quality, "optimizeForSpeed": true});
    let capturing = page.call::<Captured>("Page.captureScreenshot", params);
    async move {
        Ok(Screenshot {
            mime_type: format!("image/{FORMAT}"),
            width_px,
            height_px,
            data: capturing.await?.data,
        })
    }
}

/// Returns the width and height of a device's viewport in device pixels.
pub(crate) fn device_pixels(device: &Device) -> (u32, u32) {
    let in_device_pixels = |css_pixels: u32| (f64::from(css_pixels) * device.scale).round() as u32;
    (
        in_device_pixels(device.viewport.width),
        in_device_pixels(device.viewport.height),
    )
}
