//! Everything that can go wrong, and how it is answered: the only place that knows.

use std::{error::Error, sync::Arc};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::answer;

/// A request that is not served. What it displays is the `message` of the failure envelope.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("Unauthorized")]
    Unauthorized,
    #[error("Invalid Request body or missing required parameters")]
    InvalidBody,
    #[error("Request Body Too Large")]
    BodyTooLarge,
    #[error("Request Timeout")]
    BodyTooSlow,
    #[error("Invalid Url")]
    InvalidUrl,
    #[error("Invalid Device")]
    InvalidDevice,
    #[error("Invalid Location")]
    InvalidLocation,
    #[error("Invalid Network")]
    InvalidNetwork,
    #[error("Invalid Format")]
    InvalidFormat,
    #[error("Rate Limit Exceeded")]
    RateLimited,
    #[error("Insufficient Credits")]
    InsufficientCredits,
    #[error("Resource Not Found")]
    NotFound,
    /// The report is there, what it was judged from is not.
    #[error("The evidence of this audit is no longer kept")]
    NoEvidence,
    #[error("Method Not Allowed")]
    MethodNotAllowed,
    /// The cause is for the log, never for the client.
    #[error("Internal Server Error")]
    Internal(#[source] Box<dyn Error + Send + Sync>),
    #[error("Service Unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
}

/// Why an answer is a fault of ours: travels with the answer to where it is logged, because only
/// there the request's id is known.
#[derive(Debug, Clone)]
pub(crate) struct Fault(pub(crate) Arc<dyn Error + Send + Sync>);

impl Failure {
    pub(crate) fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Internal(cause.into())
    }

    pub(crate) fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(cause.into())
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::InvalidBody => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::InvalidUrl
            | Self::InvalidDevice
            | Self::InvalidLocation
            | Self::InvalidNetwork
            | Self::InvalidFormat => StatusCode::NOT_ACCEPTABLE,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::InsufficientCredits => StatusCode::PAYMENT_REQUIRED,
            Self::NotFound | Self::NoEvidence => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = answer::failure(self.status(), &self.to_string());
        match self {
            Self::Internal(cause) | Self::Unavailable(cause) => {
                response.extensions_mut().insert(Fault(cause.into()));
            }
            // RFC 9110, 15.5.2: a 401 names a way to authenticate.
            Self::Unauthorized => {
                response.headers_mut().insert(
                    header::WWW_AUTHENTICATE,
                    HeaderValue::from_static("ApiKey header=\"X-SVC-KEY\""),
                );
            }
            _ => {}
        }
        response
    }
}

impl From<plumbline_store::StoreError> for Failure {
    fn from(error: plumbline_store::StoreError) -> Self {
        Self::internal(error)
    }
}
