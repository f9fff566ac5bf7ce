//! From an order and the catalog to the conditions of a visit.

use plumbline_catalog::{Catalog, Device, Network};
use plumbline_engine::report::{
    Conditions, CpuConditions, DeviceConditions, LocationConditions, LocationMode,
    NetworkConditions,
};

use crate::{AuditFault, Order};

/// What the visit needs of the catalog, and what the report says of it.
pub(crate) struct Resolved<'a> {
    pub device: &'a Device,
    pub network: &'a Network,
    pub conditions: Conditions,
}

/// Resolves an order; `stands_at` is where the agent really is.
pub(crate) fn resolve<'a>(
    catalog: &'a Catalog,
    stands_at: &str,
    order: &Order,
) -> Result<Resolved<'a>, AuditFault> {
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
    let (mode, added_rtt_ms) = if location.id == stands_at {
        (LocationMode::Agent, 0.0)
    } else {
        let distance = catalog
            .round_trip_ms(stands_at, &location.id)
            .ok_or_else(|| unknown("location", stands_at))?;
        (LocationMode::Simulated, distance)
    };
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
        },
        cpu: CpuConditions {
            rate: 1.0,
            device_index: device.cpu_index,
            ..CpuConditions::default()
        },
    };
    Ok(Resolved {
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
        };
        resolve(&catalog, "us-tx", &order).unwrap().conditions
    }

    #[test]
    fn a_place_elsewhere_adds_its_distance_to_the_round_trip() {
        let there = conditions("mobile", "eu");
        assert_eq!(there.location.mode, LocationMode::Simulated);
        assert_eq!(there.location.added_rtt_ms, 123.0);
        assert_eq!(there.network.rtt_ms, 273.0);
    }

    #[test]
    fn the_agents_own_place_adds_nothing() {
        let here = conditions("mobile", "us-tx");
        assert_eq!(here.location.mode, LocationMode::Agent);
        assert_eq!(here.network.rtt_ms, 150.0);
    }
}
