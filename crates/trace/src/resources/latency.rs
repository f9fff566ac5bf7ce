//! Round-trip times and response times by origin.

use std::collections::BTreeMap;

use url::Url;

use super::Resource;
use crate::timing::ResourceTiming;

/// The measurements of one origin. Each is the minimum, because other requests may have queued
/// behind earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OriginLatency {
    /// The round trip measured from opening connections; `None` if none was opened.
    pub rtt_ms: Option<f64>,
    /// The time from the end of a request to the response headers, including the round trip.
    pub wait_ms: Option<f64>,
}

impl OriginLatency {
    /// Returns the time that the server itself took.
    pub fn response_ms(&self, nearest_ms: f64) -> Option<f64> {
        Some((self.wait_ms? - self.rtt_ms.unwrap_or(nearest_ms)).max(0.0))
    }
}

/// Returns the measurements by origin (Lighthouse: lantern/core/NetworkAnalyzer.js, which takes the
/// median wait).
pub fn origin_latencies(resources: &[Resource]) -> BTreeMap<String, OriginLatency> {
    let mut by_origin: BTreeMap<String, OriginLatency> = BTreeMap::new();
    for resource in resources {
        let Ok(url) = Url::parse(&resource.url) else {
            continue;
        };
        let (Some(timing), true) = (resource.timing(), url.origin().is_tuple()) else {
            continue;
        };
        let latency = by_origin
            .entry(url.origin().ascii_serialization())
            .or_default();
        if !resource.connection_reused {
            latency.rtt_ms = min(latency.rtt_ms, handshake_ms(timing));
        }
        if timing.send_end_us >= 0.0 && timing.receive_headers_end_us >= 0.0 {
            let wait_ms = timing.receive_headers_end_us / 1000.0 - timing.send_end_us / 1000.0;
            latency.wait_ms = min(latency.wait_ms, Some(wait_ms));
        }
    }
    by_origin
}

fn min(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::min)
}

/// Returns the duration of one round trip, derived from the time to open the connection.
fn handshake_ms(timing: &ResourceTiming) -> Option<f64> {
    if timing.connect_start_us < 0.0 || timing.connect_end_us < 0.0 {
        return None;
    }
    let is_tls = timing.ssl_start_us >= 0.0
        && timing.ssl_end_us >= 0.0
        && timing.ssl_start_us != timing.connect_start_us;
    // Each time is converted on its own, so that figures are the same as in earlier reports.
    let [connect_start_ms, connect_end_ms, ssl_start_ms] = [
        timing.connect_start_us,
        timing.connect_end_us,
        timing.ssl_start_us,
    ]
    .map(|us| us / 1000.0);
    Some(if is_tls {
        (connect_end_ms - ssl_start_ms).min(ssl_start_ms - connect_start_ms)
    } else {
        connect_end_ms - connect_start_ms
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::exchanges::{Exchange, Response};

    fn resource(url: &str, connect_ms: f64, wait_ms: f64) -> Resource {
        let timing = ResourceTiming {
            connect_start_us: 0.0,
            connect_end_us: connect_ms * 1000.0,
            send_end_us: connect_ms * 1000.0,
            receive_headers_end_us: (connect_ms + wait_ms) * 1000.0,
            ..ResourceTiming::default()
        };
        Resource {
            exchange: Arc::new(Exchange {
                url: url.to_owned(),
                response: Some(Response {
                    timing: Some(timing),
                    ..Response::default()
                }),
                ..Exchange::default()
            }),
            ..Resource::default()
        }
    }

    #[test]
    fn the_minimum_of_an_origin_counts() {
        let latency = origin_latencies(&[
            resource("https://a.test/1", 150.0, 400.0),
            resource("https://a.test/2", 170.0, 180.0),
            resource("https://b.test/", 200.0, 230.0),
        ]);
        let a = latency["https://a.test"];
        assert_eq!((a.rtt_ms, a.response_ms(0.0)), (Some(150.0), Some(30.0)));
        assert_eq!(latency["https://b.test"].rtt_ms, Some(200.0));
    }
}
