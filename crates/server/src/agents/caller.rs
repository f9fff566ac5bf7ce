//! Authentication of agents.

use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts},
};
use plumbline_seam::{Announcement, Attempt, PROTOCOL_HEADER};
use plumbline_store::{
    AgentPresence, AgentProcess, AgentRecord, AgentToken, AttemptState, KeyDigest, Lease,
    ProcessSet, Timestamp,
};

use super::parts as agent_parts;
use crate::{
    dispatch::TokenScope, errors::Failure, peer, request_context::RequestContext,
    state::SharedState,
};

/// An agent that has authenticated with its token and uses this server's protocol version.
pub(crate) struct AgentCaller {
    record: AgentRecord,
    pub(crate) context: RequestContext,
}

/// The longest name of anything that an agent announces. Names are stored and shown; longer ones
/// are a mistake or an attack.
const NAME_CHARS: usize = 100;

impl FromRequestParts<SharedState> for AgentCaller {
    type Rejection = Failure;

    /// Checks the protocol first: an agent of another version could not interpret any other
    /// refusal.
    async fn from_request_parts(parts: &mut Parts, service: &SharedState) -> Result<Self, Failure> {
        let version = parts.headers.get(PROTOCOL_HEADER);
        let version = version.and_then(|version| version.to_str().ok()?.parse().ok());
        if version != Some(plumbline_seam::PROTOCOL) {
            return Err(Failure::OtherProtocol);
        }
        let now = (service.app.clock)();
        let address = peer::client_address(parts, &service.app.limits);
        let token = presented_token(parts);
        let key = token.as_ref().map(AgentToken::key);
        service.failed_keys.check(address, key, now).await?;
        let record = match &token {
            Some(token) => usable_record(token, service).await?,
            None => None,
        };
        let (Some(key), Some(record)) = (key, record) else {
            service
                .failed_keys
                .record_failure(address, key, now)
                .await?;
            return Err(Failure::InvalidToken);
        };
        service.failed_keys.record_success(key);
        Ok(Self {
            record,
            context: RequestContext::of(parts),
        })
    }
}

impl AgentCaller {
    /// Whether the token was drained when the request arrived.
    pub(crate) fn was_drained(&self) -> bool {
        self.record.drained_at.is_some()
    }

    /// Whether the token is drained now, or was a moment ago. Fails if it has been revoked since
    /// the request arrived.
    pub(crate) async fn is_drained(&self, service: &SharedState) -> Result<bool, Failure> {
        let dispatcher = &agent_parts(service)?.dispatcher;
        match dispatcher.record(&self.record.id).await? {
            Some(record) if record.revoked_at.is_none() => Ok(record.drained_at.is_some()),
            _ => Err(Failure::InvalidToken),
        }
    }

    /// Returns all processes that use the token.
    fn processes(&self) -> ProcessSet {
        ProcessSet::WithToken {
            token_id: self.record.id.clone(),
        }
    }

    /// The scope of the token, which applies to all its processes together.
    pub(crate) fn scope(&self) -> TokenScope {
        TokenScope {
            token_id: self.record.id.clone(),
            bounds: self.record.bounds.clone(),
        }
    }

    /// Converts an announcement to a presence under a name that no other token can have. Fails if
    /// the token does not allow what is announced.
    pub(crate) fn presence(&self, announcement: Announcement) -> Result<AgentPresence, Failure> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let process = &announcement.process;
        if !(1..=NAME_CHARS).contains(&process.len()) || !process.chars().all(is_plain) {
            return Err(Failure::InvalidBody("invalid id of the process".into()));
        }
        let texts = [
            &announcement.location,
            &announcement.chromium,
            &announcement.version,
        ];
        if texts
            .iter()
            .any(|text| text.chars().count() > NAME_CHARS || text.chars().any(char::is_control))
        {
            return Err(Failure::InvalidBody("invalid announcement".into()));
        }
        let bounds = &self.record.bounds;
        if !bounds.allows_location(&announcement.location) {
            return Err(Failure::OtherLocation {
                allowed: bounds.locations.clone().unwrap_or_default().join(", "),
                location: announcement.location,
            });
        }
        let slots = announcement.slots;
        if let Some(allowed) = bounds.slots.filter(|allowed| slots > *allowed) {
            return Err(Failure::TooManySlots { allowed, slots });
        }
        Ok(AgentPresence {
            process: AgentProcess::Remote {
                token_id: self.record.id.clone(),
                name: announcement.process,
            },
            agent_id: Some(self.record.id.clone()),
            location: announcement.location,
            chromium: announcement.chromium,
            host_index: announcement.host_index.filter(|index| index.is_finite()),
            slots,
            version: announcement.version,
            seen_at: Timestamp(0),
        })
    }

    /// Returns the state of an attempt; one that another agent holds counts as lost.
    pub(crate) async fn attempt_state(
        &self,
        service: &SharedState,
        tracking_id: &str,
        attempt: u32,
    ) -> Result<AttemptState, Failure> {
        // No audit has such an id, and PostgreSQL accepts no text with a NUL.
        if tracking_id.contains(char::is_control) {
            return Ok(AttemptState::Lost);
        }
        let dispatcher = &agent_parts(service)?.dispatcher;
        let state = dispatcher
            .attempt_state(&self.processes(), tracking_id, attempt)
            .await?;
        if state != AttemptState::Lost {
            self.context.set_audit(tracking_id);
        }
        Ok(state)
    }

    /// Confirms that the agent has received a lease; see
    /// [`Dispatcher::confirm`](crate::Dispatcher::confirm).
    pub(crate) fn confirm(
        &self,
        service: &SharedState,
        attempt: &Attempt,
    ) -> Result<bool, Failure> {
        let dispatcher = &agent_parts(service)?.dispatcher;
        let is_confirmed =
            dispatcher.confirm(&self.processes(), &attempt.tracking_id, attempt.number);
        if is_confirmed {
            self.context.set_audit(&attempt.tracking_id);
        }
        Ok(is_confirmed)
    }

    /// Returns the lease of an attempt if this agent holds it.
    pub(crate) async fn lease(
        &self,
        service: &SharedState,
        tracking_id: &str,
        attempt: u32,
    ) -> Result<Option<Lease>, Failure> {
        let state = self.attempt_state(service, tracking_id, attempt).await?;
        Ok(match state {
            AttemptState::Held(lease) => Some(*lease),
            AttemptState::Finished | AttemptState::Lost => None,
        })
    }
}

async fn usable_record(
    token: &AgentToken,
    service: &SharedState,
) -> Result<Option<AgentRecord>, Failure> {
    let key = token.key();
    let record = agent_parts(service)?.store.agent(key.id()).await?;
    // An unknown id is compared too, so that response times do not reveal which ids exist.
    let stored = record
        .as_ref()
        .map_or(KeyDigest([0; 32]), |record| record.digest);
    let is_equal = stored == key.digest();
    Ok(record.filter(|record| is_equal && record.revoked_at.is_none()))
}

/// Returns the token of the `Authorization` header; a request with several is refused.
fn presented_token(parts: &Parts) -> Option<AgentToken> {
    let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    AgentToken::parse(value.to_str().ok()?.strip_prefix("Bearer ")?)
}
