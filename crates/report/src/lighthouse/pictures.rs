//! Screenshots of the page, with the positions of elements that checks list.

use plumbline_bundle::{Artifact, Bundle, FullPagePicture, Screenshot};
use plumbline_trace::Trace;
use serde_json::{Map, Value, json};

use super::details::Rect;

/// The number of thumbnails of a filmstrip (core/audits/screenshot-thumbnails.js).
const THUMBNAILS: u32 = 8;
/// The minimum duration of a filmstrip.
const MIN_FILM_MS: f64 = 3000.0;

/// The screenshots of a bundle.
#[derive(Default)]
pub(super) struct Pictures<'a> {
    last: Option<&'a Screenshot>,
    full_page: Option<FullPagePicture>,
    trace: Option<Trace>,
    page: Value,
    nodes: Map<String, Value>,
}

impl<'a> Pictures<'a> {
    pub(super) fn of(bundle: Option<&'a Bundle>) -> Self {
        let Some(bundle) = bundle else {
            return Self::default();
        };
        let page = match bundle.artifacts.get("page") {
            Some(Artifact::Gathered(page)) => serde_json::from_str(page.get()).unwrap_or_default(),
            _ => Value::Null,
        };
        let full_page = match bundle.artifacts.get(FullPagePicture::ARTIFACT) {
            Some(Artifact::Gathered(full_page)) => serde_json::from_str(full_page.get()).ok(),
            _ => None,
        };
        Self {
            full_page,
            last: bundle.screenshot.as_ref(),
            trace: Trace::read(&bundle.trace).ok(),
            page,
            nodes: Map::new(),
        }
    }

    pub(super) fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    fn scale(&self) -> f64 {
        let scale = self.page["devicePixelRatio"].as_f64().unwrap_or(1.0);
        if scale > 0.0 { scale } else { 1.0 }
    }

    /// The size in CSS pixels, in which elements are measured.
    fn size(&self) -> Option<(f64, f64)> {
        if let Some(full_page) = &self.full_page {
            return Some((full_page.width, full_page.height));
        }
        let last = self.last?;
        let css = |px: u32| (f64::from(px) / self.scale()).round();
        Some((css(last.width_px), css(last.height_px)))
    }

    /// Adds the position of an element and returns its id; `None` if the screenshot does not show
    /// it.
    pub(super) fn add_node(&mut self, mut rect: Rect) -> Option<String> {
        let (width, height) = self.size()?;
        if let Some(full_page) = &self.full_page {
            rect.left += full_page.scrolled_x;
            rect.top += full_page.scrolled_y;
        }
        let is_visible = rect.width > 0.0
            && rect.height > 0.0
            && (0.0..width).contains(&rect.left)
            && (0.0..height).contains(&rect.top)
            && rect.left + rect.width <= width
            && rect.top + rect.height <= height;
        is_visible.then(|| {
            let id = format!("node-{}", self.nodes.len());
            let mut place = rect.value();
            place["id"] = json!("");
            self.nodes.insert(id.clone(), place);
            id
        })
    }

    /// Returns the emulated screen.
    pub(super) fn screen(&self, is_mobile: bool) -> Value {
        json!({
            "mobile": is_mobile,
            "width": self.page["innerWidth"].as_f64().unwrap_or_default(),
            "height": self.page["innerHeight"].as_f64().unwrap_or_default(),
            "deviceScaleFactor": self.scale(),
            "disabled": false,
        })
    }

    /// Returns the screenshot of the full page, or else of the first screen, with the positions of
    /// elements.
    pub(super) fn full_page(&self) -> Value {
        let first_screen = self.last.map(|last| (&last.mime_type, &last.data));
        let full_page = self
            .full_page
            .as_ref()
            .map(|full_page| (&full_page.mime_type, &full_page.data));
        let (Some((mime_type, data)), Some((width, height))) =
            (full_page.or(first_screen), self.size())
        else {
            return Value::Null;
        };
        json!({
            "screenshot": {
                "data": format!("data:{mime_type};base64,{data}"),
                "width": width,
                "height": height,
            },
            "nodes": self.nodes,
        })
    }

    /// Returns the audits.
    pub(super) fn audits(&self) -> Vec<Value> {
        self.film()
            .into_iter()
            .chain(self.final_screenshot())
            .collect()
    }

    /// Returns thumbnails at regular intervals.
    fn film(&self) -> Option<Value> {
        let trace = self.trace.as_ref()?;
        let last = trace.screenshots.last()?;
        let end_ms = trace.since_origin_ms(last.ts_us).max(MIN_FILM_MS);
        let items: Vec<Value> = (1..=THUMBNAILS)
            .filter_map(|number| {
                let at_ms = end_ms * f64::from(number) / f64::from(THUMBNAILS);
                let at_us = trace.navigation.time_origin_us + at_ms * 1e3;
                let until = trace
                    .screenshots
                    .partition_point(|shot| shot.ts_us <= at_us);
                let shot = trace.screenshots.get(until.saturating_sub(1))?;
                Some(json!({
                    "timing": at_ms.round(),
                    "timestamp": at_us.round(),
                    "data": jpeg(shot.base64()),
                }))
            })
            .collect();
        Some(informative(
            "screenshot-thumbnails",
            "Filmstrip",
            "Screenshots taken while the page loaded.",
            json!({ "type": "filmstrip", "scale": end_ms, "items": items }),
        ))
    }

    fn final_screenshot(&self) -> Option<Value> {
        let trace = self.trace.as_ref()?;
        let last = trace.screenshots.last()?;
        Some(informative(
            "final-screenshot",
            "Final screenshot",
            "The last screenshot taken while the page loaded.",
            json!({
                "type": "screenshot",
                "timing": trace.since_origin_ms(last.ts_us).round(),
                "timestamp": last.ts_us,
                "data": jpeg(last.base64()),
            }),
        ))
    }
}

fn jpeg(base64: &str) -> String {
    format!("data:image/jpeg;base64,{base64}")
}

/// Returns an informative audit.
pub(super) fn informative(id: &str, title: &str, description: &str, details: Value) -> Value {
    json!({
        "id": id,
        "title": title,
        "description": description,
        "score": 1,
        "scoreDisplayMode": "informative",
        "details": details,
    })
}
