use std::fmt;

/// An error while packing or unpacking evidence.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("invalid content: {0}")]
    Unreadable(String),
    #[error("format {found} is newer than {supported}, the newest that this version reads")]
    Newer { found: u32, supported: u32 },
    #[error("it unpacks to more than {max} bytes")]
    TooLarge { max: u64 },
}

impl PackError {
    /// Describes an error of a library.
    pub fn unreadable(error: impl fmt::Display) -> Self {
        Self::Unreadable(error.to_string())
    }
}
