use std::time::Duration;

use axum::{extract::State, response::Response};
use serde_json::json;

use crate::{envelope, errors::Failure, state::SharedState};

/// The time within which the store must respond: probes arrive every few seconds and count a slow
/// response as a failure.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// `GET /healthz`: liveness, which is the ability to respond at all.
pub(crate) async fn alive() -> Response {
    envelope::data(json!({ "alive": true }))
}

/// `GET /readyz`: readiness, which needs a store that responds.
pub(crate) async fn ready(State(service): State<SharedState>) -> Result<Response, Failure> {
    tokio::time::timeout(STORE_TIMEOUT, service.app.store.ping())
        .await
        .map_err(Failure::unavailable)?
        .map_err(Failure::unavailable)?;
    Ok(envelope::data(json!({ "ready": true })))
}
