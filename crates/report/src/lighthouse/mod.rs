//! A Lighthouse result (version 13.5; types/lhr/lhr.d.ts of its package), for everything that reads
//! one: Google's report renderer, Lighthouse CI, dashboards.
//!
//! Whatever the report checks is an audit here, under the same id; where Lighthouse has an audit by
//! that id it means the same. Categories, weights and scores are the report's own: PWA, which
//! Lighthouse dropped with version 12, is one category more.

mod audits;
mod details;
mod metrics;
mod pictures;
mod requests;
mod tree;
mod vitals;

use plumbline_catalog::Mode;
use plumbline_engine::report::Report;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};
use url::Url;

use crate::contract::iso8601_ms;
use crate::export::Subject;
use crate::network::Network;
use audits::Audits;
use pictures::Pictures;
pub(crate) use requests::BUDGET_TYPES;

/// The version whose form this is, and whose readers expect it.
const LIGHTHOUSE: &str = "13.5.0";

/// In the order in which they are shown.
pub(crate) const CATEGORIES: [&str; 5] = [
    "performance",
    "accessibility",
    "best-practices",
    "seo",
    "pwa",
];

/// The whole result.
pub fn result(subject: &Subject) -> Value {
    let report = subject.report;
    let network = subject.bundle.map(Network::of);
    let mut pictures = Pictures::of(subject.bundle);
    let Audits {
        audits,
        categories,
        groups,
    } = audits::all(subject, network.as_ref(), &mut pictures);
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
        "fetchTime": iso8601_ms(subject.made_at_ms),
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

/// A result as it is written: readers show categories in the order in which they stand.
pub struct InOrder<'a>(pub &'a Value);

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
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
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(CATEGORIES.iter().map(|id| (id, &self.0[id])))
    }
}

/// Text of ours may quote a page. Readers take links and code out of some members (Markdown), so a page's own
/// brackets are kept from being any.
fn plain(text: &str) -> String {
    text.replace("](", "]\u{200b}(")
}

fn environment(report: &Report) -> Value {
    let browser = report.browser.as_ref();
    json!({
        "networkUserAgent": browser.map_or("", |browser| &browser.user_agent),
        "hostUserAgent": browser.map_or("", |browser| &browser.product),
        "benchmarkIndex": report.conditions.cpu.host_index.unwrap_or_default().round(),
    })
}

/// The line and the processor were really that slow: what Lighthouse calls `devtools` as opposed to `simulate`.
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

/// Who answered: the page's own site first, then every other host by itself.
fn entities(network: &Network, url: &str) -> Vec<Value> {
    let page = Url::parse(url).ok();
    let own = page
        .as_ref()
        .and_then(Url::host_str)
        .unwrap_or_default()
        .to_owned();
    let mut entities: Vec<(String, bool, Vec<String>)> = vec![(own, true, Vec::new())];
    for exchange in network
        .exchanges
        .iter()
        .filter(|exchange| exchange.is_on_network())
    {
        let Ok(address) = Url::parse(&exchange.url) else {
            continue;
        };
        let host = address.host_str().unwrap_or_default();
        let origin = address.origin().ascii_serialization();
        let is_own = exchange.is_first_party(page.as_ref());
        let known = entities
            .iter_mut()
            .find(|(name, own, _)| if is_own { *own } else { name == host });
        match known {
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
