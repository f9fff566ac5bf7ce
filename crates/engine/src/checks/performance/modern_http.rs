use std::collections::{HashMap, HashSet};

use plumbline_entities as entities;
use plumbline_trace::{Resource, Trace};
use url::Url;

use crate::checks::{Cell, Findings, Outcome, Row, Unit, check, count};
use crate::facts::{Facts, Missing, TRACE, is_like_localhost, loaded};

check! {
    /// # What
    /// Servers of many files speak HTTP/2 or HTTP/3.
    ///
    /// # Why
    /// HTTP/1.1 answers six requests at a time; the others wait in line.
    ///
    /// # Scored
    /// Weighs nothing. Lists what came over HTTP/1.1 from an origin that served six or more static files. Addresses
    /// of the machine itself are left out.
    ///
    /// # Fix
    /// Turn HTTP/2 on in the server, or put a CDN that has it in front.
    ///
    /// # Source
    /// Lighthouse 13.5, `modern-http-insight`; trace engine, insights/ModernHTTP. No time saved is named: that
    /// would take a simulation of the load.
    id: "modern-http-insight",
    pass: "Files come over a modern HTTP",
    fail: "Files come over HTTP/1.1",
    needs: [TRACE],
    run: run,
}

/// As many as a browser asks for at once over HTTP/1.1.
const MIN_STATIC: usize = 6;
/// Smaller ones of known third parties count visitors rather than show anything.
const PIXEL_BYTES: f64 = 100.0;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let own = entities::of_url(&trace.navigation.url);
    let mut static_by_origin: HashMap<String, usize> = HashMap::new();
    for resource in loaded(&trace).filter(|resource| is_static(resource, own.as_deref())) {
        if let Some(origin) = remote_origin(resource) {
            *static_by_origin.entry(origin).or_default() += 1;
        }
    }
    let mut seen = HashSet::new();
    let old: Vec<&Resource> = loaded(&trace)
        .filter(|resource| {
            let protocol = resource.protocol.to_ascii_lowercase();
            let is_old = protocol.starts_with("http/0") || protocol.starts_with("http/1");
            is_old && !resource.from_service_worker
        })
        .filter(|resource| {
            let origin = remote_origin(resource).unwrap_or_default();
            static_by_origin.get(&origin).copied().unwrap_or(0) >= MIN_STATIC
        })
        .filter(|resource| seen.insert(resource.url.as_str()))
        .collect();
    let outcome = match old.len() {
        0 => Outcome::pass(),
        number => Outcome::fail(format!(
            "{} over HTTP/1.1.",
            count(number, "request went", "requests went")
        )),
    };
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("protocol", "Protocol", Unit::Text),
    ])
    .rows(
        old.iter()
            .map(|resource| Row::new([Cell::url(&resource.url), Cell::text(&resource.protocol)])),
    );
    Ok(outcome.with(table.into()))
}

fn is_static(resource: &Resource, own: Option<&str>) -> bool {
    let is_static = matches!(
        resource.resource_type.as_str(),
        "Font" | "Image" | "Media" | "Script" | "Stylesheet"
    );
    if !is_static || resource.decoded_bytes >= PIXEL_BYTES {
        return is_static;
    }
    let known = entities::known(&resource.url);
    known.is_none_or(|entity| Some(entity) == own)
}

fn remote_origin(resource: &Resource) -> Option<String> {
    let url = Url::parse(&resource.url).ok()?;
    let is_local = is_like_localhost(url.host_str()?);
    (!is_local).then(|| url.origin().ascii_serialization())
}
