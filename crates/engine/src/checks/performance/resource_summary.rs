use plumbline_entities as entities;

use crate::checks::{Cell, Findings, Outcome, Row, Unit, check};
use crate::facts::{Facts, Missing, Request, Requests};

check! {
    /// # What
    /// How many requests of which kind, and how many bytes.
    ///
    /// # Why
    /// Budgets are kept by kind; a kind that grows shows what was added.
    ///
    /// # Scored
    /// Weighs nothing, judges nothing. Third parties are all hosts but those of the page's own organisation. What a page
    /// asks for once more when its load is over is not counted.
    ///
    /// # Fix
    /// Look at the largest kind first.
    ///
    /// # Source
    /// Lighthouse 13.5, `resource-summary`.
    id: "resource-summary",
    pass: "What was loaded, by kind",
    fail: "What was loaded, by kind",
    needs: [Requests::NAME],
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
        self.bytes += request.transfer_bytes;
    }
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let requests = facts.get::<Requests>()?;
    let own = entities::of_url(&facts.bundle.final_url);
    let mut by_kind = [Sum::default(); KINDS.len()];
    let mut total = Sum::default();
    let mut third_party = Sum::default();
    for request in requests.of_load() {
        let kind = kind(request);
        let is_icon_of_browser = kind == "other" && request.url.path().ends_with("/favicon.ico");
        if is_icon_of_browser || request.stays_here() {
            continue;
        }
        total.add(request);
        if let Some(at) = KINDS.iter().position(|(id, _)| *id == kind) {
            by_kind[at].add(request);
        }
        if entities::of_url(request.url.as_str()) != own {
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
        ("resourceType", "Kind", Unit::Text),
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
    let summary = format!("{} requests, {:.0} KiB.", total.count, total.bytes / 1024.0);
    Ok(Outcome::informative(summary).with(table.into()))
}

fn kind(request: &Request) -> &'static str {
    match request.resource_type.as_str() {
        "Stylesheet" => "stylesheet",
        "Image" => "image",
        "Media" => "media",
        "Font" => "font",
        "Script" => "script",
        "Document" => "document",
        _ => "other",
    }
}
