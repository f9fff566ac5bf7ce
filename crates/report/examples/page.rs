//! Renders the standalone page of a stored bundle, or of a report in JSON:
//! `page BUNDLE > page.html` or `page REPORT.json > page.html`.
use std::io::Error;

use plumbline_bundle::Bundle;
use plumbline_engine::{evaluate, stored_conditions};
use plumbline_report::html::standalone;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let bytes = std::fs::read(&path)?;
    let (report, media) = if path.ends_with(".json") {
        (serde_json::from_slice(&bytes)?, None)
    } else {
        let bundle = Bundle::unpack(&bytes).map_err(Error::other)?;
        let conditions = stored_conditions(&bundle).ok_or_else(|| {
            Error::other("the bundle does not contain the conditions of its visit")
        })?;
        (
            evaluate(&bundle, conditions),
            plumbline_engine::media::report_media(&bundle),
        )
    };
    let page = standalone(&report, media.as_ref()).map_err(Error::other)?;
    print!("{page}");
    Ok(())
}
