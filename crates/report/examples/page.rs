//! Writes the page of a kept bundle, or of a report in JSON: `page BUNDLE|REPORT.json > page.html`.
use std::io::Error;

use plumbline_bundle::Bundle;
use plumbline_engine::exhibits::exhibits;
use plumbline_engine::{evaluate, stored_conditions};
use plumbline_report::html::standalone;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let bytes = std::fs::read(&path)?;
    let (report, shown) = if path.ends_with(".json") {
        (serde_json::from_slice(&bytes)?, None)
    } else {
        let bundle = Bundle::unpack(&bytes).map_err(Error::other)?;
        let conditions = stored_conditions(&bundle)
            .ok_or_else(|| Error::other("the bundle does not say what it was gathered under"))?;
        (evaluate(&bundle, conditions), exhibits(&bundle))
    };
    let page = standalone(&report, shown.as_ref()).map_err(Error::other)?;
    print!("{page}");
    Ok(())
}
