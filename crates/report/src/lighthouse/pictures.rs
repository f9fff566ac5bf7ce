//! Pictures of the page, and where on the last one the elements are that checks name.

use plumbline_bundle::{Artifact, Bundle, Screenshot};
use plumbline_trace::Trace;
use serde_json::{Map, Value, json};

use super::details::Rect;

/// How many thumbnails a filmstrip has (core/audits/screenshot-thumbnails.js), and what it covers at least.
const THUMBNAILS: u32 = 8;
const SHORTEST_FILM_MS: f64 = 3000.0;

#[derive(Default)]
pub(super) struct Pictures<'a> {
    last: Option<&'a Screenshot>,
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
        Self {
            last: bundle.screenshot.as_ref(),
            trace: Trace::read(&bundle.trace).ok(),
            page,
            nodes: Map::new(),
        }
    }

    fn scale(&self) -> f64 {
        let scale = self.page["devicePixelRatio"].as_f64().unwrap_or(1.0);
        if scale > 0.0 { scale } else { 1.0 }
    }

    /// In CSS pixels, which is what elements are measured in.
    fn size(&self) -> Option<(f64, f64)> {
        let last = self.last?;
        let css = |px: u32| (f64::from(px) / self.scale()).round();
        Some((css(last.width_px), css(last.height_px)))
    }

    /// Under which name the picture shows the element; none where it is not on the picture.
    pub(super) fn show(&mut self, rect: Rect) -> Option<String> {
        let (width, height) = self.size()?;
        let is_seen = rect.width > 0.0
            && rect.height > 0.0
            && (0.0..width).contains(&rect.left)
            && (0.0..height).contains(&rect.top)
            && rect.left + rect.width <= width
            && rect.top + rect.height <= height;
        is_seen.then(|| {
            let id = format!("node-{}", self.nodes.len());
            let mut place = rect.value();
            place["id"] = json!("");
            self.nodes.insert(id.clone(), place);
            id
        })
    }

    pub(super) fn screen(&self, is_mobile: bool) -> Value {
        json!({
            "mobile": is_mobile,
            "width": self.page["innerWidth"].as_f64().unwrap_or_default(),
            "height": self.page["innerHeight"].as_f64().unwrap_or_default(),
            "deviceScaleFactor": self.scale(),
            "disabled": false,
        })
    }

    pub(super) fn full_page(&self) -> Value {
        let (Some(last), Some((width, height))) = (self.last, self.size()) else {
            return Value::Null;
        };
        json!({
            "screenshot": {
                "data": format!("data:{};base64,{}", last.mime_type, last.data),
                "width": width,
                "height": height,
            },
            "nodes": self.nodes,
        })
    }

    pub(super) fn audits(&self) -> Vec<Value> {
        self.film()
            .into_iter()
            .chain(self.final_screenshot())
            .collect()
    }

    /// What was seen at even times up to the end.
    fn film(&self) -> Option<Value> {
        let trace = self.trace.as_ref()?;
        let last = trace.screenshots.last()?;
        let end_ms = trace.since_origin_ms(last.ts_us).max(SHORTEST_FILM_MS);
        let items: Vec<Value> = (1..=THUMBNAILS)
            .filter_map(|turn| {
                let at_ms = end_ms * f64::from(turn) / f64::from(THUMBNAILS);
                let at_us = trace.navigation.time_origin_us + at_ms * 1e3;
                let until = trace
                    .screenshots
                    .partition_point(|shot| shot.ts_us <= at_us);
                let seen = trace.screenshots.get(until.saturating_sub(1))?;
                Some(json!({
                    "timing": at_ms.round(),
                    "timestamp": at_us.round(),
                    "data": jpeg(seen.base64()),
                }))
            })
            .collect();
        Some(informative(
            "screenshot-thumbnails",
            "Pictures while loading",
            "What a visitor saw while the page loaded.",
            json!({ "type": "filmstrip", "scale": end_ms, "items": items }),
        ))
    }

    fn final_screenshot(&self) -> Option<Value> {
        let trace = self.trace.as_ref()?;
        let last = trace.screenshots.last()?;
        Some(informative(
            "final-screenshot",
            "The page at the end",
            "The last picture taken while the page loaded.",
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

/// An audit that scores nothing.
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
