//! What the trace alone knows about requests: which ones held up the first paint, and which picture was the
//! largest.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::event::Event;

/// From the whole trace.
#[derive(Debug, Clone, Default)]
pub struct RequestHints {
    /// Ids of the requests that Chromium painted nothing without.
    pub render_blocking: BTreeSet<String>,
    /// Addresses of the pictures that were candidates for the largest paint, with their times, in order.
    pub largest_images: Vec<(f64, String)>,
}

#[derive(Deserialize)]
struct InData<T> {
    data: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    request_id: String,
    render_blocking: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    image_url: String,
}

impl RequestHints {
    pub(crate) fn see(&mut self, event: &Event) {
        match event.name.as_ref() {
            "ResourceSendRequest" => {
                if let Some(InData { data }) = event.args::<InData<Sent>>()
                    && let Some("blocking" | "in_body_parser_blocking") =
                        data.render_blocking.as_deref()
                {
                    self.render_blocking.insert(data.request_id);
                }
            }
            "LargestImagePaint::Candidate" => {
                if let Some(InData { data }) = event.args::<InData<Image>>() {
                    self.largest_images.push((event.ts_us, data.image_url));
                }
            }
            _ => {}
        }
    }

    pub(crate) fn in_order(mut self) -> Self {
        self.largest_images.sort_by(|a, b| a.0.total_cmp(&b.0));
        self
    }
}
