use std::{error::Error, sync::Arc};

/// The cause of a server error. An extension of the response, because it is logged where the
/// request's id is known.
#[derive(Debug, Clone)]
pub(crate) struct Fault(pub(crate) Arc<dyn Error + Send + Sync>);
