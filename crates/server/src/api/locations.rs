use axum::{extract::State, response::Response};
use serde::Serialize;

use crate::{answer, api::path_id::PathId, errors::Failure, router::Shared};

/// `GET /v1/locations/{id}`
pub(crate) async fn one(
    State(service): State<Shared>,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let location = service.app.catalog.location(&id).ok_or(Failure::NotFound)?;
    Ok(answer::data(Record {
        id: &location.id,
        name: &location.name,
    }))
}

#[derive(Serialize)]
struct Record<'a> {
    id: &'a str,
    name: &'a str,
}
