use plumbline_bundle::Screenshot;
use plumbline_catalog::Device;
use serde::Deserialize;
use serde_json::json;

use crate::visit::Page;

/// Small enough for a report, with readable text.
const QUALITY: u32 = 70;

/// What a visitor would see at the end, in device pixels.
pub(crate) async fn screenshot(page: &mut Page<'_>, device: &Device) -> Option<Screenshot> {
    #[derive(Deserialize)]
    struct Captured {
        data: String,
    }
    let params = json!({"format": "webp", "quality": QUALITY, "optimizeForSpeed": true});
    match page
        .call::<Captured>("Page.captureScreenshot", params)
        .await
    {
        Ok(Captured { data }) => Some(Screenshot {
            mime_type: "image/webp".to_owned(),
            width_px: in_device_pixels(device.viewport.width, device.scale),
            height_px: in_device_pixels(device.viewport.height, device.scale),
            data,
        }),
        Err(error) => {
            page.warn(format!("No picture of the page could be taken: {error}."));
            None
        }
    }
}

fn in_device_pixels(css_pixels: u32, scale: f64) -> u32 {
    (f64::from(css_pixels) * scale).round() as u32
}
