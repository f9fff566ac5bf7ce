//! How often pages may be asked for: by key where somebody is signed in, as in the API, else by
//! address.

use axum::{extract::FromRequestParts, http::request::Parts};

use super::session::Visitor;
use crate::{
    Limits,
    errors::Failure,
    notes::Notes,
    peer::{address_of, network_of},
    rate::Turn,
    router::Shared,
};

/// Requests without a session that one address may make in a minute, at most. A shared report and all
/// of its pictures are about fifty.
const GUESTS_PER_MINUTE: u32 = 1200;

/// As many as a key may make where that is fewer; 0 is no limit.
pub(crate) fn guests_per_minute(limits: &Limits) -> u32 {
    limits.requests_per_minute.min(GUESTS_PER_MINUTE)
}

/// Whoever is signed in, if anybody is; counted.
pub(super) async fn visitor(parts: &Parts, service: &Shared) -> Result<Option<Visitor>, Failure> {
    let Some(visitor) = Visitor::of(&parts.headers, service).await? else {
        Guest::count(parts, service).await?;
        return Ok(None);
    };
    let now = (service.app.clock)();
    let turn = service.requests.take(&visitor.key_id, now, 1).await?;
    passed(turn, parts)?;
    Ok(Some(visitor))
}

/// Anybody, counted by address.
pub(crate) struct Guest;

impl Guest {
    async fn count(parts: &Parts, service: &Shared) -> Result<(), Failure> {
        let from = network_of(address_of(parts, &service.app.limits));
        let now = (service.app.clock)();
        passed(service.guests.take(&from, now, 1).await?, parts)
    }
}

impl FromRequestParts<Shared> for Guest {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &Shared) -> Result<Self, Failure> {
        Self::count(parts, service).await?;
        Ok(Self)
    }
}

fn passed(turn: Option<Turn>, parts: &Parts) -> Result<(), Failure> {
    Notes::of(parts).turn(turn);
    if turn.is_some_and(|turn| turn.is_refused()) {
        return Err(Failure::RateLimited);
    }
    Ok(())
}
