//! Which store is used, and how it is opened.

use std::fmt;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use plumbline_store::{
    AgentStore, PageStore, PostgresOptions, PostgresStore, SqliteStore, Store, random_text,
};

use crate::args::DataArgs;
use crate::exit::Exit;
use crate::settings::data_dir;

/// Where accounts, audits and the queue are kept.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    Sqlite(PathBuf),
    /// With a password, perhaps: never printed.
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
        Err("it is sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE".to_owned())
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

/// The data directory and the store that belongs to it.
#[derive(Debug)]
pub struct Place {
    pub data: PathBuf,
    pub store: Address,
}

impl Place {
    pub fn resolve(args: DataArgs) -> Result<Self, Exit> {
        let told = args.store.as_deref().map(Address::from_str).transpose();
        let told = told.map_err(|error| Exit::usage(format!("--store: {error}")))?;
        let data = data_dir(args)?;
        let store = told.unwrap_or_else(|| Address::Sqlite(database(&data)));
        Ok(Self { data, store })
    }

    /// Whether one server at a time can have it: that of the data directory.
    pub fn is_own(&self) -> bool {
        self.store == Address::Sqlite(database(&self.data))
    }
}

/// The database's place in a data directory.
pub fn database(data: &Path) -> PathBuf {
    data.join("plumbline.db")
}

pub struct Opened {
    pub store: Arc<dyn Store>,
    pub pages: Arc<dyn PageStore>,
    pub agents: Arc<dyn AgentStore>,
}

pub async fn open(address: &Address, options: PostgresOptions) -> Result<Opened, Exit> {
    Ok(match address {
        Address::Sqlite(path) => {
            let store = SqliteStore::open(path).map_err(Exit::failed)?;
            let store = Arc::new(store.running_per_account(options.running_per_account));
            Opened {
                store: store.clone(),
                pages: store.clone(),
                agents: store,
            }
        }
        Address::Postgres(url) => {
            let store = PostgresStore::open(url, options);
            let store = Arc::new(store.await.map_err(Exit::failed)?);
            Opened {
                store: store.clone(),
                pages: store.clone(),
                agents: store,
            }
        }
    })
}

/// What tells the servers of a shared store apart: drawn once for a data directory, on which one
/// server runs at a time.
pub fn server_id(data: &Path) -> Result<String, Exit> {
    let path = data.join("server-id");
    let failed = |error: std::io::Error| Exit::failed(format!("{}: {error}", path.display()));
    match fs::read_to_string(&path) {
        Ok(id) if !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric()) => Ok(id),
        Ok(_) => Err(Exit::failed(format!(
            "{}: this is no id; remove it, and another is drawn",
            path.display()
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let id = random_text(12).map_err(Exit::failed)?;
            // Beside it first: a crash leaves none or a whole one.
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
    fn an_address_says_which_store_it_is() {
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
    fn a_data_directory_keeps_its_id() {
        let data = tempfile::tempdir().unwrap();
        let id = server_id(data.path()).unwrap();
        assert_eq!(server_id(data.path()).unwrap(), id);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(server_id(other.path()).unwrap(), id);
    }
}
