//! Audits about transferred resources, which budgets refer to, and the list of requests.

use plumbline_model::report::Report;
use serde_json::{Value, json};
use url::Url;

use super::pictures::informative;
use crate::network::{LoggedExchange, Network};

/// The resource types of budgets (core/computed/resource-summary.js) with their labels.
pub(crate) const BUDGET_TYPES: [(&str, &str); 9] = [
    ("total", "Total"),
    ("stylesheet", "Style sheets"),
    ("image", "Images"),
    ("media", "Media"),
    ("font", "Fonts"),
    ("script", "Scripts"),
    ("document", "Documents"),
    ("other", "Other"),
    ("third-party", "Third parties"),
];

/// Returns the audits.
pub(super) fn audits(network: &Network, report: &Report) -> Vec<Value> {
    vec![summary(network, report), weight(network), list(network)]
}

fn heading(key: &str, value_type: &str, label: &str) -> Value {
    json!({ "key": key, "valueType": value_type, "label": label })
}

/// Returns the requests that are counted. Lighthouse leaves out the favicon, which only some
/// browsers request.
fn counted(network: &Network) -> impl Iterator<Item = LoggedExchange<'_>> {
    network.exchanges().filter(|exchange| {
        let is_icon = exchange.budget_type() == "other" && exchange.url.ends_with("/favicon.ico");
        exchange.is_on_network() && exchange.loaded_type() != "WebSocket" && !is_icon
    })
}

fn summary(network: &Network, report: &Report) -> Value {
    let page = report
        .final_url
        .as_deref()
        .and_then(|url| Url::parse(url).ok());
    let mut items: Vec<Value> = BUDGET_TYPES
        .iter()
        .map(|(kind, label)| {
            let of_kind = counted(network).filter(|exchange| match *kind {
                "total" => true,
                "third-party" => !exchange.is_first_party(page.as_ref()),
                kind => exchange.budget_type() == kind,
            });
            let (count, bytes) =
                of_kind.fold((0, 0), |(n, sum), exchange| (n + 1, sum + exchange.network_bytes()));
            json!({ "resourceType": kind, "label": label, "requestCount": count, "transferSize": bytes })
        })
        .collect();
    // Sorted by size; third parties come last, because the other types already contain them.
    let rank = |item: &Value| {
        let bytes = item["transferSize"].as_u64().unwrap_or_default();
        (
            item["resourceType"] == "third-party",
            std::cmp::Reverse(bytes),
        )
    };
    items.sort_by_key(rank);
    informative(
        "resource-summary",
        "Requests and bytes by type",
        "Transferred bytes by resource type.",
        json!({
            "type": "table",
            "headings": [
                heading("label", "text", "Type"),
                heading("requestCount", "numeric", "Requests"),
                heading("transferSize", "bytes", "Transferred"),
            ],
            "items": items,
        }),
    )
}

/// Returns the page weight as Lighthouse counts it: transferred bytes only
/// (core/audits/byte-efficiency/total-byte-weight.js).
fn weight(network: &Network) -> Value {
    let mut largest: Vec<LoggedExchange> = network
        .exchanges()
        .filter(|exchange| exchange.is_on_network() && exchange.network_bytes() > 0)
        .collect();
    let total: u64 = largest.iter().map(LoggedExchange::network_bytes).sum();
    largest.sort_by_key(|exchange| std::cmp::Reverse(exchange.network_bytes()));
    let items: Vec<Value> = largest
        .iter()
        .take(10)
        .map(|exchange| json!({ "url": exchange.url, "totalBytes": exchange.network_bytes() }))
        .collect();
    let mut audit = informative(
        "total-byte-weight",
        "Page weight",
        "Transferred bytes, largest requests first.",
        json!({
            "type": "table",
            "headings": [heading("url", "url", "URL"), heading("totalBytes", "bytes", "Transferred")],
            "items": items,
        }),
    );
    audit["numericValue"] = json!(total);
    audit["numericUnit"] = json!("byte");
    audit["displayValue"] = json!(format!("{:.0}\u{a0}KiB", total as f64 / 1024.0));
    audit
}

fn list(network: &Network) -> Value {
    let first_us = network
        .exchanges()
        .next()
        .map_or(0.0, |exchange| exchange.sent_us);
    let items: Vec<Value> = network
        .exchanges()
        .filter(|exchange| exchange.is_on_network())
        .map(|exchange| {
            let since_first_ms = |at_us: f64| (at_us - first_us).round() / 1e3;
            let response = exchange.response.as_ref();
            let request_time_us = response
                .and_then(|response| response.timing)
                .map(|timing| timing.request_time_us)
                .filter(|us| *us > 0.0);
            json!({
                "url": exchange.url,
                "sessionTargetType": exchange.target_type,
                "protocol": response.map_or("", |response| &response.protocol),
                "rendererStartTime": since_first_ms(exchange.sent_us),
                "networkRequestTime": since_first_ms(request_time_us.unwrap_or(exchange.sent_us)),
                "networkEndTime": exchange.end_us.map(since_first_ms),
                "finished": exchange.end_us.is_some(),
                "transferSize": exchange.network_bytes(),
                "resourceSize": exchange.resource_bytes,
                "statusCode": response.map_or(-1, |response| response.status.unwrap_or_default()),
                "mimeType": response.map_or("", |response| &response.mime_type),
                "resourceType": exchange.loaded_type(),
                "priority": exchange.initial_priority,
            })
        })
        .collect();
    informative(
        "network-requests",
        "Network requests",
        "Every request of the visit.",
        json!({
            "type": "table",
            "headings": [
                heading("url", "url", "URL"),
                heading("protocol", "text", "Protocol"),
                heading("networkRequestTime", "ms", "Start"),
                heading("networkEndTime", "ms", "End"),
                heading("transferSize", "bytes", "Transferred"),
                heading("resourceSize", "bytes", "Size"),
                heading("statusCode", "text", "Status"),
                heading("mimeType", "text", "MIME type"),
                heading("resourceType", "text", "Type"),
            ],
            "items": items,
        }),
    )
}
