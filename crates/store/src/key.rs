//! Secret access keys: made once, shown once, kept as digests.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::StoreError;

/// `plk_<id>_<secret>`: the id finds the record, the secret proves possession.
///
/// The secret carries 256 random bits, so a fast digest is enough: there is nothing to guess.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    id: String,
    secret: String,
}

const PREFIX: &str = "plk";
const ID_LENGTH: usize = 12;
const SECRET_LENGTH: usize = 43;

impl Key {
    /// Draws a new key from the system's random source.
    pub fn generate() -> Result<Self, getrandom::Error> {
        Ok(Self {
            id: random_text(ID_LENGTH)?,
            secret: random_text(SECRET_LENGTH)?,
        })
    }

    /// Splits what a client sent; `None` when it cannot be a key at all.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_as(PREFIX, text)
    }

    pub(crate) fn parse_as(prefix: &str, text: &str) -> Option<Self> {
        let (id, secret) = text
            .strip_prefix(prefix)?
            .strip_prefix('_')?
            .split_once('_')?;
        let well_formed = |part: &str, length| {
            part.len() == length && part.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        (well_formed(id, ID_LENGTH) && well_formed(secret, SECRET_LENGTH)).then(|| Self {
            id: id.to_owned(),
            secret: secret.to_owned(),
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn digest(&self) -> KeyDigest {
        KeyDigest(Sha256::digest(self.secret.as_bytes()).into())
    }

    /// The whole key: for showing it once, to who created it.
    pub fn reveal(&self) -> String {
        self.reveal_as(PREFIX)
    }

    pub(crate) fn reveal_as(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.id, self.secret)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, secret withheld)", self.id)
    }
}

/// What is stored of a key's secret. Equality takes the same time wherever two digests differ.
#[derive(Debug, Clone, Copy)]
pub struct KeyDigest(pub [u8; 32]);

impl PartialEq for KeyDigest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for KeyDigest {}

/// Letters and digits in an account's id: 95 random bits.
pub(crate) const ACCOUNT_ID_LENGTH: usize = 16;
/// And in the secret of its webhooks: 256 random bits.
pub(crate) const WEBHOOK_SECRET_LENGTH: usize = 43;

pub(crate) fn random(length: usize) -> Result<String, StoreError> {
    random_text(length).map_err(|error| StoreError::Backend(format!("no random bytes: {error}")))
}

/// Letters and digits, each drawn evenly, from the system's random source.
pub fn random_text(length: usize) -> Result<String, getrandom::Error> {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    // The largest multiple of 62 that a byte can hold: above it, a draw would favour some letters.
    const FAIR: u8 = 248;
    let mut text = String::with_capacity(length);
    let mut bytes = [0_u8; 64];
    while text.len() < length {
        getrandom::fill(&mut bytes)?;
        let missing = length - text.len();
        text.extend(
            bytes
                .iter()
                .filter(|byte| **byte < FAIR)
                .take(missing)
                .map(|byte| char::from(ALPHABET[usize::from(byte % 62)])),
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_being_shown_and_parsed() {
        let key = Key::generate().unwrap();
        assert_eq!(Key::parse(&key.reveal()), Some(key));
    }

    #[test]
    fn what_cannot_be_a_key_is_none() {
        for text in [
            "",
            "plk",
            "plk__",
            "plk_a_b",
            "xyz_AAAAAAAAAAAA_b",
            "plk_\0_\0",
        ] {
            assert_eq!(Key::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_debug_print_withholds_the_secret() {
        let key = Key::generate().unwrap();
        assert!(!format!("{key:?}").contains(&key.secret));
    }

    #[test]
    fn two_draws_differ() {
        assert_ne!(random_text(24).unwrap(), random_text(24).unwrap());
    }
}
