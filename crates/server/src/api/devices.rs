use axum::{extract::State, response::Response};
use plumbline_catalog::Device;
use serde::Serialize;

use crate::{answer, api::path_id::PathId, errors::Failure, router::Shared};

/// `GET /v1/devices`, in the order of the catalog.
pub(crate) async fn list(State(service): State<Shared>) -> Response {
    let records: Vec<_> = service
        .app
        .catalog
        .devices()
        .iter()
        .map(Record::from)
        .collect();
    answer::data(records)
}

/// `GET /v1/devices/{id}`
pub(crate) async fn one(
    State(service): State<Shared>,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let device = service.app.catalog.device(&id).ok_or(Failure::NotFound)?;
    Ok(answer::data(Record::from(device)))
}

#[derive(Serialize)]
struct Record<'a> {
    id: &'a str,
    name: &'a str,
    mode: &'static str,
}

impl<'a> From<&'a Device> for Record<'a> {
    fn from(device: &'a Device) -> Self {
        Self {
            id: &device.id,
            name: &device.name,
            mode: device.mode.as_str(),
        }
    }
}
