/// An error from opening a link, from the configuration of its guard, or from a guarded connection
/// without a link. Failures of single connections on a link are not errors but records.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("target `{text}`: {problem}")]
    Target { text: String, problem: String },

    #[error("failed to read the networks of this machine's interfaces: {0}")]
    LocalNetworks(#[source] std::io::Error),

    #[error("line profile: {0}")]
    Profile(String),

    #[error("the link failed to listen on loopback: {0}")]
    Listen(#[source] std::io::Error),

    #[error("the link failed to start its thread: {0}")]
    Thread(#[source] std::io::Error),

    #[error("the link failed to create its clock: {0}")]
    Clock(#[source] std::io::Error),

    #[error("refused: {0}")]
    Refused(crate::Refusal),

    #[error("unreachable: {0}")]
    Unreachable(#[source] std::io::Error),
}
