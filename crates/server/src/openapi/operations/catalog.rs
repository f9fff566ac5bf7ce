use serde_json::json;

use super::Operation;
use crate::openapi::{
    parts::{data, described, path_id},
    schemas::reference,
};

pub(super) fn all() -> Vec<Operation> {
    let list = |path, id, summary, record, failures| Operation {
        route: ("get", path),
        id,
        tag: "Catalog",
        summary,
        description: "",
        requires_key: false,
        parameters: vec![],
        body: None,
        success: described(
            "All records.",
            data(json!({ "type": "array", "items": reference(record) })),
        ),
        failures,
    };
    let one = |path, id, summary, record, example: &'static str| Operation {
        route: ("get", path),
        id,
        tag: "Catalog",
        summary,
        description: "",
        requires_key: false,
        parameters: vec![path_id("The id.", example)],
        body: None,
        success: described("The record.", data(reference(record))),
        failures: vec![404],
    };
    vec![
        list(
            "/v1/devices",
            "listDevices",
            "List devices",
            "Device",
            vec![],
        ),
        one(
            "/v1/devices/{id}",
            "getDevice",
            "Get a device",
            "Device",
            "mobile",
        ),
        list(
            "/v1/locations",
            "listLocations",
            "List locations",
            "Location",
            vec![400],
        ),
        one(
            "/v1/locations/{id}",
            "getLocation",
            "Get a location",
            "Location",
            "eu",
        ),
        list(
            "/v1/networks",
            "listNetworks",
            "List networks",
            "Network",
            vec![400],
        ),
    ]
}
