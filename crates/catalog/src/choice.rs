//! The network of a device for which none was chosen, and named choices of both.

use crate::{Catalog, Device, Mode, Network};

/// A device and a network that are chosen together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    pub id: &'static str,
    pub name: &'static str,
    pub device: &'static str,
    pub network: &'static str,
}

/// The networks that Lighthouse 13.5 throttles phones and desktops to
/// (core/config/constants.js).
const PHONE_NETWORK: &str = "mobileSlow4g";
const DESKTOP_NETWORK: &str = "desktopDense4G";

/// The conditions of Lighthouse's two configurations.
pub const PRESETS: [Preset; 2] = [
    Preset {
        id: "lighthouse-mobile",
        name: "Lighthouse mobile",
        device: "mobile",
        network: PHONE_NETWORK,
    },
    Preset {
        id: "lighthouse-desktop",
        name: "Lighthouse desktop",
        device: "desktop",
        network: DESKTOP_NETWORK,
    },
];

impl Catalog {
    /// Returns the network of a device for which none was chosen: Lighthouse's network for phones
    /// or desktops, or the first one of a catalog without it.
    pub fn network_of(&self, device: &Device) -> Option<&Network> {
        let id = match device.mode {
            Mode::Mobile => PHONE_NETWORK,
            Mode::Desktop => DESKTOP_NETWORK,
        };
        self.network(id).or_else(|| self.networks.first())
    }

    /// Returns the presets whose device and network the catalog has.
    pub fn presets(&self) -> impl Iterator<Item = &'static Preset> {
        PRESETS.iter().filter(|preset| {
            self.device(preset.device).is_some() && self.network(preset.network).is_some()
        })
    }

    /// Finds a preset by id among those whose device and network the catalog has.
    pub fn preset(&self, id: &str) -> Option<&'static Preset> {
        self.presets().find(|preset| preset.id == id)
    }
}
