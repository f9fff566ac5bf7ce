//! The key that seals secrets, in a file outside the database.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use plumbline_store::random_text;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// The first byte of everything that is sealed: AES-256-GCM with a random nonce, which follows.
const FORMAT: u8 = 1;
/// The size of the key.
const KEY_BYTES: usize = 32;
/// The number of random characters in the name of a file with a key that is being made.
const SUFFIX_CHARS: usize = 16;

/// The reason why something could not be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    /// The file with the key is missing or cannot be used. The text names the file.
    #[error("{0}")]
    Key(String),
    /// Something was sealed with another key, or was damaged.
    #[error("it was sealed with another key")]
    OtherKey,
}

/// A key in a file: 32 bytes as 64 hexadecimal digits. It is read when it is first needed.
pub struct VaultKey {
    path: PathBuf,
    may_create: bool,
    loaded: Mutex<Option<LessSafeKey>>,
}

impl VaultKey {
    /// Returns the key in a file that an operator has made.
    pub fn existing(path: PathBuf) -> Self {
        Self {
            path,
            may_create: false,
            loaded: Mutex::default(),
        }
    }

    /// Returns the key in a file that is made, readable for its owner only, when something is first
    /// sealed.
    pub fn created_on_first_use(path: PathBuf) -> Self {
        Self {
            may_create: true,
            ..Self::existing(path)
        }
    }

    /// Checks that the file has a key.
    pub fn check(&self) -> Result<(), String> {
        let result = self.with_key(false, |_| Ok(()));
        result.map_err(|error| error.to_string())
    }

    /// Encrypts a text. It can only be opened for the same purpose, such as the name of a secret of
    /// an account.
    pub(super) fn seal(&self, purpose: &str, text: &str) -> Result<Vec<u8>, SealError> {
        let random = |_| SealError::Key("the system has no random numbers".to_owned());
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(random)?;
        let mut sealed = text.as_bytes().to_vec();
        let additional = Aad::from(purpose.as_bytes());
        self.with_key(self.may_create, |key| {
            let nonce = Nonce::assume_unique_for_key(nonce);
            key.seal_in_place_append_tag(nonce, additional, &mut sealed)
                .map_err(|_| SealError::Key("a text is too long to be sealed".to_owned()))
        })?;
        Ok([&[FORMAT], &nonce[..], &sealed].concat())
    }

    /// Decrypts what [`VaultKey::seal`] returned for this purpose.
    pub(super) fn open(&self, purpose: &str, sealed: &[u8]) -> Result<String, SealError> {
        let content = sealed.strip_prefix(&[FORMAT]).ok_or(SealError::OtherKey)?;
        let (nonce, content) = content
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(SealError::OtherKey)?;
        let mut content = content.to_vec();
        let additional = Aad::from(purpose.as_bytes());
        self.with_key(false, |key| {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let text = key
                .open_in_place(nonce, additional, &mut content)
                .map_err(|_| SealError::OtherKey)?;
            String::from_utf8(text.to_vec()).map_err(|_| SealError::OtherKey)
        })
    }

    fn with_key<T>(
        &self,
        may_create: bool,
        then: impl FnOnce(&LessSafeKey) -> Result<T, SealError>,
    ) -> Result<T, SealError> {
        let mut loaded = self.loaded.lock();
        let key = match loaded.take() {
            Some(key) => key,
            None => self.load(may_create)?,
        };
        then(loaded.insert(key))
    }

    fn load(&self, may_create: bool) -> Result<LessSafeKey, SealError> {
        let failed = |reason: &dyn std::fmt::Display| {
            SealError::Key(format!("{}: {reason}", self.path.display()))
        };
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && may_create => {
                create(&self.path).map_err(|error| failed(&error))?;
                fs::read_to_string(&self.path)
            }
            text => text,
        };
        let text = text.map_err(|error| failed(&error))?;
        let bytes = hex::decode(text.trim()).unwrap_or_default();
        if bytes.len() != KEY_BYTES {
            return Err(failed(&"a key consists of 64 hexadecimal digits"));
        }
        let key =
            UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| failed(&"the key cannot be used"))?;
        Ok(LessSafeKey::new(key))
    }
}

