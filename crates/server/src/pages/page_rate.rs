//! Rate limits of pages: by key for visitors who are signed in, as in the API, otherwise by
//! address.

use axum::{extract::FromRequestParts, http::request::Parts};

use super::session::Visitor;
use crate::{
    errors::Failure,
    peer::{client_address, network_of},
    rate::RateStatus,
    request_context::RequestContext,
    state::SharedState,
};

/// Returns the visitor who is signed in, if there is one, and counts the request.
pub(super) async fn visitor(
    parts: &Parts,
    service: &SharedState,
) -> Result<Option<Visitor>, Failure> {
    let Some(visitor) = Visitor::of(&parts.headers, service).await? else {
        Guest::count(parts, service).await?;
        return Ok(None);
    };
    let now = (service.app.clock)();
    let status = service.requests.take(&visitor.key_id, now, 1).await?;
    check(status, parts)?;
    Ok(Some(visitor))
}

/// A request that needs no session, counted by address.
pub(crate) struct Guest;

impl Guest {
    async fn count(parts: &Parts, service: &SharedState) -> Result<(), Failure> {
        let network = network_of(client_address(parts, &service.app.limits));
        let now = (service.app.clock)();
        check(service.guests.take(&network, now, 1).await?, parts)
    }
}

impl FromRequestParts<SharedState> for Guest {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &SharedState) -> Result<Self, Failure> {
        Self::count(parts, service).await?;
        Ok(Self)
    }
}

fn check(status: Option<RateStatus>, parts: &Parts) -> Result<(), Failure> {
    RequestContext::of(parts).set_rate_status(status);
    if status.is_some_and(|status| status.is_refused()) {
        return Err(Failure::RateLimited);
    }
    Ok(())
}
