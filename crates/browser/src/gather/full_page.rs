//! Takes a screenshot of the whole page, to show elements below the first screen.

use std::time::Duration;

use plumbline_bundle::FullPagePicture;
use plumbline_catalog::Device;
use serde::Deserialize;
use serde_json::json;

use super::{Gathered, error_text, null_artifact, to_artifact};
use crate::page::Caller;

/// Timeout of each call; all together have ten seconds.
const DEADLINE: Duration = Duration::from_secs(8);
/// JPEG quality, low because the image only shows where an element is (Lighthouse:
/// gatherers/full-page-screenshot.js, 30).
const QUALITY: u32 = 30;
/// Image format. WebP would be a third smaller, and take Chromium 200 ms longer.
const FORMAT: &str = "jpeg";
/// Maximum width that browsers and tools can show (and that WebP supports, if others convert to
/// it).
const MAX_WIDTH_PX: f64 = 16_383.0;
/// Maximum height, seven screens of a phone. Chromium paints all of it at the device's own
/// resolution first: 16,000 pixels took a second longer.
const MAX_HEIGHT_PX: f64 = 6_000.0;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    css_layout_viewport: Viewport,
    css_content_size: Size,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Viewport {
    page_x: f64,
    page_y: f64,
    client_width: f64,
    client_height: f64,
}

#[derive(Deserialize)]
struct Size {
    width: f64,
    height: f64,
}

#[derive(Deserialize)]
struct Capture {
    data: String,
}

/// Takes the screenshot; null if the first screen shows the whole page.
pub(super) async fn gather(page: &Caller, device: &Device) -> Gathered {
    let metrics: Metrics = page
        .call_within(DEADLINE, "Page.getLayoutMetrics", json!({}))
        .await
        .map_err(|error| error_text(&error))?;
    let (content, viewport) = (&metrics.css_content_size, &metrics.css_layout_viewport);
    if content.height <= viewport.client_height && content.width <= viewport.client_width {
        return null_artifact();
    }
    let width = content.width.clamp(1.0, MAX_WIDTH_PX).floor();
    let height = content.height.clamp(1.0, MAX_HEIGHT_PX).floor();
    // The image would otherwise be larger by the device's pixel ratio.
    let scale = 1.0 / device.scale;
    let params = json!({
        "format": FORMAT,
        "quality": QUALITY,
        "optimizeForSpeed": true,
        "captureBeyondViewport": true,
        "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": scale},
    });
    let capture: Capture = page
        .call_within(DEADLINE, "Page.captureScreenshot", params)
        .await
        .map_err(|error| error_text(&error))?;
    to_artifact(&FullPagePicture {
        mime_type: format!("image/{FORMAT}"),
        width,
        height,
        scrolled_x: viewport.page_x,
        scrolled_y: viewport.page_y,
        data: capture.data,
    })
}
