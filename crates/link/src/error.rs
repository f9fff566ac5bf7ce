/// What can go wrong before a link carries its first byte. Failures of single connections are no
/// errors of the link: they are kept as records.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("allow target `{text}`: {problem}")]
    AllowTarget { text: String, problem: String },

    #[error("line profile: {0}")]
    Profile(String),

    #[error("the link could not listen on loopback: {0}")]
    Listen(#[source] std::io::Error),

    #[error("the link could not start its thread: {0}")]
    Thread(#[source] std::io::Error),
}
