//! Links that give access to one report.

use axum::{extract::State, response::Response};
use plumbline_report::contract::iso8601_ms;
use plumbline_store::{Share, SharedReport, Timestamp};
use serde::Serialize;
use serde_json::json;

use crate::{
    api::{json_body::JsonObject, path_id::PathId, request_body::ShareRequest},
    app::Pages,
    auth::Caller,
    envelope,
    errors::Failure,
    pages::Origin,
    query::NoParameters,
    share::{new_share, store_share},
    state::{ServiceState, SharedState},
};

/// The largest number of links in the list.
pub(crate) const MAX_LISTED: u32 = 1000;

/// Returns the parts that serve pages; without pages, no report can be shared.
fn parts(service: &ServiceState) -> Result<&Pages, Failure> {
    service.app.pages.as_ref().ok_or(Failure::NotFound)
}

/// `POST /v1/audit/share/{id}`: shares a report by a link, in place of an earlier one.
pub(crate) async fn create(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    PathId(id): PathId,
    origin: Origin,
    JsonObject(request): JsonObject<ShareRequest>,
) -> Result<Response, Failure> {
    let now = (service.app.clock)();
    let share = new_share(request.validate()?, now)?;
    let pages = parts(&service)?;
    let stored = Some(share.clone());
    store_share(pages, &caller.account_id, &id, stored, now).await?;
    caller.context.set_audit(&id);
    Ok(envelope::data(Link::new(&id, None, &share, now, &origin)))
}

/// `DELETE /v1/audit/share/{id}`: stops sharing a report.
pub(crate) async fn revoke(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    PathId(id): PathId,
) -> Result<Response, Failure> {
    let (pages, now) = (parts(&service)?, (service.app.clock)());
    store_share(pages, &caller.account_id, &id, None, now).await?;
    caller.context.set_audit(&id);
    Ok(envelope::data(json!({ "auditId": id })))
}

/// `GET /v1/shares`: the links of the account that are valid.
pub(crate) async fn list(
    State(service): State<SharedState>,
    caller: Caller,
    _: NoParameters,
    origin: Origin,
) -> Result<Response, Failure> {
    let now = (service.app.clock)();
    let store = &parts(&service)?.store;
    let shares = store.shares(&caller.account_id, now, MAX_LISTED).await?;
    let links: Vec<_> = shares
        .iter()
        .map(|shared| Link::listed(shared, &origin))
        .collect();
    Ok(envelope::data(links))
}

/// A link as the API shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Link<'a> {
    audit_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    /// The path of the page, which anyone may open.
    path: String,
    /// The path with the origin by which the service was requested.
    address: String,
    created_at: String,
    expires_at: Option<String>,
}

impl<'a> Link<'a> {
    fn new(
        audit_id: &'a str,
        url: Option<&'a str>,
        share: &Share,
        shared_at: Timestamp,
        origin: &Origin,
    ) -> Self {
        let path = format!("/shared/{}", share.token);
        Self {
            audit_id,
            url,
            address: origin.address(&path),
            path,
            created_at: iso8601_ms(shared_at.0),
            expires_at: share.expires_at.map(|at| iso8601_ms(at.0)),
        }
    }

    fn listed(shared: &'a SharedReport, origin: &Origin) -> Self {
        let (url, share) = (Some(shared.url.as_str()), &shared.share);
        Self::new(&shared.audit_id, url, share, shared.shared_at, origin)
    }
}
