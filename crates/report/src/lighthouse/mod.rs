//! Converts a report to a Lighthouse result (version 13.5; types/lhr/lhr.d.ts of its package), for
//! programs that read one: Google's report renderer, Lighthouse CI, dashboards.
//!
//! Every check is an audit with the same id. If Lighthouse has an audit with that id, it means the
//! same. Categories, weights and scores are those of the report; PWA, which Lighthouse removed in
//! version 12, is an additional category. Lighthouse's manual audits are added, because they are
//! the same for every page.

mod audits;
mod details;
mod manual;
mod metrics;
mod pictures;
mod requests;
mod tree;
mod treemap;
mod vitals;

use plumbline_catalog::Mode;
use plumbline_model::report::Report;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};
use url::Url;

use crate::contract::iso8601_ms;
use crate::export::ExportSource;
use crate::network::Network;
use audits::Audits;
pub(crate) use audits::is_audit_besides_checks;
use pictures::Pictures;
pub(crate) use requests::BUDGET_TYPES;

/// The version of Lighthouse whose format this is.
const LIGHTHOUSE: &str = "13.5.0";

/// The member of metrics and of the performance category with their interval, which Lighthouse does
/// not have.
pub(crate) const INTERVAL: &str = "plumblineInterval";

/// The ids of the categories, in the order in which they are shown.
pub(crate) const CATEGORIES: [&str; 6] = [
    "performance",
    "accessibility",
    "best-practices",
    "seo",
    "pwa",
    "agentic-browsing",
];

/// Returns a report as a Lighthouse result.
pub fn result(source: &ExportSource) -> Value {
    let report = source.report;
    let network = source.bundle.map(Network::of);
    let mut pictures = Pictures::of(source.bundle);
    let Audits {
        audits,
        categories,
        groups,
    } = audits::all(source, network.as_ref(), &mut pictures);
    let url = report.final_url.as_deref().unwrap_or(&report.requested_url);
    let user_agent = report
        .browser
        .as_ref()
        .map_or("", |browser| &browser.user_agent);
    let mut result = json!({
        "lighthouseVersion": LIGHTHOUSE,
        "generatedBy": { "name": "Plumbline", "version": env!("CARGO_PKG_VERSION") },
        "requestedUrl": report.requested_url,
        "mainDocumentUrl": url,
        "finalDisplayedUrl": url,
        "finalUrl": url,
        "fetchTime": iso8601_ms(source.made_at_ms),
        "gatherMode": "navigation",
        "runWarnings": report.warnings.iter().map(|text| plain(text)).collect::<Vec<_>>(),
        "userAgent": user_agent,
        "environment": environment(report),
        "audits": audits,
        "configSettings": settings(report, &pictures),
        "categories": categories,
        "categoryGroups": groups,
        "stackPacks": [],
        "entities": network.as_ref().map_or_else(Vec::new, |network| entities(network, url)),
        "fullPageScreenshot": pictures.full_page(),
        "timing": timing(report),
        "i18n": { "rendererFormattedStrings": {}, "icuMessagePaths": {} },
    });
    if let Some(error) = &report.error {
        result["runtimeError"] = json!({ "code": error.code, "message": error.message });
    }
    result
}

/// Serializes a result with its categories in order, because readers show them in the order of the
/// file.
pub struct OrderedResult<'a>(pub &'a Value);

impl Serialize for OrderedResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.as_object().into_iter().flatten() {
            match name.as_str() {
                "categories" => map.serialize_entry(name, &Categories(value))?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

struct Categories<'a>(&'a Value);

impl Serialize for Categories<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let categories = CATEGORIES.iter().map(|id| (id, &self.0[id]));
        serializer.collect_map(categories.filter(|(_, category)| !category.is_null()))
    }
}

/// Prevents a text that quotes a page from containing Markdown links, which readers render in some
/// members.
fn plain(text: &str) -> String {
    text.replace("](", "]\u{200b}(")
}

