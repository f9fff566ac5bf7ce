//! `devices`, `networks` and `locations`: list what an audit can choose.

use plumbline_catalog::Catalog;

use crate::args::CatalogArgs;
use crate::exit::Exit;
use crate::settings::load_catalog;
use crate::standard_output as out;

/// Runs `plumbline devices`.
pub fn devices(args: &CatalogArgs) -> Result<Exit, Exit> {
    let catalog = load(args)?;
    let devices = catalog.devices().iter();
    print(devices.map(|device| (device.id.as_str(), device.name.as_str())))
}

/// Runs `plumbline networks`.
pub fn networks(args: &CatalogArgs) -> Result<Exit, Exit> {
    let catalog = load(args)?;
    let networks = catalog.networks().iter();
    print(networks.map(|network| (network.id.as_str(), network.name.as_str())))
}

/// Runs `plumbline locations`.
pub fn locations(args: &CatalogArgs) -> Result<Exit, Exit> {
    let catalog = load(args)?;
    let locations = catalog.locations().iter();
    print(locations.map(|location| (location.id.as_str(), location.name.as_str())))
}

fn load(args: &CatalogArgs) -> Result<Catalog, Exit> {
    load_catalog(args.catalog.as_deref())
}

/// Prints ids and names in two columns.
fn print<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Exit, Exit> {
    let entries: Vec<_> = entries.collect();
    let width = entries.iter().map(|(id, _)| id.len()).max().unwrap_or(0);
    for (id, name) in entries {
        out::line(format_args!("{id:width$}  {name}"))?;
    }
    Ok(Exit::Done)
}
