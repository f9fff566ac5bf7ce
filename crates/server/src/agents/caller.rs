use axum::{
    extract::FromRequestParts,
    http::{header, request::Parts},
};
use plumbline_seam::{Announcement, Attempt, PROTOCOL_HEADER};
use plumbline_store::{
    AgentPresence, AgentRecord, AgentToken, AttemptState, KeyDigest, Lease, Timestamp,
};

use super::TokenScope;
use crate::{errors::Failure, notes::Notes, peer, router::Shared};

/// An agent, proven by its token, that speaks our protocol.
pub(crate) struct AgentCaller {
    record: AgentRecord,
    pub(crate) notes: Notes,
}

/// Longer names of anything are a mistake or an attack: they are stored and shown.
const NAME_CHARS: usize = 100;

impl FromRequestParts<Shared> for AgentCaller {
    type Rejection = Failure;

    /// The protocol first: who speaks another could not make sense of any other refusal.
    async fn from_request_parts(parts: &mut Parts, service: &Shared) -> Result<Self, Failure> {
        let spoken = parts.headers.get(PROTOCOL_HEADER);
        let spoken = spoken.and_then(|version| version.to_str().ok()?.parse().ok());
        if spoken != Some(plumbline_seam::PROTOCOL) {
            return Err(Failure::OtherProtocol);
        }
        let now = (service.app.clock)();
        let from = peer::address_of(parts, &service.app.limits);
        let token = presented(parts);
        let key = token.as_ref().map(AgentToken::key);
        service.wrong_keys.check(from, key, now).await?;
        let proven = match &token {
            Some(token) => usable(token, service).await?,
            None => None,
        };
        let (Some(key), Some(record)) = (key, proven) else {
            service.wrong_keys.failed(from, key, now).await?;
            return Err(Failure::InvalidToken);
        };
        service.wrong_keys.proved(key);
        Ok(Self {
            record,
            notes: Notes::of(parts),
        })
    }
}

impl AgentCaller {
    /// As it was when the token was looked up.
    pub(crate) fn was_drained(&self) -> bool {
        self.record.drained_at.is_some()
    }

    /// As it is now, or was a moment ago; who has been revoked since is refused.
    pub(crate) async fn is_drained(&self, service: &Shared) -> Result<bool, Failure> {
        let record = super::of(service)?.desk.record(&self.record.id).await?;
        match record {
            Some(record) if record.revoked_at.is_none() => Ok(record.drained_at.is_some()),
            _ => Err(Failure::InvalidToken),
        }
    }

    /// What the names of all its processes begin with.
    fn processes(&self) -> String {
        format!("agent/{}/", self.record.id)
    }

    /// What its token allows to all its processes together.
    pub(crate) fn scope(&self) -> TokenScope {
        TokenScope {
            processes: self.processes(),
            bounds: self.record.bounds.clone(),
        }
    }

    /// What it says about itself, under a name that only it can have. Refused where its token does
    /// not allow that.
    pub(crate) fn sighting(&self, said: Announcement) -> Result<AgentPresence, Failure> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_name = (1..=NAME_CHARS).contains(&said.process.len());
        if !is_name || !said.process.chars().all(plain) {
            return Err(Failure::InvalidBody);
        }
        let texts = [&said.location, &said.chromium, &said.version];
        if texts
            .iter()
            .any(|text| text.chars().count() > NAME_CHARS || text.chars().any(char::is_control))
        {
            return Err(Failure::InvalidBody);
        }
        let bounds = &self.record.bounds;
        if !bounds.allows_location(&said.location) {
            return Err(Failure::OtherLocation {
                allowed: bounds.locations.clone().unwrap_or_default().join(", "),
                location: said.location,
            });
        }
        if let Some(allowed) = bounds.slots.filter(|allowed| said.slots > *allowed) {
            return Err(Failure::TooManySlots {
                allowed,
                slots: said.slots,
            });
        }
        Ok(AgentPresence {
            process: format!("{}{}", self.processes(), said.process),
            agent_id: Some(self.record.id.clone()),
            location: said.location,
            chromium: said.chromium,
            host_index: said.host_index.filter(|index| index.is_finite()),
            slots: said.slots,
            version: said.version,
            seen_at: Timestamp(0),
        })
    }

    /// What became of an attempt, if it is this agent's.
    pub(crate) async fn standing(
        &self,
        service: &Shared,
        tracking_id: &str,
        attempt: u32,
    ) -> Result<AttemptState, Failure> {
        // No audit has such a name, and PostgreSQL takes no text with a NUL.
        if tracking_id.contains(char::is_control) {
            return Ok(AttemptState::Lost);
        }
        let desk = &super::of(service)?.desk;
        let processes = self.processes();
        let standing = desk.standing(&processes, tracking_id, attempt).await?;
        if standing != AttemptState::Lost {
            self.notes.audit(tracking_id);
        }
        Ok(standing)
    }

    /// It says that it has the attempt: see [`Desk::confirm`](super::Desk::confirm).
    pub(crate) fn confirm(&self, service: &Shared, said: &Attempt) -> Result<bool, Failure> {
        let desk = &super::of(service)?.desk;
        let is_confirmed = desk.confirm(&self.processes(), &said.tracking_id, said.attempt);
        if is_confirmed {
            self.notes.audit(&said.tracking_id);
        }
        Ok(is_confirmed)
    }

    pub(crate) async fn held(
        &self,
        service: &Shared,
        tracking_id: &str,
        attempt: u32,
    ) -> Result<Option<Lease>, Failure> {
        Ok(match self.standing(service, tracking_id, attempt).await? {
            AttemptState::Held(lease) => Some(lease),
            AttemptState::Finished | AttemptState::Lost => None,
        })
    }
}

async fn usable(token: &AgentToken, service: &Shared) -> Result<Option<AgentRecord>, Failure> {
    let key = token.key();
    let record = super::of(service)?.store.agent(key.id()).await?;
    // An unknown id is compared too, so that the time of an answer tells nothing about it.
    let stored = record
        .as_ref()
        .map_or(KeyDigest([0; 32]), |record| record.digest);
    let proven = stored == key.digest();
    Ok(record.filter(|record| proven && record.revoked_at.is_none()))
}

fn presented(parts: &Parts) -> Option<AgentToken> {
    let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    AgentToken::parse(value.to_str().ok()?.strip_prefix("Bearer ")?)
}
