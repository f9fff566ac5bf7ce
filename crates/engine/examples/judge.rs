//! Runs every check on a stored bundle and prints the categories as JSON.

use std::error::Error;

use plumbline_bundle::Bundle;
use plumbline_catalog::Mode;
use plumbline_engine::facts::Facts;
use plumbline_engine::registry;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: judge BUNDLE.json")?;
    let bundle: Bundle = serde_json::from_slice(&std::fs::read(path)?)?;
    let categories = registry::judge(&Facts::new(&bundle, Mode::Mobile));
    println!("{}", serde_json::to_string_pretty(&categories)?);
    Ok(())
}
