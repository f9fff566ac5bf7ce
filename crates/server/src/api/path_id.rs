//! Ids in paths.

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};

use crate::errors::Failure;

/// The longest id in a path, in characters after decoding (interface, section 8).
const MAX_CHARS: usize = 50;

/// A plausible `{id}`. One that cannot exist (too long, not UTF-8, control characters) is not
/// found, like any other unknown id, and never reaches the store.
pub(crate) struct PathId(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Path(id) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Failure::NotFound)?;
        check(&id)?;
        Ok(Self(id))
    }
}

/// Two ids in a path, with the rules of [`PathId`].
pub(crate) struct PathIds(pub(crate) (String, String));

impl<S: Send + Sync> FromRequestParts<S> for PathIds {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Path(ids) = Path::<(String, String)>::from_request_parts(parts, state)
            .await
            .map_err(|_| Failure::NotFound)?;
        check(&ids.0)?;
        check(&ids.1)?;
        Ok(Self(ids))
    }
}

/// A plausible `{name}` that a client chose: see [`plumbline_seam::is_name`]. Any other cannot
/// exist.
pub(crate) struct PathName(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(name) = path.map_err(|_| Failure::NotFound)?;
        if plumbline_seam::is_name(&name) {
            Ok(Self(name))
        } else {
            Err(Failure::NotFound)
        }
    }
}

fn check(id: &str) -> Result<(), Failure> {
    if id.chars().count() > MAX_CHARS || id.chars().any(char::is_control) {
        return Err(Failure::NotFound);
    }
    Ok(())
}
