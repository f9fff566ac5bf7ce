use plumbline_model::check::{Cell, Findings, Row, Unit};
use plumbline_model::scoring::Curve;
use plumbline_model::size::size;

use crate::checks::{Outcome, check};
use crate::facts::{Facts, Missing, Request, Requests};

check! {
    /// # What
    /// The total transfer size of the page is moderate.
    ///
    /// # Why
    /// Every byte takes time to transfer, and many visitors pay for their data.
    ///
    /// # Scored
    /// Does not affect the score. Fails above 2,667 KiB over the network, headers included. Lists
    /// the ten largest requests. Requests that the page repeats after the load are not counted.
    ///
    /// # Fix
    /// Start with the largest files: compress images, ship less JavaScript, and remove what the
    /// page does not use.
    ///
    /// # Source
    /// Lighthouse 13.5, `total-byte-weight`.
    id: "total-byte-weight",
    pass: "Page weight is moderate",
    fail: "Page weight is high",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/total-byte-weight/",
    run: run,
}

const CURVE: Curve = Curve {
    p10: 2667.0 * 1024.0,
    median: 4000.0 * 1024.0,
};
const LISTED: usize = 10;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let requests = facts.get::<Requests>()?;
    let mut heavy: Vec<&Request> = requests
        .of_load()
        .filter(|request| !request.is_local() && request.transfer_bytes() > 0.0)
        .collect();
    heavy.sort_by(|a, b| {
        let by_size = b.transfer_bytes().total_cmp(&a.transfer_bytes());
        by_size.then_with(|| a.url.as_str().cmp(b.url.as_str()))
    });
    let total_bytes: f64 = heavy.iter().map(|request| request.transfer_bytes()).sum();
    let summary = format!("Total size {}.", size(total_bytes));
    let outcome = if CURVE.score(total_bytes) >= 0.9 {
        Outcome::pass().with_summary(summary)
    } else {
        Outcome::fail(summary)
    };
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("totalBytes", "Transferred", Unit::Bytes),
    ])
    .rows(heavy.iter().take(LISTED).map(|request| {
        Row::new([
            Cell::url(request.url.as_str()),
            Cell::Bytes(request.transfer_bytes()),
        ])
    }));
    Ok(outcome
        .with(table.into())
        .with_figure(total_bytes, Unit::Bytes))
}
