use std::collections::{HashMap, HashSet};

use plumbline_model::check::{Cell, Findings, Row, Unit};
use plumbline_trace::{Resource, Trace};
use plumbline_vendored::entities;
use url::Url;

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, is_localhost, loaded};

check! {
    /// # What
    /// Origins that serve many files use HTTP/2 or HTTP/3.
    ///
    /// # Why
    /// Over HTTP/1.1 browsers send at most six requests per origin at a time; the others are
    /// queued.
    ///
    /// # Scored
    /// Does not affect the score. Lists requests over HTTP/1.1 to origins that served six or more
    /// static files. Localhost is left out.
    ///
    /// # Fix
    /// Enable HTTP/2 or HTTP/3 on the server, or use a CDN that supports it.
    ///
    /// # Source
    /// Lighthouse 13.5, `modern-http-insight`; trace engine, insights/ModernHTTP. No savings are
    /// estimated: that would require a simulation of the load.
    id: "modern-http-insight",
    pass: "Modern HTTP (HTTP/2 or later)",
    fail: "Outdated HTTP (HTTP/1.1)",
    learn: "https://developer.chrome.com/docs/performance/insights/modern-http",
    run: run,
}

/// The number of requests that a browser sends at once to an origin over HTTP/1.1.
const MIN_STATIC: usize = 6;
/// Smaller responses from known third parties are tracking pixels.
const PIXEL_BYTES: f64 = 100.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let own = entities::organisation_or_domain(&trace.navigation.url);
    let mut static_by_origin: HashMap<String, usize> = HashMap::new();
    for resource in loaded(&trace).filter(|resource| is_static(resource, own.as_deref())) {
        if let Some(origin) = remote_origin(resource) {
            *static_by_origin.entry(origin).or_default() += 1;
        }
    }
    let mut seen_urls = HashSet::new();
    let old: Vec<&Resource> = loaded(&trace)
        .filter(|resource| {
            let protocol = resource.protocol().to_ascii_lowercase();
            let is_old = protocol.starts_with("http/0") || protocol.starts_with("http/1");
            is_old && !resource.is_from_service_worker()
        })
        .filter(|resource| {
            let origin = remote_origin(resource).unwrap_or_default();
            static_by_origin.get(&origin).copied().unwrap_or(0) >= MIN_STATIC
        })
        .filter(|resource| seen_urls.insert(resource.url.as_str()))
        .collect();
    let outcome = match old.len() {
        0 => Outcome::pass(),
        number => Outcome::fail(format!(
            "{} over HTTP/1.1.",
            count(number, "request was sent", "requests were sent")
        )),
    };
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("protocol", "Protocol", Unit::Text),
    ])
    .rows(
        old.iter()
            .map(|resource| Row::new([Cell::url(&resource.url), Cell::text(resource.protocol())])),
    );
    Ok(outcome.with(table.into()))
}

fn is_static(resource: &Resource, own: Option<&str>) -> bool {
    let is_static = matches!(
        resource.traced_type(),
        "Font" | "Image" | "Media" | "Script" | "Stylesheet"
    );
    if !is_static || resource.resource_bytes as f64 >= PIXEL_BYTES {
        return is_static;
    }
    let entity = entities::organisation(&resource.url);
    entity.is_none_or(|name| Some(name) == own)
}

fn remote_origin(resource: &Resource) -> Option<String> {
    let url = Url::parse(&resource.url).ok()?;
    let is_local = is_localhost(url.host_str()?);
    (!is_local).then(|| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::traced::Traced;
    use super::CHECK;

    fn listed(host: &str, number: u32, protocol: &str) -> usize {
        let mut traced = Traced::new();
        for at in 0..number {
            let (id, url) = (format!("2.{at}"), format!("{host}/{at}.js"));
            let response = json!({"protocol": protocol});
            traced = traced.resource(&id, &url, json!({"resourceType": "Script"}), response);
        }
        traced.listed(CHECK).len()
    }

    #[test]
    fn six_files_over_http_1_fail() {
        assert_eq!(listed("https://cdn.test", 6, "http/1.1"), 6);
        assert_eq!(listed("https://cdn.test", 5, "http/1.1"), 0);
        assert_eq!(listed("https://cdn.test", 6, "h2"), 0);
        assert_eq!(listed("http://127.0.0.1:8080", 6, "http/1.1"), 0);
    }
}
