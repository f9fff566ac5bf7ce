use async_trait::async_trait;

use crate::{AgentProcess, Key, KeyDigest, Lease, LeaseOwner, ProcessSet, StoreError, Timestamp};

/// Agents: their tokens, their presence and their leases.
///
/// The rules of [`crate::Store`] apply here, too.
#[async_trait]
pub trait AgentStore: Send + Sync + 'static {
    /// Adds an agent. The name of another agent that is not revoked is a [`StoreError::InUse`].
    async fn add_agent(
        &self,
        name: &str,
        token_id: &str,
        digest: KeyDigest,
        bounds: &AgentBounds,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Returns an agent by the id of its token.
    async fn agent(&self, token_id: &str) -> Result<Option<AgentRecord>, StoreError>;

    /// Returns all agents, also revoked ones, by name, the newest of a name last.
    async fn agents(&self) -> Result<Vec<AgentRecord>, StoreError>;

    /// Revokes the agent of this name. The name can then be used again.
    async fn revoke_agent(&self, name: &str, now: Timestamp) -> Result<(), StoreError>;

    /// Sets whether the agent of this name gets no new work. Draining it again keeps the first
    /// time.
    async fn drain_agent(
        &self,
        name: &str,
        drained: bool,
        now: Timestamp,
    ) -> Result<(), StoreError>;
    /// Records the presence of a process, in place of its earlier one. Presences older than
    /// [`PRESENCE_RETENTION_MS`] are deleted.
    async fn record_presence(&self, presence: AgentPresence) -> Result<(), StoreError>;

    /// Returns the presences recorded at `since` or later, by process.
    async fn presences(&self, since: Timestamp) -> Result<Vec<AgentPresence>, StoreError>;

    /// Returns the locations, without duplicates, of agents that were present at `since` or later
    /// and may get work.
    async fn active_locations(&self, since: Timestamp) -> Result<Vec<String>, StoreError>;

    /// Removes the presence of processes that are known to be dead, and returns their number.
    async fn remove_presence(&self, processes: &ProcessSet) -> Result<u64, StoreError>;

    /// Returns the state of one attempt.
    async fn attempt_state(
        &self,
        tracking_id: &str,
        attempt: u32,
    ) -> Result<AttemptState, StoreError>;

    /// Returns all leases, or those of one owner, in order of acceptance of their audits.
    async fn running(&self, owner: Option<&LeaseOwner>) -> Result<Vec<Lease>, StoreError>;
}

/// An agent as it is stored, without its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRecord {
    /// The id of the agent's token.
    pub id: String,
    pub name: String,
    pub digest: KeyDigest,
    pub bounds: AgentBounds,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    pub drained_at: Option<Timestamp>,
}

/// The limits of a token, which apply to all agents that use it together.
///
/// Tokens of versions before these limits allow everything, which is the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentBounds {
    /// The locations whose audits may be leased; `None` allows all.
    pub locations: Option<Vec<String>>,
    /// The maximum number of leases at a time; `None` is unlimited.
    pub slots: Option<u32>,
}

const SEPARATOR: &str = ",";

impl AgentBounds {
    /// Whether a token with these bounds may be used at this location.
    pub fn allows_location(&self, location: &str) -> bool {
        let allowed = self.locations.as_ref();
        allowed.is_none_or(|allowed| allowed.iter().any(|id| id == location))
    }

    /// Returns the locations as the value of their column.
    pub(crate) fn locations_column(&self) -> Result<Option<String>, StoreError> {
        let Some(locations) = &self.locations else {
            return Ok(None);
        };
        let is_id = |name: &String| !name.is_empty() && !name.contains(SEPARATOR);
        if locations.is_empty() || !locations.iter().all(is_id) {
            return Err(StoreError::Refused(
                "a token needs one or more location ids, each without a comma".to_owned(),
            ));
        }
        Ok(Some(locations.join(SEPARATOR)))
    }

    pub(crate) fn from_columns(locations: Option<&str>, slots: Option<u32>) -> Self {
        let split = |text: &str| text.split(SEPARATOR).map(str::to_owned).collect();
        Self {
            locations: locations.map(split),
            slots,
        }
    }
}

/// A running agent process, as it last announced itself.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentPresence {
    pub process: AgentProcess,
    /// The id of the agent's token; `None` for an agent inside a server.
    pub agent_id: Option<String>,
    /// The location that the agent runs at.
    pub location: String,
    pub chromium: String,
    /// The unthrottled speed of the agent's host on Lighthouse's BenchmarkIndex scale.
    pub host_index: Option<f64>,
    pub slots: u32,
    pub version: String,
    pub seen_at: Timestamp,
}

/// Time after which a presence is deleted.
pub const PRESENCE_RETENTION_MS: i64 = 24 * 60 * 60 * 1000;

/// The state of one attempt at an audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptState {
    /// The attempt is running and no other has taken over.
    Held(Box<Lease>),
    /// The attempt has finished the audit.
    Finished,
    /// The attempt was taken over or released, or it never existed.
    Lost,
}

/// The token of an agent, written as `pla_<id>_<secret>`. It is a [`Key`] with another prefix, so
/// that neither can be used in place of the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentToken(Key);

const PREFIX: &str = "pla";

impl AgentToken {
    pub fn generate() -> Result<Self, getrandom::Error> {
        Key::generate().map(Self)
    }

    /// Parses a token; `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        Key::parse_as(PREFIX, text).map(Self)
    }

    pub fn key(&self) -> &Key {
        &self.0
    }

    /// Returns the whole token with its secret, to show it once to its creator.
    pub fn reveal(&self) -> String {
        self.0.reveal_as(PREFIX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_a_key_and_a_key_is_not_a_token() {
        let token = AgentToken::generate().unwrap();
        assert_eq!(AgentToken::parse(&token.reveal()), Some(token.clone()));
        assert_eq!(Key::parse(&token.reveal()), None);
        assert_eq!(AgentToken::parse(&token.key().reveal()), None);
    }

    #[test]
    fn a_debug_print_withholds_the_secret() {
        let token = AgentToken::generate().unwrap();
        let revealed = token.reveal();
        let secret = revealed.rsplit('_').next().unwrap();
        assert!(!format!("{token:?}").contains(secret));
    }
}