fn environment(report: &Report) -> Value {
    let browser = report.browser.as_ref();
    let cpu = &report.conditions.cpu;
    let host_index = cpu.host_index.or(cpu.nominal_index);
    json!({
        "networkUserAgent": browser.map_or("", |browser| &browser.user_agent),
        "hostUserAgent": browser.map_or("", |browser| &browser.product),
        "benchmarkIndex": host_index.unwrap_or_default().round(),
    })
}

/// Returns the settings. Network and CPU were really slowed down, which Lighthouse calls
/// `devtools`, not `simulate`.
fn settings(report: &Report, pictures: &Pictures) -> Value {
    let conditions = &report.conditions;
    let is_mobile = conditions.device.mode == Mode::Mobile;
    json!({
        "output": ["json"],
        "formFactor": if is_mobile { "mobile" } else { "desktop" },
        "throttlingMethod": "devtools",
        "throttling": {
            "rttMs": conditions.network.rtt_ms,
            "throughputKbps": conditions.network.down_kbps,
            "requestLatencyMs": conditions.network.rtt_ms,
            "downloadThroughputKbps": conditions.network.down_kbps,
            "uploadThroughputKbps": conditions.network.up_kbps,
            "cpuSlowdownMultiplier": conditions.cpu.rate,
        },
        "screenEmulation": pictures.screen(is_mobile),
        "emulatedUserAgent": report.browser.as_ref().map(|browser| &browser.user_agent),
        "locale": "en-US",
        "channel": "plumbline",
        "auditMode": false,
        "gatherMode": false,
        "disableFullPageScreenshot": false,
        "blockedUrlPatterns": null,
        "extraHeaders": null,
        "onlyAudits": null,
        "onlyCategories": null,
        "skipAudits": null,
    })
}

fn timing(report: &Report) -> Value {
    let mut at_ms = 0.0;
    let entries: Vec<Value> = report
        .timings
        .iter()
        .map(|timing| {
            let start_ms = at_ms;
            at_ms += timing.ms;
            json!({
                "name": format!("plumbline:{}", timing.phase.as_str()),
                "startTime": start_ms,
                "duration": timing.ms,
                "entryType": "measure",
            })
        })
        .collect();
    json!({ "entries": entries, "total": at_ms })
}

/// Returns the sites that were requested: the page's own site first, then every other host.
fn entities(network: &Network, url: &str) -> Vec<Value> {
    let page = Url::parse(url).ok();
    let own = page
        .as_ref()
        .and_then(Url::host_str)
        .unwrap_or_default()
        .to_owned();
    let mut entities: Vec<(String, bool, Vec<String>)> = vec![(own, true, Vec::new())];
    for exchange in network
        .exchanges()
        .filter(|exchange| exchange.is_on_network())
    {
        let Ok(url) = Url::parse(&exchange.url) else {
            continue;
        };
        let host = url.host_str().unwrap_or_default();
        let origin = url.origin().ascii_serialization();
        let is_own = exchange.is_first_party(page.as_ref());
        let entity = entities
            .iter_mut()
            .find(|(name, own, _)| if is_own { *own } else { name == host });
        match entity {
            Some((_, _, origins)) if origins.contains(&origin) => {}
            Some((_, _, origins)) => origins.push(origin),
            None => entities.push((host.to_owned(), false, vec![origin])),
        }
    }
    entities
        .into_iter()
        .filter(|(_, _, origins)| !origins.is_empty())
        .map(|(name, is_own, origins)| {
            let mut entity = Map::new();
            entity.insert("name".to_owned(), json!(name));
            entity.insert("origins".to_owned(), json!(origins));
            if is_own {
                entity.insert("isFirstParty".to_owned(), json!(true));
            }
            entity.insert("isUnrecognized".to_owned(), json!(true));
            Value::Object(entity)
        })
        .collect()
}

#[cfg(test)]
mod tests;
