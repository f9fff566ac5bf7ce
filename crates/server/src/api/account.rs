//! What an account can learn about itself.

use axum::{extract::State, response::Response};
use serde_json::json;

use crate::{answer, auth::Caller, errors::Failure, router::Shared};

/// `GET /v1/credits`
pub(crate) async fn credits(caller: Caller) -> Response {
    answer::data(json!({ "credits": caller.credits }))
}

/// `GET /v1/webhook-secret`: what this account's webhooks are signed with.
pub(crate) async fn webhook_secret(
    State(service): State<Shared>,
    caller: Caller,
) -> Result<Response, Failure> {
    let store = &service.app.store;
    let secret = store.webhook_secret(&caller.account_id, false).await?;
    Ok(answer::data(json!({ "secret": secret })))
}
