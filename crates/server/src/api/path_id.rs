use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};

use crate::errors::Failure;

/// Interface, section 8: characters of an id in a path, after decoding.
const LONGEST: usize = 50;

/// An `{id}` that could be one. What cannot be (too long, not UTF-8, control characters) is not
/// found, like any other id that nobody has: it never reaches the store.
pub(crate) struct PathId(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Path(id) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Failure::NotFound)?;
        checked(&id)?;
        Ok(Self(id))
    }
}

/// Two ids in a path, as [`PathId`].
pub(crate) struct PathIds(pub(crate) (String, String));

impl<S: Send + Sync> FromRequestParts<S> for PathIds {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Path(ids) = Path::<(String, String)>::from_request_parts(parts, state)
            .await
            .map_err(|_| Failure::NotFound)?;
        checked(&ids.0)?;
        checked(&ids.1)?;
        Ok(Self(ids))
    }
}

fn checked(id: &str) -> Result<(), Failure> {
    if id.chars().count() > LONGEST || id.chars().any(char::is_control) {
        return Err(Failure::NotFound);
    }
    Ok(())
}
