use axum::{extract::State, response::Response};
use serde::Serialize;

use crate::{envelope, query::NoParameters, state::SharedState};

/// `GET /v1/networks`: all networks, in the order of the catalog.
pub(crate) async fn list(State(service): State<SharedState>, _: NoParameters) -> Response {
    let networks = service.app.catalog.networks().iter();
    let records: Vec<_> = networks
        .map(|network| NetworkRecord {
            id: &network.id,
            name: &network.name,
            down_kbps: network.down_kbps,
            up_kbps: network.up_kbps,
            rtt_ms: network.rtt_ms,
        })
        .collect();
    envelope::data(records)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NetworkRecord<'a> {
    id: &'a str,
    name: &'a str,
    down_kbps: f64,
    up_kbps: f64,
    rtt_ms: f64,
}
