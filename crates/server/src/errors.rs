//! All failures of requests, and the only mapping from them to responses.

use std::error::Error;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::{envelope, fault::Fault};

/// `Retry-After` where a client must wait for audits to end. When that happens is not known; most
/// end within a minute.
const RETRY_AFTER_AUDIT_S: u32 = 30;
/// `Retry-After` where a client must wait for other requests to end.
const RETRY_AFTER_REQUEST_S: u32 = 1;

/// The reason why a request fails. Its `Display` text is the `message` of the failure envelope.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The key is missing, unknown, revoked or expired.
    #[error("Unauthorized")]
    Unauthorized,
    /// The bearer token of an agent or of a metrics reader is missing, unknown or revoked.
    #[error("Unauthorized")]
    InvalidToken,
    /// The agent uses another version of the protocol.
    #[error(
        "This server uses agent protocol {}; upgrade the agent or the server so that both use the same",
        plumbline_seam::PROTOCOL
    )]
    OtherProtocol,
    /// The upload has another length than the offset, or another request is writing to it.
    #[error("Upload offset conflict")]
    UploadConflict,
    /// The digest of an upload is wrong.
    #[error("Upload checksum mismatch")]
    CorruptUpload,
    /// The disk is full.
    #[error("Insufficient storage")]
    StorageFull(#[source] Box<dyn Error + Send + Sync>),
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
    /// The batch has no audits, or more than are allowed.
    #[error("Invalid Batch")]
    InvalidBatch,
    /// A parameter of the query is invalid; the text is its name in the message.
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
    /// Too many audits of the account have failed within an hour; the number is the wait in
    /// seconds.
    #[error("Too Many Failed Audits")]
    TooManyFailedAudits(i64),
    /// The agent is at a location that its token does not allow.
    #[error("This token is for agents at {allowed}, not at {location}")]
    OtherLocation { allowed: String, location: String },
    /// The agent announces more slots than its token allows.
    #[error("This token allows {allowed} slots, but this agent has {slots}")]
    TooManySlots { allowed: u32, slots: u32 },
    /// The agents of a token already hold as many audits as it allows slots.
    #[error("All {0} slots of this token are in use")]
    SlotsInUse(u32),
    /// Too many wrong keys came from the address; the number is the wait in seconds.
    #[error("Too Many Failed Keys")]
    TooManyFailedKeys(i64),
    /// Too many concurrent requests come from the address.
    #[error("Too Many Requests At Once")]
    TooManyAtOnce,
    /// The key or the address has too many long polls and event streams.
    #[error("Too Many Waiting Requests")]
    TooManyWaits,
    /// The limit on concurrent requests is reached.
    #[error("Service Unavailable")]
    Busy,
    #[error("Insufficient Credits")]
    InsufficientCredits,
    #[error("Resource Not Found")]
    NotFound,
    /// The report exists, but the evidence it was computed from does not.
    #[error("The evidence of this audit is no longer kept")]
    NoEvidence,
    #[error("Method Not Allowed")]
    MethodNotAllowed,
    /// The server failed. The cause is written to the log and never sent to the client.
    #[error("Internal Server Error")]
    Internal(#[source] Box<dyn Error + Send + Sync>),
    /// The server cannot respond at the moment. The cause is written to the log.
    #[error("Service Unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
}

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
            Self::UploadConflict => StatusCode::CONFLICT,
            Self::CorruptUpload => StatusCode::UNPROCESSABLE_ENTITY,
            Self::StorageFull(_) => StatusCode::INSUFFICIENT_STORAGE,
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
        let mut response = envelope::failure(self.status(), &self.to_string());
        match self {
            Self::Internal(cause) | Self::Unavailable(cause) | Self::StorageFull(cause) => {
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
            Self::TooManyUnfinished | Self::SlotsInUse(_) => {
                let wait = HeaderValue::from(RETRY_AFTER_AUDIT_S);
                response.headers_mut().insert(header::RETRY_AFTER, wait);
            }
            Self::TooManyAtOnce | Self::TooManyWaits | Self::Busy => {
                let wait = HeaderValue::from(RETRY_AFTER_REQUEST_S);
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
