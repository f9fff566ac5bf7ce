//! Secrets that clients store once and use by name. Their values are never returned.

use axum::{extract::State, response::Response};
use plumbline_report::contract::iso8601_ms;
use plumbline_seam::{ReplacementError, Secret, check_secret_value};
use plumbline_store::StoredSecret;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    api::{json_body::JsonObject, path_id::PathName, visit_options::invalid_option},
    auth::Caller,
    envelope,
    errors::{Failure, InvalidValue},
    query::NoParameters,
    state::{ServiceState, SharedState},
    vault::{MAX_SECRETS, Vault, VaultError},
};

/// The reason if the server has no key.
const NO_KEY: &str =
    "This server has no key for secrets. Its operator sets one with --secrets-key.";

/// Returns the vault, if the server has a key.
pub(crate) fn vault(service: &ServiceState) -> Result<&Vault, Failure> {
    let vault = service.app.vault.as_deref();
    vault.ok_or_else(|| Failure::SecretsUnavailable(NO_KEY.to_owned()))
}

/// The body of a request to store a secret. The value is not read as a text, because the error of
/// the parser would quote another value.
#[derive(Deserialize)]
pub(crate) struct SecretRequest {
    value: Value,
}

/// `PUT /v1/secrets/{name}`: stores a secret, in place of an earlier one.
pub(crate) async fn put(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    PathName(name): PathName,
    JsonObject(request): JsonObject<SecretRequest>,
) -> Result<Response, Failure> {
    let invalid = |field, reason: String| Failure::InvalidSecret(InvalidValue::new(field, reason));
    let Value::String(value) = request.value else {
        return Err(invalid("value", "The value must be a text.".to_owned()));
    };
    check_secret_value(&value).map_err(|reason| invalid("value", reason))?;
    let (value, now) = (Secret::from(value), (service.app.clock)());
    let vault = vault(&service)?;
    let is_stored = vault
        .put_secret(&caller.account_id, &name, &value, now)
        .await?;
    if !is_stored {
        let reason = format!("An account has at most {MAX_SECRETS} secrets.");
        return Err(invalid("name", reason));
    }
    Ok(envelope::data(json!({ "name": name })))
}

/// `GET /v1/secrets`: the names of the secrets of the account.
pub(crate) async fn list(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
) -> Result<Response, Failure> {
    let secrets = vault(&service)?.secrets(&caller.account_id).await?;
    let entries: Vec<_> = secrets.iter().map(Entry::from).collect();
    Ok(envelope::data(entries))
}

/// `DELETE /v1/secrets/{name}`: deletes a secret.
pub(crate) async fn delete(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    PathName(name): PathName,
) -> Result<Response, Failure> {
    let vault = vault(&service)?;
    if !vault.delete_secret(&caller.account_id, &name).await? {
        return Err(Failure::NotFound);
    }
    Ok(envelope::data(json!({ "name": name })))
}

/// A secret as the API lists it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    name: &'a str,
    created_at: String,
    updated_at: String,
}

impl<'a> From<&'a StoredSecret> for Entry<'a> {
    fn from(secret: &'a StoredSecret) -> Self {
        Self {
            name: &secret.name,
            created_at: iso8601_ms(secret.created_at.0),
            updated_at: iso8601_ms(secret.updated_at.0),
        }
    }
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Store(error) => error.into(),
            VaultError::Key(_) => {
                tracing::error!(%error, "check --secrets-key");
                Self::SecretsUnavailable(NO_KEY.to_owned())
            }
            VaultError::OtherKey(name) => Self::SecretsUnavailable(format!(
                "`{name}` was stored with another key. Store it again, or let the operator of \
                 this server restore the key (--secrets-key)."
            )),
            VaultError::UnknownSession(name) => {
                let reason = format!(
                    "There is no session with the name `{name}`. POST /v1/sessions defines it."
                );
                Self::UnknownSession(InvalidValue::new("session", reason))
            }
            VaultError::Replacement(ReplacementError::Invalid(error)) => invalid_option(error),
            VaultError::Replacement(ReplacementError::Unknown(name)) => {
                let reason = format!(
                    "There is no secret with the name `{name}`. PUT /v1/secrets/{name} stores it."
                );
                Self::UnknownSecret(InvalidValue::new("secret", reason))
            }
        }
    }
}
