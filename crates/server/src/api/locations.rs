use axum::{extract::State, response::Response};
use plumbline_catalog::Location;
use serde::Serialize;

use crate::{
    api::path_id::PathId, envelope, errors::Failure, query::NoParameters, state::SharedState,
};

/// `GET /v1/locations`: all locations, in the order of the catalog.
pub(crate) async fn list(State(service): State<SharedState>, _: NoParameters) -> Response {
    let locations = service.app.catalog.locations().iter();
    envelope::data(locations.map(LocationRecord::from).collect::<Vec<_>>())
}

/// `GET /v1/locations/{id}`: one location.
pub(crate) async fn one(
    State(service): State<SharedState>,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let location = service.app.catalog.location(&id).ok_or(Failure::NotFound)?;
    Ok(envelope::data(LocationRecord::from(location)))
}

#[derive(Serialize)]
struct LocationRecord<'a> {
    id: &'a str,
    name: &'a str,
}

impl<'a> From<&'a Location> for LocationRecord<'a> {
    fn from(location: &'a Location) -> Self {
        Self {
            id: &location.id,
            name: &location.name,
        }
    }
}
