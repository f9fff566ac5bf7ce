//! Sessions that audits sign in with: defined once, made by the first audit that uses them, and
//! made again when they have ended.

use axum::{extract::State, response::Response};
use plumbline_report::contract::iso8601_ms;
use plumbline_seam::{Expectation, InvalidOption, SessionDefinition, Steps, is_name};
use plumbline_store::SavedSession;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    api::{
        json_body::{JsonObject, text},
        path_id::PathName,
        request_body::check_url,
        secrets::vault,
        visit_options::{self, Parsed, invalid_option},
    },
    auth::Caller,
    envelope,
    errors::{Failure, InvalidValue},
    query::NoParameters,
    state::SharedState,
    vault::MAX_SESSIONS,
};

/// The body of a request to define a session, before validation.
#[derive(Deserialize)]
pub(crate) struct SessionRequest {
    name: String,
    #[serde(default, deserialize_with = "text")]
    url: Option<String>,
    #[serde(deserialize_with = "visit_options::parsed_steps")]
    steps: Option<Parsed<Steps, InvalidOption>>,
    #[serde(deserialize_with = "visit_options::parsed_expectation")]
    expect: Option<Parsed<Expectation>>,
}

/// `POST /v1/sessions`: defines a session, in place of an earlier one with its name.
pub(crate) async fn define(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    JsonObject(request): JsonObject<SessionRequest>,
) -> Result<Response, Failure> {
    let app = &service.app;
    if !is_name(&request.name) {
        let reason = "A name consists of up to 64 letters, digits, dots, underscores and hyphens.";
        let value = InvalidValue::new("name", reason);
        return Err(Failure::InvalidSession(value));
    }
    if let Some(url) = &request.url {
        check_url(url, app)
            .map_err(|reason| Failure::InvalidUrl(InvalidValue::new("url", reason)))?;
    }
    let expect = request
        .expect
        .map_or_else(|| Ok(Expectation::default()), |expect| expect.0);
    let definition = SessionDefinition {
        url: request.url,
        steps: request
            .steps
            .map_or_else(|| Ok(Steps::default()), |steps| steps.0)
            .map_err(invalid_option)?,
        expect: expect
            .map_err(|reason| Failure::InvalidExpectation(InvalidValue::new("expect", reason)))?,
    };
    definition.validate().map_err(invalid_option)?;
    let (vault, now) = (vault(&service)?, (app.clock)());
    let is_stored = vault
        .define_session(&caller.account_id, &request.name, &definition, now)
        .await?;
    if !is_stored {
        let reason = format!("An account has at most {MAX_SESSIONS} sessions.");
        let value = InvalidValue::new("name", reason);
        return Err(Failure::InvalidSession(value));
    }
    Ok(envelope::data(json!({ "name": request.name })))
}

/// `GET /v1/sessions`: the sessions of the account, without their steps and their states.
pub(crate) async fn list(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
) -> Result<Response, Failure> {
    let sessions = vault(&service)?.sessions(&caller.account_id).await?;
    let entries: Vec<_> = sessions.iter().map(Entry::from).collect();
    Ok(envelope::data(entries))
}

/// `DELETE /v1/sessions/{name}`: deletes a session with its state.
pub(crate) async fn delete(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    PathName(name): PathName,
) -> Result<Response, Failure> {
    let vault = vault(&service)?;
    if !vault.delete_session(&caller.account_id, &name).await? {
        return Err(Failure::NotFound);
    }
    Ok(envelope::data(json!({ "name": name })))
}

/// A session as the API lists it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    name: &'a str,
    created_at: String,
    updated_at: String,
    /// When an audit last signed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    made_at: Option<String>,
}

impl<'a> From<&'a SavedSession> for Entry<'a> {
    fn from(session: &'a SavedSession) -> Self {
        Self {
            name: &session.name,
            created_at: iso8601_ms(session.created_at.0),
            updated_at: iso8601_ms(session.updated_at.0),
            made_at: session.made_at.map(|at| iso8601_ms(at.0)),
        }
    }
}
