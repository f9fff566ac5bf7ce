//! Prints the report media of a stored bundle: `report_media BUNDLE > media.json`.
use std::io::{Error, Write};

use plumbline_bundle::Bundle;
use plumbline_engine::media::report_media;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let bundle = Bundle::unpack(&std::fs::read(path)?).map_err(Error::other)?;
    let shown = report_media(&bundle).ok_or_else(|| Error::other("the trace is unreadable"))?;
    std::io::stdout().write_all(&serde_json::to_vec(&shown)?)
}
