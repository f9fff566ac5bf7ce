//! Pictures of the page, and where on the last one the elements are that checks name.

use plumbline_bundle::{Artifact, Bundle, Screenshot};
use plumbline_trace::Trace;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::details::Rect;

/// How many thumbnails a filmstrip has (core/audits/screenshot-thumbnails.js), and what it covers at least.
const THUMBNAILS: u32 = 8;
const SHORTEST_FILM_MS: f64 = 3000.0;

/// The page from top to bottom, in CSS pixels, as far as a picture can be (browser: gather/full_page.rs).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Whole {
    mime_type: String,
    width: f64,
    height: f64,
    scrolled_x: f64,
    scrolled_y: f64,
    data: String,
}

#[derive(Default)]
pub(super) struct Pictures<'a> {
    last: Option<&'a Screenshot>,
    whole: Option<Whole>,
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
        let whole = match bundle.artifacts.get("full-page-picture") {
            Some(Artifact::Gathered(whole)) => serde_json::from_str(whole.get()).ok(),
            _ => None,
        };
        Self {
            whole,
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

    /// In CSS pixels, which is what elements are measured in.
    fn size(&self) -> Option<(f64, f64)> {
        if let Some(whole) = &self.whole {
            return Some((whole.width, whole.height));
        }
        let last = self.last?;
        let css = |px: u32| (f64::from(px) / self.scale()).round();
        Some((css(last.width_px), css(last.height_px)))
    }

    /// Under which name the picture shows the element; none where it is not on the picture.
    pub(super) fn show(&mut self, mut rect: Rect) -> Option<String> {
        let (width, height) = self.size()?;
        if let Some(whole) = &self.whole {
            rect.left += whole.scrolled_x;
            rect.top += whole.scrolled_y;
        }
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
        let seen = self.last.map(|last| (&last.mime_type, &last.data));
        let whole = self
            .whole
            .as_ref()
            .map(|whole| (&whole.mime_type, &whole.data));
        let (Some((mime_type, data)), Some((width, height))) = (whole.or(seen), self.size()) else {
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
