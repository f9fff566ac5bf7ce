//! The processes of agents, and the owners of leases.
//!
//! Both are stored as text: `embedded-SERVER-NAME` or `agent/TOKEN/NAME` for a process, followed by
//! `/SLOT` for an owner.

use std::fmt::{self, Display, Formatter};

const EMBEDDED: &str = "embedded-";
const REMOTE: &str = "agent/";

/// The process of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AgentProcess {
    /// A process inside a server.
    Embedded {
        /// The id of the server's data directory; `None` in stores of versions without it.
        server_id: Option<String>,
        /// A name that no other process of the server has.
        name: String,
    },
    /// A process that uses a token.
    Remote {
        /// The id of the token.
        token_id: String,
        /// The name that the process announces.
        name: String,
    },
    /// A process with another name, which neither servers nor agents have.
    Other(String),
}

impl From<&str> for AgentProcess {
    fn from(text: &str) -> Self {
        if let Some(rest) = text.strip_prefix(EMBEDDED) {
            let (server_id, name) = match rest.split_once('-') {
                Some((server_id, name)) => (Some(server_id.to_owned()), name),
                None => (None, rest),
            };
            let name = name.to_owned();
            return Self::Embedded { server_id, name };
        }
        let remote = text.strip_prefix(REMOTE);
        match remote.and_then(|rest| rest.split_once('/')) {
            Some((token_id, name)) => Self::Remote {
                token_id: token_id.to_owned(),
                name: name.to_owned(),
            },
            None => Self::Other(text.to_owned()),
        }
    }
}

impl Display for AgentProcess {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded {
                server_id: Some(server_id),
                name,
            } => write!(f, "{EMBEDDED}{server_id}-{name}"),
            Self::Embedded {
                server_id: None,
                name,
            } => write!(f, "{EMBEDDED}{name}"),
            Self::Remote { token_id, name } => write!(f, "{REMOTE}{token_id}/{name}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// The owner of a lease: a slot of an agent's process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeaseOwner {
    pub process: AgentProcess,
    /// The index of the slot, from 0.
    pub slot: u32,
}

impl From<&str> for LeaseOwner {
    /// Parses the text of a column. A text without a slot is read as slot 0 of a process.
    fn from(text: &str) -> Self {
        let parts = text.rsplit_once('/');
        let parts = parts.and_then(|(process, slot)| Some((process, slot.parse().ok()?)));
        let (process, slot) = parts.unwrap_or((text, 0));
        Self {
            process: process.into(),
            slot,
        }
    }
}

impl Display for LeaseOwner {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.process, self.slot)
    }
}

/// A set of agent processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessSet {
    /// All processes inside servers.
    Embedded,
    /// The processes inside one server.
    EmbeddedIn { server_id: String },
    /// The processes that use one token.
    WithToken { token_id: String },
    /// One process.
    Single(AgentProcess),
}

impl ProcessSet {
    /// Returns whether a process belongs to the set.
    pub fn contains(&self, process: &AgentProcess) -> bool {
        match (self, process) {
            (Self::Embedded, AgentProcess::Embedded { .. }) => true,
            (
                Self::EmbeddedIn { server_id },
                AgentProcess::Embedded {
                    server_id: Some(other),
                    ..
                },
            ) => server_id == other,
            (
                Self::WithToken { token_id },
                AgentProcess::Remote {
                    token_id: other, ..
                },
            ) => token_id == other,
            (Self::Single(single), process) => single == process,
            _ => false,
        }
    }
}

/// Returns the text with which the owners of all leases of a token begin.
pub(crate) fn token_prefix(token_id: &str) -> String {
    format!("{REMOTE}{token_id}/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(text: &str) -> AgentProcess {
        text.into()
    }

    #[test]
    fn a_process_is_written_as_it_was_read() {
        let embedded = AgentProcess::Embedded {
            server_id: Some("s1".to_owned()),
            name: "x".to_owned(),
        };
        assert_eq!(process("embedded-s1-x"), embedded);
        let remote = AgentProcess::Remote {
            token_id: "t1".to_owned(),
            name: "p-1".to_owned(),
        };
        assert_eq!(process("agent/t1/p-1"), remote);
        for text in [
            "embedded-s1-x",
            "embedded-x",
            "agent/t1/p-1",
            "agent/t1",
            "x",
            "",
        ] {
            assert_eq!(process(text).to_string(), text);
        }
    }

    #[test]
    fn an_owner_is_a_process_and_a_slot() {
        let owner = LeaseOwner::from("agent/t1/p/7");
        assert_eq!((&owner.process, owner.slot), (&process("agent/t1/p"), 7));
        assert_eq!(owner.to_string(), "agent/t1/p/7");
        assert!(owner.to_string().starts_with(&token_prefix("t1")));
        let without_slot = LeaseOwner::from("embedded-s1-x");
        assert_eq!(without_slot.process, process("embedded-s1-x"));
    }

    #[test]
    fn a_set_contains_the_processes_of_its_server_or_token_only() {
        let of_server = |id: &str| ProcessSet::EmbeddedIn {
            server_id: id.to_owned(),
        };
        let with_token = |id: &str| ProcessSet::WithToken {
            token_id: id.to_owned(),
        };
        let (embedded, remote) = (process("embedded-s1-x"), process("agent/t1/x"));
        assert!(ProcessSet::Embedded.contains(&embedded));
        assert!(ProcessSet::Embedded.contains(&process("embedded-x")));
        assert!(!ProcessSet::Embedded.contains(&remote));
        assert!(of_server("s1").contains(&embedded) && !of_server("s").contains(&embedded));
        assert!(with_token("t1").contains(&remote) && !with_token("t").contains(&remote));
        assert!(!with_token("s1").contains(&embedded));
        let single = ProcessSet::Single(remote.clone());
        assert!(single.contains(&remote) && !single.contains(&process("agent/t1/y")));
    }
}
