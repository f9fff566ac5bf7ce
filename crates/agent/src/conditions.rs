//! Resolves the conditions of a visit from an order and the catalog.

use plumbline_catalog::{Catalog, Device, Network};
use plumbline_model::report::{
    Conditions, CpuConditions, DeviceConditions, LocationConditions, LocationMode,
    NetworkConditions,
};
use plumbline_seam::Order;

use crate::AuditFault;

/// The catalog entries of an order, and the conditions as the report states them.
pub(crate) struct ResolvedOrder<'a> {
    pub device: &'a Device,
    pub network: &'a Network,
    pub conditions: Conditions,
}

/// The location that an agent runs at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLocation {
    pub id: String,
    /// Whether the operator stated it; otherwise it is a default, and the place is unknown.
    pub is_stated: bool,
}

/// Resolves an order for an agent at a location.
pub(crate) fn resolve<'a>(
    catalog: &'a Catalog,
    agent_location: &AgentLocation,
    order: &Order,
) -> Result<ResolvedOrder<'a>, AuditFault> {
    let unknown = |kind, id: &str| AuditFault(format!("the catalog has no {kind} `{id}`"));
    let device = catalog
        .device(&order.device)
        .ok_or_else(|| unknown("device", &order.device))?;
    let network = catalog
        .network(&order.network)
        .ok_or_else(|| unknown("network", &order.network))?;
    let location = catalog
        .location(&order.location)
        .ok_or_else(|| unknown("location", &order.location))?;
    let (mode, added_rtt_ms) = if location.id == agent_location.id {
        (LocationMode::Agent, 0.0)
    } else {
        let distance = catalog
            .round_trip_ms(&agent_location.id, &location.id)
            .ok_or_else(|| unknown("location", &agent_location.id))?;
        (LocationMode::Simulated, distance)
    };
    let requested = order.conditions();
    let conditions = Conditions {
        device: DeviceConditions {
            id: device.id.clone(),
            name: device.name.clone(),
            mode: device.mode,
        },
        network: NetworkConditions {
            id: network.id.clone(),
            name: network.name.clone(),
            down_kbps: network.down_kbps,
            up_kbps: network.up_kbps,
            rtt_ms: network.rtt_ms + added_rtt_ms,
            isolation: None,
        },
        location: LocationConditions {
            id: location.id.clone(),
            name: location.name.clone(),
            mode,
            added_rtt_ms,
            is_stated: Some(agent_location.is_stated),
        },
        cpu: CpuConditions {
            device_index: device.cpu_index,
            ..requested.cpu
        },
        ..requested
    };
    Ok(ResolvedOrder {
        device,
        network,
        conditions,
    })
}

#[cfg(test)]
mod tests {
    use plumbline_catalog::BUILT_IN;

    use super::*;

    fn conditions(device: &str, location: &str) -> Conditions {
        let catalog = Catalog::load(BUILT_IN).unwrap();
        let order = Order {
            url: "https://example.com/".to_owned(),
            device: device.to_owned(),
            network: "mobileSlow4g".to_owned(),
            location: location.to_owned(),
            options: plumbline_seam::VisitOptions::default(),
        };
        let agent_location = AgentLocation {
            id: "us-tx".to_owned(),
            is_stated: true,
        };
        let resolved = resolve(&catalog, &agent_location, &order);
        resolved.unwrap().conditions
    }

    #[test]
    fn a_simulated_location_adds_its_distance_to_the_round_trip() {
        let remote = conditions("mobile", "eu");
        assert_eq!(remote.location.mode, LocationMode::Simulated);
        assert_eq!(remote.location.added_rtt_ms, 123.0);
        assert_eq!(remote.network.rtt_ms, 273.0);
    }

    #[test]
    fn the_agents_own_location_adds_nothing() {
        let local = conditions("mobile", "us-tx");
        assert_eq!(local.location.mode, LocationMode::Agent);
        assert_eq!(local.network.rtt_ms, 150.0);
    }
}
