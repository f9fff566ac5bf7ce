use async_trait::async_trait;

use crate::{StoreError, Timestamp};

/// Secrets that clients have stored. Their values are sealed: a store cannot read them.
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
