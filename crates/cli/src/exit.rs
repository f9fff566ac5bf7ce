//! The one place for exit codes.

use std::fmt::Display;
use std::process::ExitCode;

/// How the process ends.
#[derive(Debug)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: it could not be done; for `audit`, the page could not be measured.
    Failed(Option<String>),
    /// 2: the command line or the configuration is wrong (clap ends with 2 as well).
    Usage(String),
    /// 3: the page costs more than its budget allows.
    OverBudget,
}

impl Exit {
    pub fn failed(message: impl Display) -> Self {
        Self::Failed(Some(message.to_string()))
    }

    pub fn usage(message: impl Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// Says on standard error what went wrong, and gives the code.
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
