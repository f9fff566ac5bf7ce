//! Everything that can go wrong, and how it is answered: the only place that knows.

use std::{error::Error, sync::Arc};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::answer;

const TRY_UNFINISHED_AGAIN_S: u32 = 30;
const TRY_PLACE_AGAIN_S: u32 = 1;

/// A request that is not served. What it displays is the `message` of the failure envelope.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("Unauthorized")]
    Unauthorized,
    /// Of an agent, or of who reads the metrics: the token is missing, unknown or revoked.
    #[error("Unauthorized")]
    InvalidToken,
    #[error(
        "This server speaks agent protocol {}; agent and server must be of versions that speak the same",
        plumbline_seam::PROTOCOL
    )]
    OtherProtocol,
    #[error("The upload goes on elsewhere")]
    UploadElsewhere,
    #[error("What arrived is not what was sent")]
    CorruptUpload,
    #[error("No room to keep this")]
    NoRoom(#[source] Box<dyn Error + Send + Sync>),
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
    #[error("Invalid Runs")]
    InvalidRuns,
    #[error("Invalid Webhook")]
    InvalidWebhook,
    /// A batch of none, or of more than may be asked for at once.
    #[error("Invalid Batch")]
    InvalidBatch,
    /// A parameter of the query, by the name it is spoken of.
    #[error("Invalid {0}")]
    InvalidParameter(&'static str),
    #[error("Invalid Idempotency Key")]
    InvalidIdempotencyKey,
    #[error("Idempotency Key Reused")]
    IdempotencyKeyReused,
    #[error("Rate Limit Exceeded")]
    RateLimited,
    #[error("Too Many Unfinished Audits")]
    TooManyUnfinished,
    /// Too many audits of the account have failed within an hour; the wait in seconds.
    #[error("Too Many Failed Audits")]
    TooManyFailedAudits(i64),
    /// A token is used at a location that it is not for.
    #[error("This token is for agents at {allowed}, not at {location}")]
    OtherLocation { allowed: String, location: String },
    /// An agent announces more slots than its token has.
    #[error("This token has {allowed} slots, and this agent has {slots}")]
    TooManySlots { allowed: u32, slots: u32 },
    /// The agents of a token hold as many audits as it has slots.
    #[error("All {0} slots of this token are in use")]
    SlotsInUse(u32),
    /// An address has tried too many; the wait in seconds.
    #[error("Too Many Failed Keys")]
    TooManyFailedKeys(i64),
    /// One address has too many requests under way.
    #[error("Too Many Requests At Once")]
    TooManyAtOnce,
    /// One key, or one address, has too many requests that wait on purpose.
    #[error("Too Many Waiting Requests")]
    TooManyWaits,
    /// All places at which requests are served are taken.
    #[error("Service Unavailable")]
    Busy,
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
            Self::Unauthorized | Self::InvalidToken => StatusCode::UNAUTHORIZED,
            Self::UploadElsewhere => StatusCode::CONFLICT,
            Self::CorruptUpload => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NoRoom(_) => StatusCode::INSUFFICIENT_STORAGE,
            Self::InvalidBody | Self::OtherProtocol => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::InvalidUrl
            | Self::InvalidDevice
            | Self::InvalidLocation
            | Self::InvalidNetwork
            | Self::InvalidFormat
            | Self::InvalidRuns
            | Self::InvalidWebhook
            | Self::InvalidBatch => StatusCode::NOT_ACCEPTABLE,
            Self::InvalidParameter(_) | Self::InvalidIdempotencyKey => StatusCode::BAD_REQUEST,
            Self::IdempotencyKeyReused => StatusCode::CONFLICT,
            Self::OtherLocation { .. } | Self::TooManySlots { .. } => StatusCode::FORBIDDEN,
            Self::RateLimited
            | Self::TooManyUnfinished
            | Self::TooManyFailedAudits(_)
            | Self::SlotsInUse(_)
            | Self::TooManyFailedKeys(_)
            | Self::TooManyAtOnce
            | Self::TooManyWaits => StatusCode::TOO_MANY_REQUESTS,
            Self::InsufficientCredits => StatusCode::PAYMENT_REQUIRED,
            Self::NotFound | Self::NoEvidence => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable(_) | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = answer::failure(self.status(), &self.to_string());
        match self {
            Self::Internal(cause) | Self::Unavailable(cause) | Self::NoRoom(cause) => {
                response.extensions_mut().insert(Fault(cause.into()));
            }
            // RFC 9110, 15.5.2: a 401 names a way to authenticate.
            Self::Unauthorized => {
                response.headers_mut().insert(
                    header::WWW_AUTHENTICATE,
                    HeaderValue::from_static("ApiKey header=\"X-SVC-KEY\""),
                );
            }
            Self::InvalidToken => {
                response
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::TooManyFailedKeys(wait_s) | Self::TooManyFailedAudits(wait_s) => {
                let wait = HeaderValue::from(wait_s);
                response.headers_mut().insert(header::RETRY_AFTER, wait);
            }
            // When one of them ends is not known; most end within a minute.
            Self::TooManyUnfinished | Self::SlotsInUse(_) => {
                let wait = HeaderValue::from(TRY_UNFINISHED_AGAIN_S);
                response.headers_mut().insert(header::RETRY_AFTER, wait);
            }
            Self::TooManyAtOnce | Self::TooManyWaits | Self::Busy => {
                let wait = HeaderValue::from(TRY_PLACE_AGAIN_S);
                response.headers_mut().insert(header::RETRY_AFTER, wait);
            }
            _ => {}
        }
        response
    }
}

impl From<plumbline_store::StoreError> for Failure {
    fn from(error: plumbline_store::StoreError) -> Self {
        match error {
            plumbline_store::StoreError::SlotsInUse(slots) => Self::SlotsInUse(slots),
            error => Self::internal(error),
        }
    }
}
