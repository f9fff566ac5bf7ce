//! Devices, networks and locations: data files that a person can edit, validated when loaded.
//!
//! The files in `data/` are built in; an operator may load others of the same form. The crate is
//! pure: the caller reads the files, this crate parses the text.
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        clippy::disallowed_types
    )
)]

mod check;
mod choice;
mod device;
mod location;
mod network;
mod suggestion;

use serde::Deserialize;

pub use check::CatalogError;
pub use choice::{PRESETS, Preset};
pub use device::{ClientHints, Device, FormFactor, Mode, Size};
pub use location::Location;
pub use network::{Network, NetworkKind};
pub use suggestion::suggested;

/// The devices, networks and locations of an audit, in the order of the files.
#[derive(Debug, Clone)]
pub struct Catalog {
    devices: Vec<Device>,
    networks: Vec<Network>,
    locations: Vec<Location>,
    round_trips_ms: Vec<Vec<f64>>,
}

/// Contents of the three data files.
#[derive(Debug, Clone, Copy)]
pub struct CatalogFiles<'a> {
    pub devices: &'a str,
    pub networks: &'a str,
    pub locations: &'a str,
}

/// The built-in data files.
pub const BUILT_IN: CatalogFiles<'static> = CatalogFiles {
    devices: include_str!("../data/devices.toml"),
    networks: include_str!("../data/networks.toml"),
    locations: include_str!("../data/locations.toml"),
};

impl Catalog {
    /// Parses and validates the three files; an error names the file, the entry and the reason.
    pub fn load(files: CatalogFiles<'_>) -> Result<Self, CatalogError> {
        let devices: DeviceFile = check::parse("devices", files.devices)?;
        let networks: NetworkFile = check::parse("networks", files.networks)?;
        let locations: LocationFile = check::parse("locations", files.locations)?;
        let catalog = Self {
            devices: devices.device,
            networks: networks.network,
            locations: locations.location,
            round_trips_ms: locations.round_trips,
        };
        check::check(&catalog)?;
        Ok(catalog)
    }

    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    pub fn networks(&self) -> &[Network] {
        &self.networks
    }

    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// Finds a device by id; ids are case-sensitive.
    pub fn device(&self, id: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.id == id)
    }

    pub fn network(&self, id: &str) -> Option<&Network> {
        self.networks.iter().find(|network| network.id == id)
    }

    pub fn location(&self, id: &str) -> Option<&Location> {
        self.locations.iter().find(|location| location.id == id)
    }

    /// Returns the typical round trip between two locations; `None` if either is unknown.
    pub fn round_trip_ms(&self, from: &str, to: &str) -> Option<f64> {
        let place = |id| self.locations.iter().position(|location| location.id == id);
        Some(self.round_trips_ms[place(from)?][place(to)?])
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceFile {
    device: Vec<Device>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkFile {
    network: Vec<Network>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LocationFile {
    round_trips: Vec<Vec<f64>>,
    location: Vec<Location>,
}
