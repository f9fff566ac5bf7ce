//! Saved sessions in the vault: definitions and states are sealed, because steps contain values and
//! states are credentials.

use plumbline_seam::{
    MAX_SAVED_STATE_BYTES, MadeSession, SavedState, Secret, SessionDefinition, SessionUse, SignIn,
    VisitOptions,
};
use plumbline_store::{SavedSession, Timestamp};

use super::{Vault, VaultError, purpose, seal_error};

/// The largest number of saved sessions of an account.
pub(crate) const MAX_SESSIONS: u32 = 100;

/// The kinds of sealed texts.
const DEFINITION: &str = "session definition";
const STATE: &str = "session state";

impl Vault {
    /// Stores the definition of a session. Returns false if the account has too many others.
    pub(crate) async fn define_session(
        &self,
        account_id: &str,
        name: &str,
        definition: &SessionDefinition,
        now: Timestamp,
    ) -> Result<bool, VaultError> {
        let text = serde_json::to_string(definition).map_err(VaultError::unreadable)?;
        let sealed = self.key.seal(&purpose(DEFINITION, account_id, name), &text);
        let sealed = sealed.map_err(|error| seal_error(error, name))?;
        let stored = self
            .store
            .put_saved_session(account_id, name, &sealed, MAX_SESSIONS, now);
        Ok(stored.await?)
    }

    /// Lists the sessions of an account, without definitions and states.
    pub(crate) async fn sessions(&self, account_id: &str) -> Result<Vec<SavedSession>, VaultError> {
        Ok(self.store.saved_sessions(account_id).await?)
    }

    /// Deletes a session, and returns whether there was one.
    pub(crate) async fn delete_session(
        &self,
        account_id: &str,
        name: &str,
    ) -> Result<bool, VaultError> {
        Ok(self.store.delete_saved_session(account_id, name).await?)
    }

    /// Returns options with the definition and the state of their session, if they use one. The
    /// steps of the session have values in place of placeholders.
    pub(super) async fn with_session(
        &self,
        account_id: &str,
        mut options: VisitOptions,
    ) -> Result<VisitOptions, VaultError> {
        let Some(SessionUse { name, .. }) = options.session.take() else {
            return Ok(options);
        };
        let sealed = self.store.saved_session(account_id, &name).await?;
        let sealed = sealed.ok_or_else(|| VaultError::UnknownSession(name.clone()))?;
        let open = |kind: &str, sealed: &[u8]| {
            let text = self.key.open(&purpose(kind, account_id, &name), sealed);
            text.map_err(|error| seal_error(error, &name))
        };
        let text = open(DEFINITION, &sealed.definition)?;
        let mut definition: SessionDefinition =
            serde_json::from_str(&text).map_err(VaultError::unreadable)?;
        let replaced = self
            .replace_secrets(account_id, &definition.as_options())
            .await?;
        definition.steps = replaced.steps;
        let state = match &sealed.state {
            Some(state) => {
                let text = open(STATE, state)?;
                Some(serde_json::from_str::<SavedState>(&text).map_err(VaultError::unreadable)?)
            }
            None => None,
        };
        let known: Vec<Secret> = std::mem::take(&mut options.secrets);
        let more = replaced.secrets.into_iter();
        options.secrets = more.filter(|it| !known.contains(it)).collect();
        options.secrets.extend(known);
        options.session = Some(SessionUse {
            name,
            sign_in: Some(Box::new(SignIn {
                definition,
                version: sealed.version,
                state,
            })),
        });
        Ok(options)
    }

    /// Stores the state that an agent has made for the session of an audit. Returns false if the
    /// session was deleted or defined anew meanwhile, or if the state is too large.
    pub(crate) async fn keep_session(
        &self,
        tracking_id: &str,
        name: &str,
        made: &MadeSession,
        now: Timestamp,
    ) -> Result<bool, VaultError> {
        let account_id = self.account_of_audit(tracking_id).await?;
        let text = serde_json::to_string(&made.state).map_err(VaultError::unreadable)?;
        if text.len() > MAX_SAVED_STATE_BYTES {
            return Ok(false);
        }
        let sealed = self.key.seal(&purpose(STATE, &account_id, name), &text);
        let sealed = sealed.map_err(|error| seal_error(error, name))?;
        let stored = self
            .store
            .put_session_state(&account_id, name, made.version, &sealed, now);
        Ok(stored.await?)
    }
}
