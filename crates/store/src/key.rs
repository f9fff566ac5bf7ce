//! Secret access keys. A key is shown once, and stored as a digest.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::StoreError;

/// An access key, written as `plk_<id>_<secret>`. The id identifies the record, and the secret
/// proves possession.
///
/// The secret has 256 random bits and cannot be guessed, so a fast digest is enough.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    id: String,
    secret: String,
}

const PREFIX: &str = "plk";
const ID_LENGTH: usize = 12;
const SECRET_LENGTH: usize = 43;

impl Key {
    /// Generates a new key from the system's random source.
    pub fn generate() -> Result<Self, getrandom::Error> {
        Ok(Self {
            id: random_text(ID_LENGTH)?,
            secret: random_text(SECRET_LENGTH)?,
        })
    }

    /// Parses a key that a client sent; `None` if it is malformed.
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

    /// Returns the whole key with its secret, to show it once to its creator.
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

/// The SHA-256 digest of a key's secret. Comparison takes constant time.
#[derive(Debug, Clone, Copy)]
pub struct KeyDigest(pub [u8; 32]);

impl PartialEq for KeyDigest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for KeyDigest {}

/// Length of an account's id in letters and digits: 95 random bits.
pub(crate) const ACCOUNT_ID_LENGTH: usize = 16;
/// Length of a webhook secret in letters and digits: 256 random bits.
pub(crate) const WEBHOOK_SECRET_LENGTH: usize = 43;

pub(crate) fn random(length: usize) -> Result<String, StoreError> {
    random_text(length).map_err(|error| StoreError::Backend(format!("no random bytes: {error}")))
}

/// Returns random letters and digits, uniformly distributed, from the system's random source.
pub fn random_text(length: usize) -> Result<String, getrandom::Error> {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    // The largest multiple of 62 in a byte. Larger bytes are rejected, because they would make some
    // letters more likely.
    const UNBIASED_BELOW: u8 = 248;
    let mut text = String::with_capacity(length);
    let mut bytes = [0_u8; 64];
    while text.len() < length {
        getrandom::fill(&mut bytes)?;
        let missing = length - text.len();
        text.extend(
            bytes
                .iter()
                .filter(|byte| **byte < UNBIASED_BELOW)
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
    fn a_revealed_key_can_be_parsed() {
        let key = Key::generate().unwrap();
        assert_eq!(Key::parse(&key.reveal()), Some(key));
    }

    #[test]
    fn a_malformed_key_is_none() {
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
    fn two_random_texts_differ() {
        assert_ne!(random_text(24).unwrap(), random_text(24).unwrap());
    }
}
