//! Secrets and sessions of clients: sealed before they are stored, and opened when a job is handed
//! to an agent.

mod key;
mod sessions;

use std::collections::BTreeMap;
use std::sync::Arc;

use plumbline_seam::{ReplacementError, Secret, VisitOptions};
use plumbline_store::{SecretStore, StoreError, StoredSecret, Timestamp};

use key::SealError;
pub use key::VaultKey;
pub(crate) use sessions::MAX_SESSIONS;

/// The largest number of secrets of an account.
pub(crate) const MAX_SECRETS: u32 = 100;

/// The reason why a secret could not be stored or used. No text contains a value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VaultError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key cannot be used. The text is for the log: it names a file of the server.
    #[error("the key of stored secrets cannot be used: {0}")]
    Key(String),
    /// A secret or a session with this name was sealed with another key.
    #[error("`{0}` was sealed with another key")]
    OtherKey(String),
    /// The account has no session with this name.
    #[error("there is no session with the name `{0}`")]
    UnknownSession(String),
    /// A secret does not exist, or cannot be used where its placeholder is.
    #[error(transparent)]
    Replacement(ReplacementError),
}

impl VaultError {
    /// Returns the error of a text that cannot be read or written. The error of the parser is left
    /// out, because it may quote a value.
    fn unreadable(_: serde_json::Error) -> Self {
        Self::Key("a saved session cannot be read".to_owned())
    }
}

/// Returns whether the options of an order need the vault.
pub(crate) fn is_needed_by(options: &VisitOptions) -> bool {
    options.session.is_some() || !options.secret_names().is_empty()
}

/// Seals secrets with a key, and keeps them in the store.
pub struct Vault {
    store: Arc<dyn SecretStore>,
    key: VaultKey,
}

impl Vault {
    /// Creates a vault. All servers of a store need the same key.
    pub fn new(store: Arc<dyn SecretStore>, key: VaultKey) -> Self {
        Self { store, key }
    }

    /// Stores a secret. Returns false if the account has too many others.
    pub(crate) async fn put_secret(
        &self,
        account_id: &str,
        name: &str,
        value: &Secret,
        now: Timestamp,
    ) -> Result<bool, VaultError> {
        let purpose = purpose("secret", account_id, name);
        let sealed = self.key.seal(&purpose, value.expose());
        let sealed = sealed.map_err(|error| seal_error(error, name))?;
        let stored = self
            .store
            .put_secret(account_id, name, &sealed, MAX_SECRETS, now);
        Ok(stored.await?)
    }

    /// Lists the secrets of an account, without values.
    pub(crate) async fn secrets(&self, account_id: &str) -> Result<Vec<StoredSecret>, VaultError> {
        Ok(self.store.secrets(account_id).await?)
    }

    /// Deletes a secret, and returns whether there was one.
    pub(crate) async fn delete_secret(
        &self,
        account_id: &str,
        name: &str,
    ) -> Result<bool, VaultError> {
        Ok(self.store.delete_secret(account_id, name).await?)
    }

    /// Returns options with the secrets of an account in place of their placeholders, and with the
    /// session that they use.
    pub(crate) async fn prepare(
        &self,
        account_id: &str,
        options: &VisitOptions,
    ) -> Result<VisitOptions, VaultError> {
        let options = self.replace_secrets(account_id, options).await?;
        self.with_session(account_id, options).await
    }

    async fn replace_secrets(
        &self,
        account_id: &str,
        options: &VisitOptions,
    ) -> Result<VisitOptions, VaultError> {
        let mut values = BTreeMap::new();
        for name in options.secret_names() {
            let sealed = self.store.sealed_secret(account_id, &name).await?;
            let Some(sealed) = sealed else { continue };
            let purpose = purpose("secret", account_id, &name);
            let value = self.key.open(&purpose, &sealed);
            let value = value.map_err(|error| seal_error(error, &name))?;
            values.insert(name, Secret::from(value));
        }
        options
            .with_secrets(&values)
            .map_err(VaultError::Replacement)
    }

    /// Prepares options like [`Vault::prepare`], for the account of an audit.
    pub(crate) async fn prepare_for_audit(
        &self,
        tracking_id: &str,
        options: &VisitOptions,
    ) -> Result<VisitOptions, VaultError> {
        let account_id = self.account_of_audit(tracking_id).await?;
        self.prepare(&account_id, options).await
    }

    async fn account_of_audit(&self, tracking_id: &str) -> Result<String, VaultError> {
        let account_id = self.store.account_of_audit(tracking_id).await?;
        Ok(account_id.ok_or(StoreError::NotFound("audit"))?)
    }
}

/// Returns the purpose of something sealed, which is authenticated with it: a row that is moved to
/// another account or name cannot be opened. Neither ids nor names contain a line break.
fn purpose(kind: &str, account_id: &str, name: &str) -> String {
    format!("plumbline {kind}\n{account_id}\n{name}")
}

fn seal_error(error: SealError, name: &str) -> VaultError {
    match error {
        SealError::Key(reason) => VaultError::Key(reason),
        SealError::OtherKey => VaultError::OtherKey(name.to_owned()),
    }
}
