//! Renders the standalone page of a report in JSON: `page REPORT.json > page.html`. For a stored
//! bundle, use `plumbline judge BUNDLE --output html`.
use std::io::Error;

use plumbline_report::html::standalone;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let report = serde_json::from_slice(&std::fs::read(&path)?)?;
    let page = standalone(&report, None, None, None).map_err(Error::other)?;
    print!("{page}");
    Ok(())
}
