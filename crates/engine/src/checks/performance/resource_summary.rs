use plumbline_model::check::{Cell, Findings, Row, Unit};
use plumbline_model::size::size;
use plumbline_vendored::entities;

use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, Request, Requests};

check! {
    /// # What
    /// The number of requests and transferred bytes by resource type.
    ///
    /// # Why
    /// The totals show which type of resource makes the page large, and can be limited by
    /// performance budgets.
    ///
    /// # Scored
    /// Always informative. Third parties are all hosts except those of the page's own organisation.
    /// Requests that the page repeats after the load are not counted.
    ///
    /// # Fix
    /// Reduce the largest resource type first.
    ///
    /// # Source
    /// Lighthouse 13.5, `resource-summary`.
    id: "resource-summary",
    pass: "Resource summary",
    fail: "Resource summary",
    run: run,
}

const KINDS: [(&str, &str); 7] = [
    ("stylesheet", "Style sheets"),
    ("image", "Images"),
    ("media", "Media"),
    ("font", "Fonts"),
    ("script", "Scripts"),
    ("document", "Documents"),
    ("other", "Other"),
];

#[derive(Default, Clone, Copy)]
struct Sum {
    count: f64,
    bytes: f64,
}

impl Sum {
    fn add(&mut self, request: &Request) {
        self.count += 1.0;
        self.bytes += request.transfer_bytes();
    }
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let requests = facts.get::<Requests>()?;
    let own = entities::organisation_or_domain(&facts.bundle.final_url);
    let mut by_kind = [Sum::default(); KINDS.len()];
    let mut total = Sum::default();
    let mut third_party = Sum::default();
    for request in requests.of_load() {
        let kind = kind(request);
        let is_favicon = kind == "other" && request.url.path().ends_with("/favicon.ico");
        if is_favicon || request.is_local() {
            continue;
        }
        total.add(request);
        if let Some(at) = KINDS.iter().position(|(id, _)| *id == kind) {
            by_kind[at].add(request);
        }
        if entities::organisation_or_domain(request.url.as_str()) != own {
            third_party.add(request);
        }
    }
    let mut rows: Vec<(&str, &str, Sum)> = KINDS
        .iter()
        .zip(by_kind)
        .map(|((id, label), sum)| (*id, *label, sum))
        .collect();
    rows.push(("total", "Total", total));
    rows.sort_by(|a, b| b.2.bytes.total_cmp(&a.2.bytes));
    rows.push(("third-party", "Third parties", third_party));
    let table = Findings::new([
        ("resourceType", "Resource type", Unit::Text),
        ("label", "Name", Unit::Text),
        ("requestCount", "Requests", Unit::Number),
        ("transferSize", "Transferred", Unit::Bytes),
    ])
    .rows(rows.into_iter().map(|(id, label, sum)| {
        Row::new([
            Cell::text(id),
            Cell::text(label),
            Cell::Number(sum.count),
            Cell::Bytes(sum.bytes),
        ])
    }));
    let summary = format!("{} requests, {}.", total.count, size(total.bytes));
    Ok(Outcome::informative(summary).with(table.into()))
}

fn kind(request: &Request) -> &'static str {
    match request.exchange.loaded_type() {
        "Stylesheet" => "stylesheet",
        "Image" => "image",
        "Media" => "media",
        "Font" => "font",
        "Script" => "script",
        "Document" => "document",
        _ => "other",
    }
}
