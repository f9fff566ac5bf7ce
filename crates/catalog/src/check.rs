//! Validates catalog data when it is loaded.

use std::collections::HashSet;

use serde::de::DeserializeOwned;

use crate::{Catalog, Device, Network};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    #[error("the catalog file `{file}` cannot be read: {reason}")]
    Unreadable { file: &'static str, reason: String },
    #[error("catalog file `{file}`, entry `{id}`: {reason}")]
    Invalid {
        file: &'static str,
        id: String,
        reason: String,
    },
}

/// Maximum length of an id: the API's limit on path parameters, beyond which an id could not be
/// looked up.
const ID_MAX_LENGTH: usize = 50;

pub(crate) fn parse<T: DeserializeOwned>(
    file: &'static str,
    text: &str,
) -> Result<T, CatalogError> {
    toml::from_str(text).map_err(|error| CatalogError::Unreadable {
        file,
        reason: error.to_string(),
    })
}

pub(crate) fn check(catalog: &Catalog) -> Result<(), CatalogError> {
    check_file("devices", &catalog.devices, |d| &d.id, device_error)?;
    check_file("networks", &catalog.networks, |n| &n.id, network_error)?;
    check_file(
        "locations",
        &catalog.locations,
        |l| &l.id,
        |location| {
            let on_earth = location.latitude.abs() <= 90.0 && location.longitude.abs() <= 180.0;
            if !location.name.contains(", ") {
                return Some("`name` must be `City, Country`".to_owned());
            }
            (!on_earth).then(|| "latitude or longitude is out of range".to_owned())
        },
    )?;
    check_round_trips(catalog)
}

fn check_file<T>(
    file: &'static str,
    entries: &[T],
    id_of: impl Fn(&T) -> &String,
    find_error: impl Fn(&T) -> Option<String>,
) -> Result<(), CatalogError> {
    let mut ids = HashSet::new();
    if entries.is_empty() {
        return Err(invalid(file, "", "the file has no entry"));
    }
    for entry in entries {
        let id = id_of(entry);
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if id.is_empty() || id.len() > ID_MAX_LENGTH || !id.chars().all(is_allowed) {
            return Err(invalid(
                file,
                id,
                "an id has 1 to 50 letters, digits, `-` or `_`",
            ));
        }
        if !ids.insert(id) {
            return Err(invalid(file, id, "duplicate id"));
        }
        if let Some(reason) = find_error(entry) {
            return Err(invalid(file, id, reason));
        }
    }
    Ok(())
}

fn device_error(device: &Device) -> Option<String> {
    let size = format!("({}x{})", device.screen.width, device.screen.height);
    let empty = |size: crate::Size| size.width == 0 || size.height == 0;
    if !device.name.contains(&size) {
        return Some(format!("`name` must include the screen size {size}"));
    }
    if empty(device.viewport) || empty(device.screen) {
        return Some("viewport and screen must not be empty".to_owned());
    }
    if device.viewport.width > device.screen.width || device.viewport.height > device.screen.height
    {
        return Some("the viewport is larger than the screen".to_owned());
    }
    if !(0.5..=5.0).contains(&device.scale) {
        return Some("scale must be between 0.5 and 5".to_owned());
    }
    if device.cpu_index == Some(0) {
        return Some("cpu_index must be greater than 0".to_owned());
    }
    if device.user_agent("1").trim().is_empty() {
        return Some("user_agent is empty".to_owned());
    }
    None
}

fn network_error(network: &Network) -> Option<String> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if !positive(network.down_kbps) || !positive(network.up_kbps) {
        return Some("down_kbps and up_kbps must be greater than 0".to_owned());
    }
    if !network.rtt_ms.is_finite() || network.rtt_ms < 0.0 {
        return Some("rtt_ms must not be negative".to_owned());
    }
    if !(0.0..100.0).contains(&network.loss_pct) {
        return Some("loss_pct must be at least 0 and below 100".to_owned());
    }
    if network.deadline_s == 0 {
        return Some("deadline_s must be greater than 0".to_owned());
    }
    let round_trip = format!("{} ms RTT", network.rtt_ms);
    if !network.name.contains(&round_trip) || !network.name.contains("bps down") {
        return Some(format!(
            "`name` must include the bandwidth (`… Mbps down`) and the round trip (`{round_trip}`)"
        ));
    }
    None
}

fn check_round_trips(catalog: &Catalog) -> Result<(), CatalogError> {
    let (table, places) = (&catalog.round_trips_ms, catalog.locations.len());
    if table.len() != places || table.iter().any(|row| row.len() != places) {
        return Err(invalid(
            "locations",
            "round_trips",
            format!("the table must be {places} by {places}, one row and column per location"),
        ));
    }
    for (from, row) in table.iter().enumerate() {
        for (to, ms) in row.iter().enumerate() {
            if !ms.is_finite() || *ms < 0.0 || *ms != table[to][from] {
                return Err(invalid(
                    "locations",
                    "round_trips",
                    format!("row {from}, column {to}: must be symmetric and not negative"),
                ));
            }
        }
    }
    Ok(())
}

fn invalid(file: &'static str, id: &str, reason: impl Into<String>) -> CatalogError {
    CatalogError::Invalid {
        file,
        id: id.to_owned(),
        reason: reason.into(),
    }
}
