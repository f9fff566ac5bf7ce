use axum::{extract::State, response::Response};
use plumbline_catalog::Device;
use serde::Serialize;

use crate::{api::path_id::PathId, envelope, errors::Failure, state::SharedState};

/// `GET /v1/devices`: all devices, in the order of the catalog.
pub(crate) async fn list(State(service): State<SharedState>) -> Response {
    let records: Vec<_> = service
        .app
        .catalog
        .devices()
        .iter()
        .map(DeviceRecord::from)
        .collect();
    envelope::data(records)
}

/// `GET /v1/devices/{id}`: one device.
pub(crate) async fn one(
    State(service): State<SharedState>,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let device = service.app.catalog.device(&id).ok_or(Failure::NotFound)?;
    Ok(envelope::data(DeviceRecord::from(device)))
}

#[derive(Serialize)]
struct DeviceRecord<'a> {
    id: &'a str,
    name: &'a str,
    mode: &'static str,
}

impl<'a> From<&'a Device> for DeviceRecord<'a> {
    fn from(device: &'a Device) -> Self {
        Self {
            id: &device.id,
            name: &device.name,
            mode: device.mode.as_str(),
        }
    }
}
