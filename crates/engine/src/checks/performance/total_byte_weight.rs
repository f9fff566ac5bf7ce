use crate::checks::{Cell, Findings, Outcome, Row, Unit, check};
use crate::facts::{Facts, Missing, Request, Requests};
use crate::scoring::Curve;

check! {
    /// # What
    /// The page does not weigh too much.
    ///
    /// # Why
    /// Every byte costs time, and many visitors pay for them.
    ///
    /// # Scored
    /// Weighs nothing. Fails above 2,667 KiB over the network, headers included. Lists the ten largest requests. What a page
    /// asks for once more when its load is over is not counted.
    ///
    /// # Fix
    /// Begin with the largest: smaller images, less script, and nothing that this page does not use.
    ///
    /// # Source
    /// Lighthouse 13.5, `total-byte-weight`.
    id: "total-byte-weight",
    pass: "The page is not too heavy",
    fail: "The page is heavy",
    needs: [Requests::NAME],
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
        .filter(|request| !request.stays_here() && request.transfer_bytes > 0.0)
        .collect();
    heavy.sort_by(|a, b| {
        let by_size = b.transfer_bytes.total_cmp(&a.transfer_bytes);
        by_size.then_with(|| a.url.as_str().cmp(b.url.as_str()))
    });
    let total_bytes: f64 = heavy.iter().map(|request| request.transfer_bytes).sum();
    let summary = format!("{:.0} KiB.", total_bytes / 1024.0);
    let outcome = match CURVE.score(total_bytes) >= 0.9 {
        true => Outcome::pass().because(summary),
        false => Outcome::fail(summary),
    };
    let table = Findings::new([
        ("url", "URL", Unit::Url),
        ("totalBytes", "Transferred", Unit::Bytes),
    ])
    .rows(heavy.iter().take(LISTED).map(|request| {
        Row::new([
            Cell::url(request.url.as_str()),
            Cell::Bytes(request.transfer_bytes),
        ])
    }));
    Ok(outcome
        .with(table.into())
        .measuring(total_bytes, Unit::Bytes))
}
