//! The network requests of a visit, from the bundle's protocol log, as exports and budgets need
//! them.

use std::ops::Deref;
use std::sync::Arc;

use plumbline_bundle::{Bundle, FailedConnections, Record};
use plumbline_trace::{Exchange, ProtocolLog};
use url::Url;

/// All exchanges in the order in which they began. A redirect ends one exchange and begins the
/// next.
#[derive(Debug, Default)]
pub(crate) struct Network {
    exchanges: Vec<Arc<Exchange>>,
    failed_connections: FailedConnections,
}

/// A view of an exchange with the URL that it was redirected to. It dereferences to the exchange.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedExchange<'a> {
    exchange: &'a Exchange,
    failed_connections: &'a FailedConnections,
    pub(crate) redirect_url: Option<&'a str>,
}

impl Network {
    /// Reads the log of a bundle. An invalid log gives no exchanges; the report already contains a
    /// warning.
    pub(crate) fn of(bundle: &Bundle) -> Self {
        let log = ProtocolLog::read(&bundle.log);
        Self {
            exchanges: log.map_or_else(|_| Vec::new(), |log| log.exchanges),
            failed_connections: FailedConnections::stored_in(bundle).unwrap_or_default(),
        }
    }

    pub(crate) fn exchanges(&self) -> impl Iterator<Item = LoggedExchange<'_>> {
        self.exchanges.iter().map(|exchange| {
            let next = exchange.redirected_to;
            let next = next.and_then(|index| self.exchanges.get(index));
            LoggedExchange {
                exchange,
                failed_connections: &self.failed_connections,
                redirect_url: next.map(|next| next.url.as_str()),
            }
        })
    }
}

/// Returns the time of the visit's first request, in milliseconds since 1970.
pub fn visited_at_ms(bundle: &Bundle) -> Option<i64> {
    let network = Network::of(bundle);
    let wall_time_s = network
        .exchanges()
        .find_map(|exchange| exchange.wall_time_s)?;
    Some((wall_time_s * 1e3) as i64)
}

impl Deref for LoggedExchange<'_> {
    type Target = Exchange;

    fn deref(&self) -> &Exchange {
        self.exchange
    }
}

impl LoggedExchange<'_> {
    /// Whether the URL's scheme uses the network.
    pub(crate) fn is_on_network(&self) -> bool {
        let scheme = self.url.split(':').next().unwrap_or_default();
        matches!(scheme, "http" | "https" | "ws" | "wss")
    }

    pub(crate) fn is_cached(&self) -> bool {
        self.from_memory
            || self
                .response
                .as_ref()
                .is_some_and(|response| response.from_disk)
    }

    /// Returns the reason for an incomplete response, as a browser without a proxy reports it.
    pub(crate) fn failure_text(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        let error = failure.error_text.as_deref().unwrap_or_default();
        let error = self.failed_connections.without_proxy(error, &self.url);
        Some(match &failure.blocked_reason {
            Some(reason) => format!("{error} ({reason})"),
            None => error,
        })
    }

    /// Returns the bytes transferred over the network; 0 for a response from a cache.
    pub(crate) fn network_bytes(&self) -> u64 {
        if self.is_cached() {
            0
        } else {
            self.transfer_bytes()
        }
    }

    pub(crate) fn is_first_party(&self, page: Option<&Url>) -> bool {
        let host = Url::parse(&self.url).ok();
        let host = host.as_ref().and_then(Url::host_str);
        self.is_same_site == Some(true) || host.is_some() && host == page.and_then(Url::host_str)
    }

    /// The resource type in budgets, as in Lighthouse (core/computed/resource-summary.js).
    pub(crate) fn budget_type(&self) -> &'static str {
        match self.loaded_type() {
            "Stylesheet" => "stylesheet",
            "Image" => "image",
            "Media" => "media",
            "Font" => "font",
            "Script" => "script",
            "Document" => "document",
            _ => "other",
        }
    }
}

#[cfg(test)]
mod tests;
