use std::time::Duration;

use axum::{extract::State, response::Response};
use serde_json::json;

use crate::{answer, errors::Failure, router::Shared};

/// Probes ask every few seconds and count a slow answer as none.
const STORE_ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// `GET /healthz`: the process lives.
pub(crate) async fn alive() -> Response {
    answer::data(json!({ "alive": true }))
}

/// `GET /readyz`: the store answers, so requests can be served.
pub(crate) async fn ready(State(service): State<Shared>) -> Result<Response, Failure> {
    tokio::time::timeout(STORE_ANSWERS_WITHIN, service.app.store.ping())
        .await
        .map_err(Failure::unavailable)?
        .map_err(Failure::unavailable)?;
    Ok(answer::data(json!({ "ready": true })))
}
