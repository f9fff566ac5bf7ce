use serde::Deserialize;

/// Request timing of the network stack, in milliseconds after `request_time_s`. Steps that did not
/// take place are -1, as in Chromium; missing values are treated the same.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceTiming {
    #[serde(rename = "requestTime")]
    pub request_time_s: f64,
    #[serde(rename = "dnsStart")]
    pub dns_start_ms: f64,
    #[serde(rename = "dnsEnd")]
    pub dns_end_ms: f64,
    #[serde(rename = "connectStart")]
    pub connect_start_ms: f64,
    #[serde(rename = "connectEnd")]
    pub connect_end_ms: f64,
    #[serde(rename = "sslStart")]
    pub ssl_start_ms: f64,
    #[serde(rename = "sslEnd")]
    pub ssl_end_ms: f64,
    #[serde(rename = "sendStart")]
    pub send_start_ms: f64,
    #[serde(rename = "sendEnd")]
    pub send_end_ms: f64,
    #[serde(rename = "receiveHeadersStart")]
    pub receive_headers_start_ms: Option<f64>,
    #[serde(rename = "receiveHeadersEnd")]
    pub receive_headers_end_ms: f64,
}

const NOT_REACHED: f64 = -1.0;

impl Default for ResourceTiming {
    fn default() -> Self {
        Self {
            request_time_s: NOT_REACHED,
            dns_start_ms: NOT_REACHED,
            dns_end_ms: NOT_REACHED,
            connect_start_ms: NOT_REACHED,
            connect_end_ms: NOT_REACHED,
            ssl_start_ms: NOT_REACHED,
            ssl_end_ms: NOT_REACHED,
            send_start_ms: NOT_REACHED,
            send_end_ms: NOT_REACHED,
            receive_headers_start_ms: None,
            receive_headers_end_ms: NOT_REACHED,
        }
    }
}

impl ResourceTiming {
    /// Returns the time from the last byte of the request to the first of the response.
    pub fn server_response_ms(&self) -> f64 {
        self.headers_ms() - self.send_end_ms
    }

    pub fn first_byte_us(&self) -> f64 {
        self.request_time_s * 1e6 + self.headers_ms() * 1e3
    }

    fn headers_ms(&self) -> f64 {
        self.receive_headers_start_ms
            .unwrap_or(self.receive_headers_end_ms)
    }

    /// Returns the time at which the network stack started the request and at which it had the
    /// response headers, if both are known. They determine a request's start and end.
    pub(crate) fn network_start_and_headers_ms(&self) -> Option<(f64, f64)> {
        let is_known =
            self.request_time_s != NOT_REACHED && self.receive_headers_end_ms != NOT_REACHED;
        let start_ms = self.request_time_s * 1000.0;
        is_known.then_some((start_ms, start_ms + self.receive_headers_end_ms))
    }
}
