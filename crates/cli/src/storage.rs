//! Opens the store.

use std::fmt;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use plumbline_server::VaultKey;
use plumbline_store::{
    AgentStore, PageStore, PostgresOptions, PostgresStore, SecretStore, SqliteStore, Store,
    random_text,
};

use crate::args::DataArgs;
use crate::exit::Exit;
use crate::settings::data_dir;

/// The address of the database for accounts, audits and the queue.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    Sqlite(PathBuf),
    /// A URL, which may contain a password and is never printed.
    Postgres(String),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("sqlite:")
            && !path.is_empty()
        {
            return Ok(Self::Sqlite(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        Err("expected sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE".to_owned())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(_) => f.write_str("the PostgreSQL database"),
        }
    }
}

/// The data directory and the address of the store.
#[derive(Debug)]
pub struct StoreLocation {
    pub data: PathBuf,
    pub store: Address,
}

impl StoreLocation {
    /// Resolves the arguments.
    pub fn resolve(args: DataArgs) -> Result<Self, Exit> {
        let store = args.store.as_deref().map(Address::from_str).transpose();
        let store = store.map_err(|error| Exit::usage(format!("--store: {error}")))?;
        let data = data_dir(args)?;
        let store = store.unwrap_or_else(|| Address::Sqlite(database(&data)));
        Ok(Self { data, store })
    }

    /// Whether the store is the database in the data directory, which only one server uses at a
    /// time.
    pub fn is_local(&self) -> bool {
        self.store == Address::Sqlite(database(&self.data))
    }
}

/// Returns the path of the database in a data directory.
pub fn database(data: &Path) -> PathBuf {
    data.join("plumbline.db")
}

/// Returns the key that seals the secrets of clients, if there is one. Servers that share a
/// database need the same key, so that none is made for them.
pub fn vault_key(
    location: &StoreLocation,
    file: Option<PathBuf>,
) -> Result<Option<VaultKey>, Exit> {
    if let Some(file) = file {
        let key = VaultKey::existing(file);
        key.check()
            .map_err(|error| Exit::usage(format!("--secrets-key: {error}")))?;
        return Ok(Some(key));
    }
    Ok(match &location.store {
        Address::Sqlite(_) => {
            let file = location.data.join("secrets.key");
            Some(VaultKey::created_on_first_use(file))
        }
        Address::Postgres(_) => None,
    })
}

/// The traits of an open store.
pub struct Stores {
    pub store: Arc<dyn Store>,
    pub pages: Arc<dyn PageStore>,
    pub agents: Arc<dyn AgentStore>,
    pub secrets: Arc<dyn SecretStore>,
}

/// Opens a store.
pub async fn open(address: &Address, options: PostgresOptions) -> Result<Stores, Exit> {
    Ok(match address {
        Address::Sqlite(path) => {
            let store = SqliteStore::open(path).map_err(Exit::failed)?;
            let store = Arc::new(store.running_per_account(options.running_per_account));
            Stores {
                store: store.clone(),
                pages: store.clone(),
                agents: store.clone(),
                secrets: store,
            }
        }
        Address::Postgres(url) => {
            let store = PostgresStore::open(url, options);
            let store = Arc::new(store.await.map_err(Exit::failed)?);
            Stores {
                store: store.clone(),
                pages: store.clone(),
                agents: store.clone(),
                secrets: store,
            }
        }
    })
}

/// Returns the id that distinguishes the servers of a shared store. It is generated once for a data
/// directory, on which only one server runs at a time.
pub fn server_id(data: &Path) -> Result<String, Exit> {
    let path = data.join("server-id");
    let failed = |error: std::io::Error| Exit::failed(format!("{}: {error}", path.display()));
    match fs::read_to_string(&path) {
        Ok(id) if !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric()) => Ok(id),
        Ok(_) => Err(Exit::failed(format!(
            "{}: not an id; remove the file to generate another",
            path.display()
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let id = random_text(12).map_err(Exit::failed)?;
            // Written to another file first, so that a crash cannot leave a partial id.
            let unfinished = path.with_extension("unfinished");
            fs::OpenOptions::new()
                .create(true)
                .write(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)
                .and_then(|mut file| file.write_all(id.as_bytes()))
                .and_then(|()| fs::rename(&unfinished, &path))
                .map_err(failed)?;
            Ok(id)
        }
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_parsed_by_its_scheme() {
        let sqlite = Address::Sqlite(PathBuf::from("some/file.db"));
        assert_eq!("sqlite:some/file.db".parse(), Ok(sqlite));
        for text in ["postgres://u:p@host/db", "postgresql://u:p@host/db"] {
            assert_eq!(text.parse(), Ok(Address::Postgres(text.to_owned())));
        }
        for wrong in ["", "sqlite:", "mysql://host/db", "plumbline.db"] {
            assert!(Address::from_str(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_not_printed() {
        let address: Address = "postgres://u:secret@host/db".parse().unwrap();
        assert!(!format!("{address} {address:?}").contains("secret"));
    }

    #[test]
    fn a_key_for_secrets_is_made_only_where_one_server_has_the_database() {
        let data = tempfile::tempdir().unwrap();
        let location = |store: &str| StoreLocation {
            data: data.path().to_owned(),
            store: store.parse().unwrap(),
        };
        let postgres = location("postgres://u:p@host/db");
        assert!(vault_key(&postgres, None).unwrap().is_none());
        let sqlite = location("sqlite:some/file.db");
        assert!(vault_key(&sqlite, None).unwrap().is_some());
        assert!(
            !data.path().join("secrets.key").exists(),
            "made on first use"
        );

        let file = data.path().join("own.key");
        let missing = vault_key(&postgres, Some(file.clone())).err();
        let Some(Exit::Usage(message)) = missing else {
            panic!("{missing:?}");
        };
        assert!(
            message.starts_with("--secrets-key: ") && message.contains("own.key"),
            "{message}"
        );
        fs::write(&file, "0f".repeat(32)).unwrap();
        assert!(vault_key(&postgres, Some(file)).unwrap().is_some());
    }

    #[test]
    fn the_id_of_a_data_directory_does_not_change() {
        let data = tempfile::tempdir().unwrap();
        let id = server_id(data.path()).unwrap();
        assert_eq!(server_id(data.path()).unwrap(), id);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(server_id(other.path()).unwrap(), id);
    }
}
