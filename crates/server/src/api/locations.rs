use axum::{extract::State, response::Response};
use plumbline_catalog::Location;
use serde::Serialize;

use crate::{answer, api::path_id::PathId, errors::Failure, router::Shared};

/// `GET /v1/locations`, in the order of the catalog.
pub(crate) async fn list(State(service): State<Shared>) -> Response {
    let locations = service.app.catalog.locations().iter();
    answer::data(locations.map(Record::from).collect::<Vec<_>>())
}

/// `GET /v1/locations/{id}`
pub(crate) async fn one(
    State(service): State<Shared>,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let location = service.app.catalog.location(&id).ok_or(Failure::NotFound)?;
    Ok(answer::data(Record::from(location)))
}

#[derive(Serialize)]
struct Record<'a> {
    id: &'a str,
    name: &'a str,
}

impl<'a> From<&'a Location> for Record<'a> {
    fn from(location: &'a Location) -> Self {
        Self {
            id: &location.id,
            name: &location.name,
        }
    }
}
