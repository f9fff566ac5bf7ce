//! The account of the caller.

use axum::{extract::State, response::Response};
use serde_json::json;

use crate::{auth::Caller, envelope, errors::Failure, query::NoParameters, state::SharedState};

/// `GET /v1/credits`: the balance of the account.
pub(crate) async fn credits(caller: Caller, _: NoParameters) -> Response {
    envelope::data(json!({ "credits": caller.credits }))
}

/// `GET /v1/webhook-secret`: the secret that signs the account's webhooks.
pub(crate) async fn webhook_secret(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
) -> Result<Response, Failure> {
    let store = &service.app.store;
    let secret = store.webhook_secret(&caller.account_id, false).await?;
    Ok(envelope::data(json!({ "secret": secret })))
}
