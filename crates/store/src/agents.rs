use async_trait::async_trait;

use crate::{Key, KeyDigest, Lease, StoreError, Timestamp};

/// What agents outside the server's process need: their tokens, who was seen, who holds what.
///
/// The rules of [`crate::Store`] hold here too.
#[async_trait]
pub trait AgentStore: Send + Sync + 'static {
    /// A name that another agent has, which is not revoked, is a [`StoreError::InUse`].
    async fn add_agent(
        &self,
        name: &str,
        token_id: &str,
        digest: KeyDigest,
        bounds: &AgentBounds,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// By the id of its token.
    async fn agent(&self, token_id: &str) -> Result<Option<AgentRecord>, StoreError>;

    /// All there ever were, by name, the newest of a name last.
    async fn agents(&self) -> Result<Vec<AgentRecord>, StoreError>;

    /// From now on the agent of this name is refused; its name is free again.
    async fn revoke_agent(&self, name: &str, now: Timestamp) -> Result<(), StoreError>;

    /// Whether the agent of this name may get new work; a second drain keeps the first's time.
    async fn drain_agent(
        &self,
        name: &str,
        drained: bool,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Notes what a process says about itself, in place of what it said before. Who has not been
    /// seen for a day is forgotten.
    async fn record_presence(&self, sighting: AgentPresence) -> Result<(), StoreError>;

    /// Who was seen at `since` or later, by process.
    async fn presences(&self, since: Timestamp) -> Result<Vec<AgentPresence>, StoreError>;

    /// Where those stand who were seen at `since` or later and may get work, each place once.
    async fn active_locations(&self, since: Timestamp) -> Result<Vec<String>, StoreError>;

    /// A process that is known to be gone is no longer seen. Returns how many there were whose
    /// name starts with the prefix.
    async fn remove_presence(&self, process_prefix: &str) -> Result<u64, StoreError>;

    /// What became of one attempt.
    async fn attempt_state(
        &self,
        tracking_id: &str,
        attempt: u32,
    ) -> Result<AttemptState, StoreError>;

    /// All that runs, or only what this owner holds, in the order of acceptance.
    async fn running(&self, owner: Option<&str>) -> Result<Vec<Lease>, StoreError>;
}

/// An agent as stored: never the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRecord {
    /// The id of its token.
    pub id: String,
    pub name: String,
    pub digest: KeyDigest,
    pub bounds: AgentBounds,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    pub drained_at: Option<Timestamp>,
}

/// What a token allows to all agents that use it together.
///
/// Tokens made before tokens were bound allow everything, which is the default here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentBounds {
    /// The locations whose audits may be taken. `None` is any.
    pub locations: Option<Vec<String>>,
    /// How many audits may be held at a time. `None` is any number.
    pub slots: Option<u32>,
}

const SEPARATOR: &str = ",";

impl AgentBounds {
    /// Whether a token with these bounds may be used at this location.
    pub fn allows_location(&self, location: &str) -> bool {
        let named = self.locations.as_ref();
        named.is_none_or(|named| named.iter().any(|name| name == location))
    }

    /// The locations as one column keeps them.
    pub(crate) fn locations_column(&self) -> Result<Option<String>, StoreError> {
        let Some(locations) = &self.locations else {
            return Ok(None);
        };
        let is_id = |name: &String| !name.is_empty() && !name.contains(SEPARATOR);
        if locations.is_empty() || !locations.iter().all(is_id) {
            return Err(StoreError::Refused(
                "a token is for one location or more, each without a comma".to_owned(),
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

/// A running agent, as it was seen last.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentPresence {
    /// Begins the owner of each of its leases.
    pub process: String,
    /// None for an agent inside a server.
    pub agent_id: Option<String>,
    /// Where it really stands.
    pub location: String,
    pub chromium: String,
    /// Its host's speed, unthrottled, on Lighthouse's BenchmarkIndex scale.
    pub host_index: Option<f64>,
    pub slots: u32,
    pub version: String,
    pub seen_at: Timestamp,
}

/// How long a sighting is kept.
pub const PRESENCE_RETENTION_MS: i64 = 24 * 60 * 60 * 1000;

/// What became of one attempt at an audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptState {
    /// It runs, and nobody else has taken over.
    Held(Lease),
    /// It is the one that finished the audit.
    Finished,
    /// Taken over, handed back, or never there.
    Lost,
}

/// `pla_<id>_<secret>`: what an agent proves itself with. As a [`Key`] in everything but its
/// letters, so that neither is taken for the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentToken(Key);

const PREFIX: &str = "pla";

impl AgentToken {
    pub fn generate() -> Result<Self, getrandom::Error> {
        Key::generate().map(Self)
    }

    /// `None` when it cannot be a token at all.
    pub fn parse(text: &str) -> Option<Self> {
        Key::parse_as(PREFIX, text).map(Self)
    }

    pub fn key(&self) -> &Key {
        &self.0
    }

    /// The whole token: for showing it once, to who created it.
    pub fn reveal(&self) -> String {
        self.0.reveal_as(PREFIX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_no_key_and_a_key_no_token() {
        let token = AgentToken::generate().unwrap();
        assert_eq!(AgentToken::parse(&token.reveal()), Some(token.clone()));
        assert_eq!(Key::parse(&token.reveal()), None);
        assert_eq!(AgentToken::parse(&token.key().reveal()), None);
    }

    #[test]
    fn a_debug_print_withholds_the_secret() {
        let token = AgentToken::generate().unwrap();
        let shown = token.reveal();
        let secret = shown.rsplit('_').next().unwrap();
        assert!(!format!("{token:?}").contains(secret));
    }
}
