//! The exit codes of the process.

use std::fmt::Display;
use std::process::ExitCode;

/// The result of a command, with its exit code.
#[derive(Debug)]
pub enum Exit {
    /// Exit code 0: success.
    Done,
    /// Exit code 1: failure; for `audit`, the page could not be measured. The message is optional.
    Failed(Option<String>),
    /// Exit code 2: invalid arguments or configuration (clap uses 2 as well).
    Usage(String),
    /// Exit code 3: the page exceeds its budget; for `compare`, the second page is slower.
    OverBudget,
}

impl Exit {
    /// Returns a failure with a message.
    pub fn failed(message: impl Display) -> Self {
        Self::Failed(Some(message.to_string()))
    }

    /// Returns a usage error with a message.
    pub fn usage(message: impl Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// Prints the message on standard error and returns the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            Self::Done => ExitCode::SUCCESS,
            Self::Failed(message) => {
                if let Some(message) = message {
                    eprintln!("plumbline: {message}");
                }
                ExitCode::from(1)
            }
            Self::OverBudget => ExitCode::from(3),
            Self::Usage(message) => {
                eprintln!("plumbline: {message}");
                ExitCode::from(2)
            }
        }
    }
}
