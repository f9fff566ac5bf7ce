//! Prints the exhibits of a stored bundle: `exhibits BUNDLE > exhibits.json`.
use std::io::{Error, Write};

use plumbline_bundle::Bundle;
use plumbline_engine::exhibits::exhibits;

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let bundle = Bundle::unpack(&std::fs::read(path)?).map_err(Error::other)?;
    let shown = exhibits(&bundle).ok_or_else(|| Error::other("the trace is unreadable"))?;
    std::io::stdout().write_all(&serde_json::to_vec(&shown)?)
}
