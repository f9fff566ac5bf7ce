//! The network of the visit: bandwidth, round trips and the response times of servers.

use std::collections::HashMap;

use plumbline_trace::{OriginLatency, Trace, origin_latencies};

#[derive(Clone)]
pub(super) struct ReplayNetwork {
    pub(super) rtt_ms: f64,
    pub(super) bits_per_ms: f64,
    extra_rtt_ms: HashMap<String, f64>,
    response_ms: HashMap<String, f64>,
}

/// The response time that is assumed for servers without measurements.
const USUAL_RESPONSE_MS: f64 = 30.0;

impl ReplayNetwork {
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

    /// Returns the same network with a line that is faster by this factor.
    pub(super) fn faster(&self, factor: f64) -> Self {
        Self {
            bits_per_ms: self.bits_per_ms * factor,
            ..self.clone()
        }
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
