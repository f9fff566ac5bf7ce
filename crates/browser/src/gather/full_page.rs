//! A picture of the whole page, for showing elements that are not on the first screen.

use std::time::Duration;

use plumbline_catalog::Device;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Gathered, gathered, missing, nothing};
use crate::visit::Caller;

pub(super) const ARTIFACT: &str = "full-page-picture";

/// For each call; all of it has ten seconds.
const DEADLINE: Duration = Duration::from_secs(8);
/// What shows where an element is needs no fine print (Lighthouse: gatherers/full-page-screenshot.js, 30).
const QUALITY: u32 = 30;
/// As WebP it would be a third smaller, and take Chromium 200 ms longer.
const FORMAT: &str = "jpeg";
/// What browsers and tools still show (and the most that WebP knows, which others pack it as).
const MAX_WIDTH_PX: f64 = 16_383.0;
/// Seven screens of a phone. Chromium paints all of it at the device's own resolution first: 16,000 pixels took a second
/// longer.
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
struct Captured {
    data: String,
}

/// Sizes in CSS pixels, which are the picture's.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Picture {
    mime_type: String,
    width: f64,
    height: f64,
    /// How far the page was scrolled: elements are measured from the screen's corner, the picture is not.
    scrolled_x: f64,
    scrolled_y: f64,
    data: String,
}

/// Null where the first screen shows all there is.
pub(super) async fn gather(page: &Caller, device: &Device) -> Gathered {
    let metrics: Metrics = page
        .call_within(DEADLINE, "Page.getLayoutMetrics", json!({}))
        .await
        .map_err(|error| missing(&error))?;
    let (content, seen) = (&metrics.css_content_size, &metrics.css_layout_viewport);
    if content.height <= seen.client_height && content.width <= seen.client_width {
        return nothing();
    }
    let width = content.width.clamp(1.0, MAX_WIDTH_PX).floor();
    let height = content.height.clamp(1.0, MAX_HEIGHT_PX).floor();
    // A picture of a page on a screen with finer pixels would be as many times larger.
    let scale = 1.0 / device.scale;
    let params = json!({
        "format": FORMAT,
        "quality": QUALITY,
        "optimizeForSpeed": true,
        "captureBeyondViewport": true,
        "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": scale},
    });
    let captured: Captured = page
        .call_within(DEADLINE, "Page.captureScreenshot", params)
        .await
        .map_err(|error| missing(&error))?;
    gathered(&Picture {
        mime_type: format!("image/{FORMAT}"),
        width,
        height,
        scrolled_x: seen.page_x,
        scrolled_y: seen.page_y,
        data: captured.data,
    })
}
