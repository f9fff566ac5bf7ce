use serde::{Deserialize, Deserializer};

/// Timing of a request in the network stack: the time of its start on Chromium's monotonic clock,
/// and the steps after it, all in microseconds. Steps that did not take place are negative; missing
/// values are treated the same.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceTiming {
    #[serde(rename = "requestTime", deserialize_with = "us_from_s")]
    pub request_time_us: f64,
    #[serde(rename = "dnsStart", deserialize_with = "us_from_ms")]
    pub dns_start_us: f64,
    #[serde(rename = "dnsEnd", deserialize_with = "us_from_ms")]
    pub dns_end_us: f64,
    #[serde(rename = "connectStart", deserialize_with = "us_from_ms")]
    pub connect_start_us: f64,
    #[serde(rename = "connectEnd", deserialize_with = "us_from_ms")]
    pub connect_end_us: f64,
    #[serde(rename = "sslStart", deserialize_with = "us_from_ms")]
    pub ssl_start_us: f64,
    #[serde(rename = "sslEnd", deserialize_with = "us_from_ms")]
    pub ssl_end_us: f64,
    #[serde(rename = "sendStart", deserialize_with = "us_from_ms")]
    pub send_start_us: f64,
    #[serde(rename = "sendEnd", deserialize_with = "us_from_ms")]
    pub send_end_us: f64,
    #[serde(
        rename = "receiveHeadersStart",
        deserialize_with = "optional_us_from_ms"
    )]
    pub receive_headers_start_us: Option<f64>,
    #[serde(rename = "receiveHeadersEnd", deserialize_with = "us_from_ms")]
    pub receive_headers_end_us: f64,
}

/// Chromium's values of a time in seconds and of a step in milliseconds that were not reached.
const NOT_STARTED_S: f64 = -1.0;
const NOT_REACHED_MS: f64 = -1.0;

/// Reads a time that Chromium writes in seconds.
pub(crate) fn us_from_s<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    f64::deserialize(deserializer).map(|seconds| seconds * 1e6)
}

/// Reads a time that Chromium writes in milliseconds.
fn us_from_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    f64::deserialize(deserializer).map(|ms| ms * 1e3)
}

fn optional_us_from_ms<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    Option::<f64>::deserialize(deserializer).map(|ms| ms.map(|ms| ms * 1e3))
}

impl Default for ResourceTiming {
    fn default() -> Self {
        let not_reached_us = NOT_REACHED_MS * 1e3;
        Self {
            request_time_us: NOT_STARTED_S * 1e6,
            dns_start_us: not_reached_us,
            dns_end_us: not_reached_us,
            connect_start_us: not_reached_us,
            connect_end_us: not_reached_us,
            ssl_start_us: not_reached_us,
            ssl_end_us: not_reached_us,
            send_start_us: not_reached_us,
            send_end_us: not_reached_us,
            receive_headers_start_us: None,
            receive_headers_end_us: not_reached_us,
        }
    }
}

impl ResourceTiming {
    /// Returns the time in which the connection was opened, with the lookup of the host's address;
    /// zero if an open connection was used.
    pub fn connection_ms(&self) -> f64 {
        if self.connect_start_us < 0.0 {
            return 0.0;
        }
        let dns_us = (self.dns_end_us - self.dns_start_us).max(0.0);
        (dns_us + self.connect_end_us - self.connect_start_us).max(0.0) / 1e3
    }

    /// Returns the time from the last byte of the request to the first of the response.
    pub fn server_response_ms(&self) -> f64 {
        self.headers_us() / 1e3 - self.send_end_us / 1e3
    }

    /// Returns the time of the response's first byte on the monotonic clock.
    pub fn first_byte_us(&self) -> f64 {
        self.request_time_us + self.headers_us()
    }

    fn headers_us(&self) -> f64 {
        self.receive_headers_start_us
            .unwrap_or(self.receive_headers_end_us)
    }

    /// Returns the time at which the network stack started the request and at which it had the
    /// response headers, if both are known. They determine a request's start and end.
    pub(crate) fn network_start_and_headers_us(&self) -> Option<(f64, f64)> {
        let is_known = self.request_time_us != NOT_STARTED_S * 1e6
            && self.receive_headers_end_us != NOT_REACHED_MS * 1e3;
        let start_us = self.request_time_us;
        is_known.then_some((start_us, start_us + self.receive_headers_end_us))
    }
}
