//! Collects the trace's events about resources until the end of the trace.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::Deserialize;

use super::request_events::RequestEvents;
use super::{ImagePaint, Preconnect, RemoteFont, Resources};
use crate::event::{TraceEvent, WithData};
use crate::exchanges::Exchange;

#[derive(Debug, Default)]
pub(crate) struct ResourceEvents {
    by_id: HashMap<String, RequestEvents>,
    image_paints: Vec<ImagePaint>,
    remote_fonts: Vec<RemoteFont>,
    preconnects: Vec<Preconnect>,
    handled_xhrs: BTreeSet<(i64, String)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestId {
    request_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImagePaintArgs {
    #[serde(default)]
    url: String,
    #[serde(default)]
    frame: String,
    node_id: Option<i64>,
    #[serde(default)]
    width: f64,
    #[serde(default)]
    height: f64,
    #[serde(default)]
    src_width: f64,
    #[serde(default)]
    src_height: f64,
    #[serde(default, rename = "isCSS")]
    is_css: bool,
    #[serde(default)]
    is_picture: bool,
    #[serde(default)]
    srcset_attribute: String,
}

#[derive(Deserialize)]
struct FontArgs {
    id: serde_json::Value,
    #[serde(default)]
    url: String,
    #[serde(default)]
    display: String,
}

#[derive(Deserialize)]
struct Connecting {
    url: String,
    node_id: Option<i64>,
}

#[derive(Deserialize)]
struct XhrArgs {
    url: String,
}

impl ResourceEvents {
    pub(crate) fn record(&mut self, event: &TraceEvent) {
        match event.name.as_ref() {
            "ResourceWillSendRequest"
            | "ResourceSendRequest"
            | "ResourceReceiveResponse"
            | "ResourceFinish"
            | "ResourceMarkAsCached"
            | "ResourceChangePriority"
            | "PreloadRenderBlockingStatusChange" => self.record_request_event(event),
            "PaintImage" => self.record_image(event),
            "BeginRemoteFontLoad" => {
                if let Some(args) = event.args::<FontArgs>() {
                    let number = args.id.to_string().replace('"', "");
                    self.remote_fonts.push(RemoteFont {
                        ts_us: event.ts_us,
                        resource_id: format!("{}.{number}", event.process),
                        url: args.url,
                        display: args.display,
                    });
                }
            }
            "XHRReadyStateChange" | "XHRLoad" => {
                if let Some(args) = event.args::<WithData<XhrArgs>>() {
                    self.handled_xhrs.insert((event.process, args.data.url));
                }
            }
            "LinkPreconnect" => {
                if let Some(args) = event.args::<WithData<Connecting>>() {
                    self.preconnects.push(Preconnect {
                        ts_us: event.ts_us,
                        url: args.data.url,
                        node_id: args.data.node_id,
                    });
                }
            }
            _ => {}
        }
    }

    fn record_request_event(&mut self, event: &TraceEvent) {
        let Some(args) = event.args::<WithData<RequestId>>() else {
            return;
        };
        let request_events = self.by_id.entry(args.data.request_id).or_default();
        request_events.record(event);
    }

    fn record_image(&mut self, event: &TraceEvent) {
        let Some(WithData { data }) = event.args::<WithData<ImagePaintArgs>>() else {
            return;
        };
        self.image_paints.push(ImagePaint {
            ts_us: event.ts_us,
            dur_us: event.dur_us.unwrap_or(0.0),
            url: data.url,
            frame: data.frame,
            node_id: data.node_id,
            width_px: data.width,
            height_px: data.height,
            natural_width_px: data.src_width,
            natural_height_px: data.src_height,
            is_css: data.is_css,
            is_picture: data.is_picture,
            has_srcset: !data.srcset_attribute.is_empty(),
        });
    }

    /// Returns the exchanges in order of their start, and the resources.
    pub(crate) fn resolve(self) -> (Vec<Arc<Exchange>>, Resources) {
        let mut requests: Vec<(String, RequestEvents)> = self.by_id.into_iter().collect();
        // Ids break ties, so that the same trace always gives the same order.
        requests.sort_by(|(id_a, a), (id_b, b)| {
            let (a_us, b_us) = (a.first_us(), b.first_us());
            a_us.total_cmp(&b_us).then_with(|| id_a.cmp(id_b))
        });
        let mut exchanges = Vec::new();
        let mut resources = Resources {
            image_paints: self.image_paints,
            remote_fonts: self.remote_fonts,
            preconnects: self.preconnects,
            handled_xhrs: self.handled_xhrs,
            ..Resources::default()
        };
        for (id, request_events) in requests {
            let (chain, resource) = request_events.resolve(&id);
            exchanges.extend(chain);
            resources.all.extend(resource);
        }
        exchanges.sort_by(|a, b| a.sent_us.total_cmp(&b.sent_us));
        let by_time = |a: &f64, b: &f64| a.total_cmp(b);
        resources
            .image_paints
            .sort_by(|a, b| by_time(&a.ts_us, &b.ts_us));
        resources
            .remote_fonts
            .sort_by(|a, b| by_time(&a.ts_us, &b.ts_us));
        resources
            .preconnects
            .sort_by(|a, b| by_time(&a.ts_us, &b.ts_us));
        (exchanges, resources)
    }
}
