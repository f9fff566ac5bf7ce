/// What can go wrong before a link carries its first byte, or where there is no link. Failures of
/// single connections on a link are none of its errors: they are kept as records.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("target `{text}`: {problem}")]
    Target { text: String, problem: String },

    #[error("the networks of this machine's interfaces could not be read: {0}")]
    LocalNetworks(#[source] std::io::Error),

    #[error("line profile: {0}")]
    Profile(String),

    #[error("the link could not listen on loopback: {0}")]
    Listen(#[source] std::io::Error),

    #[error("the link could not start its thread: {0}")]
    Thread(#[source] std::io::Error),

    #[error("refused: {0}")]
    Refused(crate::Refusal),

    #[error("not reached: {0}")]
    Unreachable(#[source] std::io::Error),
}
