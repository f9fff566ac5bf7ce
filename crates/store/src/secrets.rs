use async_trait::async_trait;

use crate::{StoreError, Timestamp};

/// Secrets that clients have stored, and sessions that audits sign in with. Both are sealed: a
/// store cannot read them.
///
/// The rules of [`crate::Store`] apply here, too.
#[async_trait]
pub trait SecretStore: Send + Sync + 'static {
    /// Stores a secret, in place of an earlier one with its name. Returns false, and changes
    /// nothing, if the account already has `max_secrets` others. An unknown account is a
    /// [`StoreError::NotFound`].
    async fn put_secret(
        &self,
        account_id: &str,
        name: &str,
        sealed: &[u8],
        max_secrets: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Lists the secrets of an account by name.
    async fn secrets(&self, account_id: &str) -> Result<Vec<StoredSecret>, StoreError>;

    /// Returns the sealed value of a secret.
    async fn sealed_secret(
        &self,
        account_id: &str,
        name: &str,
    ) -> Result<Option<Vec<u8>>, StoreError>;

    /// Deletes a secret, and returns whether there was one.
    async fn delete_secret(&self, account_id: &str, name: &str) -> Result<bool, StoreError>;

    /// Stores the definition of a session, in place of an earlier one with its name, whose state is
    /// deleted. Returns false, and changes nothing, if the account already has `max_sessions`
    /// others. An unknown account is a [`StoreError::NotFound`].
    async fn put_saved_session(
        &self,
        account_id: &str,
        name: &str,
        definition: &[u8],
        max_sessions: u32,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Lists the saved sessions of an account by name.
    async fn saved_sessions(&self, account_id: &str) -> Result<Vec<SavedSession>, StoreError>;

    /// Returns a saved session with its sealed definition and state.
    async fn saved_session(
        &self,
        account_id: &str,
        name: &str,
    ) -> Result<Option<SealedSession>, StoreError>;

    /// Stores the state of a session, in place of an earlier one, and returns whether there is a
    /// session with this name and version.
    async fn put_session_state(
        &self,
        account_id: &str,
        name: &str,
        version: i64,
        state: &[u8],
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Deletes a saved session, and returns whether there was one.
    async fn delete_saved_session(&self, account_id: &str, name: &str) -> Result<bool, StoreError>;

    /// Returns the account of an audit.
    async fn account_of_audit(&self, tracking_id: &str) -> Result<Option<String>, StoreError>;
}

/// A secret in a list, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecret {
    pub name: String,
    pub created_at: Timestamp,
    /// When the value was last stored.
    pub updated_at: Timestamp,
}

/// A saved session in a list, without its definition and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSession {
    pub name: String,
    pub created_at: Timestamp,
    /// When the definition was last stored.
    pub updated_at: Timestamp,
    /// When the state was last made; `None` if it was not made since.
    pub made_at: Option<Timestamp>,
}

/// A saved session with everything that is sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSession {
    /// Identifies the definition: it is higher for each later one with the same name.
    pub version: i64,
    pub definition: Vec<u8>,
    pub state: Option<Vec<u8>>,
}