/// Makes a file with a random key. A file that another process makes at the same time wins.
fn create(path: &Path) -> io::Result<()> {
    let mut key = [0; KEY_BYTES];
    SystemRandom::new()
        .fill(&mut key)
        .map_err(|_| io::Error::other("the system has no random numbers"))?;
    // Written to another file first, so that a crash cannot leave a partial key. Its name is
    // random: another process that makes a key at the same time must not write to the same file.
    let suffix = random_text(SUFFIX_CHARS).map_err(io::Error::other)?;
    let unfinished = path.with_extension(format!("{suffix}.unfinished"));
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&unfinished)?;
    writeln!(file, "{}", hex::encode(key))?;
    file.sync_all()?;
    let linked = fs::hard_link(&unfinished, path);
    fs::remove_file(&unfinished)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => {
            tracing::info!(path = %path.display(), "made the key of stored secrets");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn what_was_sealed_is_opened_with_the_same_key_for_the_same_purpose() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secrets.key");
        let key = VaultKey::created_on_first_use(path.clone());
        let sealed = key.seal("a", "canary").unwrap();
        assert!(!String::from_utf8_lossy(&sealed).contains("canary"));
        assert_ne!(
            key.seal("a", "canary").unwrap(),
            sealed,
            "the nonce is random"
        );
        // Another process reads the file.
        let key = VaultKey::existing(path.clone());
        assert_eq!(key.open("a", &sealed).unwrap(), "canary");
        assert!(matches!(key.open("b", &sealed), Err(SealError::OtherKey)));
        let mut damaged = sealed.clone();
        damaged[20] ^= 1;
        for wrong in [&damaged[..], &[], &[FORMAT], &sealed[1..]] {
            assert!(matches!(key.open("a", wrong), Err(SealError::OtherKey)));
        }
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn processes_that_make_a_key_at_the_same_time_use_the_same() {
        let dir = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let path = dir.path().join(format!("{round}.key"));
            let start = Barrier::new(4);
            let sealed: Vec<_> = thread::scope(|scope| {
                let seal = || {
                    let key = VaultKey::created_on_first_use(path.clone());
                    start.wait();
                    key.seal("a", "text").unwrap()
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(seal)).collect();
                let threads = threads.into_iter();
                threads.map(|thread| thread.join().unwrap()).collect()
            });
            for sealed in sealed {
                let key = VaultKey::existing(path.clone());
                assert_eq!(key.open("a", &sealed).unwrap(), "text");
            }
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 50);
    }

    #[test]
    fn another_key_gives_an_error_and_no_value() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] =
            ["one", "two"].map(|name| VaultKey::created_on_first_use(dir.path().join(name)));
        let sealed = one.seal("a", "canary").unwrap();
        two.seal("a", "made").unwrap();
        assert!(matches!(two.open("a", &sealed), Err(SealError::OtherKey)));
    }

    #[test]
    fn a_key_that_is_missing_or_malformed_is_an_error_that_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some.key");
        let message = |key: &VaultKey| key.seal("a", "text").unwrap_err().to_string();
        assert!(message(&VaultKey::existing(path.clone())).contains("some.key"));
        for text in ["", "12", &"z".repeat(64), &"1".repeat(66)] {
            fs::write(&path, text).unwrap();
            let message = message(&VaultKey::created_on_first_use(path.clone()));
            assert!(message.contains("some.key: a key consists of"), "{message}");
        }
        fs::write(&path, format!("{}\n", "1f".repeat(32))).unwrap();
        VaultKey::existing(path).seal("a", "text").unwrap();
        // Opening never makes a key.
        let missing = dir.path().join("missing.key");
        let key = VaultKey::created_on_first_use(missing.clone());
        let sealed = [&[FORMAT][..], &[0; 40]].concat();
        assert!(matches!(key.open("a", &sealed), Err(SealError::Key(_))));
        assert!(!missing.exists());
    }
}
