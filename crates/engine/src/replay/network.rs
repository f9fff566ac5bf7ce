//! The network of the visit: bandwidth, round trips and the response times of servers.

use std::collections::{BTreeMap, HashMap};

use plumbline_trace::{Resource, ResourceTiming, Trace};
use url::Url;

pub(super) struct Network {
    pub(super) rtt_ms: f64,
    pub(super) bits_per_ms: f64,
    extra_rtt_ms: HashMap<String, f64>,
    response_ms: HashMap<String, f64>,
}

/// The response time that is assumed for servers without measurements.
const USUAL_RESPONSE_MS: f64 = 30.0;

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
        let (Some(timing), true) = (resource.timing, url.origin().is_tuple()) else {
            continue;
        };
        let latency = by_origin
            .entry(url.origin().ascii_serialization())
            .or_default();
        if !resource.connection_reused {
            latency.rtt_ms = min(latency.rtt_ms, handshake_ms(&timing));
        }
        if timing.send_end_ms >= 0.0 && timing.receive_headers_end_ms >= 0.0 {
            let wait_ms = timing.receive_headers_end_ms - timing.send_end_ms;
            latency.wait_ms = min(latency.wait_ms, Some(wait_ms));
        }
    }
    by_origin
}

fn min(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::min)
}

impl Network {
    /// Creates the network; returns `None` without a delay or a bandwidth limit, as nothing can be
    /// estimated then.
    pub(super) fn of(trace: &Trace, rtt_ms: f64, down_kbps: f64) -> Option<Self> {
        if rtt_ms <= 0.0 || down_kbps <= 0.0 {
            return None;
        }
        let origin_latencies = origin_latencies(&trace.resources.all);
        let rtts_ms = origin_latencies
            .values()
            .filter_map(|latency| latency.rtt_ms);
        let nearest_ms = rtts_ms.reduce(f64::min).unwrap_or(0.0);
        let by_origin = |of: &dyn Fn(&OriginLatency) -> Option<f64>| {
            let figure =
                |(origin, latency): (&String, &OriginLatency)| Some((origin.clone(), of(latency)?));
            origin_latencies.iter().filter_map(figure).collect()
        };
        Some(Self {
            rtt_ms,
            bits_per_ms: down_kbps,
            extra_rtt_ms: by_origin(&|latency| Some(latency.rtt_ms? - nearest_ms)),
            response_ms: by_origin(&|latency| latency.response_ms(nearest_ms)),
        })
    }

    /// Creates a network without measurements of servers.
    #[cfg(test)]
    pub(super) fn plain(rtt_ms: f64, bits_per_ms: f64) -> Self {
        Self {
            rtt_ms,
            bits_per_ms,
            extra_rtt_ms: HashMap::new(),
            response_ms: HashMap::new(),
        }
    }

    pub(super) fn extra_rtt_ms(&self, origin: &str) -> f64 {
        self.extra_rtt_ms.get(origin).copied().unwrap_or(0.0)
    }

    pub(super) fn response_ms(&self, origin: &str) -> f64 {
        self.response_ms
            .get(origin)
            .copied()
            .filter(|ms| *ms > 0.0)
            .unwrap_or(USUAL_RESPONSE_MS)
    }
}

/// Returns the duration of one round trip, derived from the time to open the connection.
fn handshake_ms(timing: &ResourceTiming) -> Option<f64> {
    if timing.connect_start_ms < 0.0 || timing.connect_end_ms < 0.0 {
        return None;
    }
    let is_tls = timing.ssl_start_ms >= 0.0
        && timing.ssl_end_ms >= 0.0
        && timing.ssl_start_ms != timing.connect_start_ms;
    Some(if is_tls {
        (timing.connect_end_ms - timing.ssl_start_ms)
            .min(timing.ssl_start_ms - timing.connect_start_ms)
    } else {
        timing.connect_end_ms - timing.connect_start_ms
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(url: &str, connect_ms: f64, wait_ms: f64) -> Resource {
        Resource {
            url: url.to_owned(),
            timing: Some(ResourceTiming {
                connect_start_ms: 0.0,
                connect_end_ms: connect_ms,
                ssl_start_ms: -1.0,
                ssl_end_ms: -1.0,
                send_end_ms: connect_ms,
                receive_headers_end_ms: connect_ms + wait_ms,
                ..ResourceTiming::default()
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
