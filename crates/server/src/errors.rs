//! All failures of requests, and the only mapping from them to responses.

use std::error::Error;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::{
    envelope::{self, Explanation},
    fault::Fault,
};

/// `Retry-After` where a client must wait for audits to end. When that happens is not known; most
/// end within a minute.
const RETRY_AFTER_AUDIT_S: u32 = 30;
/// `Retry-After` where a client must wait for other requests to end.
const RETRY_AFTER_REQUEST_S: u32 = 1;

/// The codes of failures of the API, by status, for its description.
pub(crate) const CODES: &[(u16, &[&str])] = &[
    (
        400,
        &[
            "INVALID_BODY",
            "INVALID_PARAMETER",
            "UNKNOWN_PARAMETER",
            "INVALID_IDEMPOTENCY_KEY",
        ],
    ),
    (401, &["UNAUTHORIZED", "INVALID_TOKEN"]),
    (402, &["INSUFFICIENT_CREDITS"]),
    (404, &["NOT_FOUND", "NO_EVIDENCE"]),
    (405, &["METHOD_NOT_ALLOWED"]),
    (
        406,
        &[
            "INVALID_URL",
            "INVALID_DEVICE",
            "INVALID_LOCATION",
            "INVALID_NETWORK",
            "INVALID_FORMAT",
            "INVALID_RUNS",
            "INVALID_WEBHOOK",
            "INVALID_LABELS",
            "INVALID_DAYS",
            "INVALID_STATE",
            "INVALID_EXPECTATION",
            "INVALID_STEPS",
            "INVALID_CONSENT",
            "INVALID_VIEW",
            "INVALID_SECRET",
            "UNKNOWN_SECRET",
            "INVALID_SESSION",
            "UNKNOWN_SESSION",
            "INVALID_INTERACTIONS",
            "INVALID_PROFILE",
            "INVALID_CHANGES",
            "INVALID_BATCH",
        ],
    ),
    (408, &["BODY_TOO_SLOW"]),
    (409, &["IDEMPOTENCY_KEY_REUSED"]),
    (413, &["BODY_TOO_LARGE"]),
    (
        429,
        &[
            "RATE_LIMITED",
            "TOO_MANY_UNFINISHED_AUDITS",
            "TOO_MANY_FAILED_AUDITS",
            "TOO_MANY_FAILED_KEYS",
            "TOO_MANY_REQUESTS_AT_ONCE",
            "TOO_MANY_WAITING_REQUESTS",
        ],
    ),
    (500, &["INTERNAL"]),
    (503, &["UNAVAILABLE", "SECRETS_UNAVAILABLE"]),
];

/// A body that is not what an operation expects.
#[derive(Debug)]
pub(crate) struct InvalidBody {
    /// The member that is missing or of another type, if it is known.
    pub(crate) field: Option<String>,
    /// The position in the list, from 0, if the member is a list.
    pub(crate) index: Option<usize>,
    pub(crate) reason: String,
}

impl<T: Into<String>> From<T> for InvalidBody {
    fn from(reason: T) -> Self {
        Self {
            field: None,
            index: None,
            reason: reason.into(),
        }
    }
}

/// An invalid value of a request.
#[derive(Debug)]
pub(crate) struct InvalidValue {
    /// The member of the body, or the parameter of the query.
    pub(crate) field: &'static str,
    /// The position in the list, from 0, if the member is a list.
    pub(crate) index: Option<usize>,
    /// A sentence for people.
    pub(crate) reason: String,
}

impl InvalidValue {
    pub(crate) fn new(field: &'static str, reason: impl Into<String>) -> Self {
        Self {
            field,
            index: None,
            reason: reason.into(),
        }
    }
}

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
    /// The body is not what the operation expects; the text says why.
    #[error("Invalid Request body or missing required parameters")]
    InvalidBody(InvalidBody),
    /// A form was sent by a page of another site.
    #[error("Forbidden")]
    OtherOrigin,
    #[error("Request Body Too Large")]
    BodyTooLarge,
    #[error("Request Timeout")]
    BodyTooSlow,
    #[error("Invalid Url")]
    InvalidUrl(InvalidValue),
    #[error("Invalid Device")]
    InvalidDevice(InvalidValue),
    #[error("Invalid Location")]
    InvalidLocation(InvalidValue),
    #[error("Invalid Network")]
    InvalidNetwork(InvalidValue),
    #[error("Invalid Format")]
    InvalidFormat(InvalidValue),
    #[error("Invalid Runs")]
    InvalidRuns(InvalidValue),
    #[error("Invalid Webhook")]
    InvalidWebhook(InvalidValue),
    #[error("Invalid Labels")]
    InvalidLabels(InvalidValue),
    /// The validity of a shared link is out of bounds.
    #[error("Invalid Days")]
    InvalidDays(InvalidValue),
    #[error("Invalid State")]
    InvalidState(InvalidValue),
    #[error("Invalid Expectation")]
    InvalidExpectation(InvalidValue),
    #[error("Invalid Steps")]
    InvalidSteps(InvalidValue),
    #[error("Invalid Consent")]
    InvalidConsent(InvalidValue),
    #[error("Invalid View")]
    InvalidView(InvalidValue),
    /// The value of a secret cannot be stored.
    #[error("Invalid Secret")]
    InvalidSecret(InvalidValue),
    /// A start uses a secret that the account does not have.
    #[error("Unknown Secret")]
    UnknownSecret(InvalidValue),
    /// A session cannot be defined.
    #[error("Invalid Session")]
    InvalidSession(InvalidValue),
    /// A start uses a session that the account does not have.
    #[error("Unknown Session")]
    UnknownSession(InvalidValue),
    /// The server has no key that opens the secrets; the text says what to do.
    #[error("Secrets Unavailable")]
    SecretsUnavailable(String),
    #[error("Invalid Interactions")]
    InvalidInteractions(InvalidValue),
    #[error("Invalid Profile")]
    InvalidProfile(InvalidValue),
    #[error("Invalid Changes")]
    InvalidChanges(InvalidValue),
    /// The batch has no audits, or more than are allowed.
    #[error("Invalid Batch")]
    InvalidBatch(InvalidValue),
    /// A parameter of the query is invalid; the text is its name in the message.
    #[error("Invalid {0}")]
    InvalidParameter(&'static str),
    /// The operation has no parameter with this name.
    #[error("Unknown Parameter")]
    UnknownParameter { name: String, reason: String },
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

    /// Returns the members that explain the failure to a program, in addition to the message.
    fn explanation(&self) -> Explanation<'_> {
        let value = match self {
            Self::InvalidUrl(value)
            | Self::InvalidDevice(value)
            | Self::InvalidLocation(value)
            | Self::InvalidNetwork(value)
            | Self::InvalidFormat(value)
            | Self::InvalidRuns(value)
            | Self::InvalidWebhook(value)
            | Self::InvalidLabels(value)
            | Self::InvalidDays(value)
            | Self::InvalidState(value)
            | Self::InvalidExpectation(value)
            | Self::InvalidSteps(value)
            | Self::InvalidConsent(value)
            | Self::InvalidView(value)
            | Self::InvalidSecret(value)
            | Self::UnknownSecret(value)
            | Self::InvalidSession(value)
            | Self::UnknownSession(value)
            | Self::InvalidInteractions(value)
            | Self::InvalidProfile(value)
            | Self::InvalidChanges(value)
            | Self::InvalidBatch(value) => Some(value),
            _ => None,
        };
        Explanation {
            code: self.code(),
            field: match self {
                Self::InvalidParameter(label) => Some(label.to_lowercase()),
                Self::UnknownParameter { name, .. } => Some(name.clone()),
                Self::InvalidBody(body) => body.field.clone(),
                _ => value.map(|value| value.field.to_owned()),
            },
            index: match self {
                Self::InvalidBody(body) => body.index,
                _ => value.and_then(|value| value.index),
            },
            reason: match self {
                Self::InvalidBody(InvalidBody { reason, .. })
                | Self::UnknownParameter { reason, .. }
                | Self::SecretsUnavailable(reason) => Some(reason),
                _ => value.map(|value| value.reason.as_str()),
            },
        }
    }

    /// Returns the stable name of the failure.
    fn code(&self) -> &'static str {
        match self {
            Self::Unauthorized => "UNAUTHORIZED",
            Self::InvalidToken => "INVALID_TOKEN",
            Self::OtherProtocol => "OTHER_PROTOCOL",
            Self::UploadConflict => "UPLOAD_CONFLICT",
            Self::CorruptUpload => "CORRUPT_UPLOAD",
            Self::StorageFull(_) => "STORAGE_FULL",
            Self::InvalidBody(_) => "INVALID_BODY",
            Self::OtherOrigin => "OTHER_ORIGIN",
            Self::BodyTooLarge => "BODY_TOO_LARGE",
            Self::BodyTooSlow => "BODY_TOO_SLOW",
            Self::InvalidUrl(_) => "INVALID_URL",
            Self::InvalidDevice(_) => "INVALID_DEVICE",
            Self::InvalidLocation(_) => "INVALID_LOCATION",
            Self::InvalidNetwork(_) => "INVALID_NETWORK",
            Self::InvalidFormat(_) => "INVALID_FORMAT",
            Self::InvalidRuns(_) => "INVALID_RUNS",
            Self::InvalidWebhook(_) => "INVALID_WEBHOOK",
            Self::InvalidLabels(_) => "INVALID_LABELS",
            Self::InvalidDays(_) => "INVALID_DAYS",
            Self::InvalidState(_) => "INVALID_STATE",
            Self::InvalidExpectation(_) => "INVALID_EXPECTATION",
            Self::InvalidSteps(_) => "INVALID_STEPS",
            Self::InvalidConsent(_) => "INVALID_CONSENT",
            Self::InvalidView(_) => "INVALID_VIEW",
            Self::InvalidSecret(_) => "INVALID_SECRET",
            Self::UnknownSecret(_) => "UNKNOWN_SECRET",
            Self::InvalidSession(_) => "INVALID_SESSION",
            Self::UnknownSession(_) => "UNKNOWN_SESSION",
            Self::SecretsUnavailable(_) => "SECRETS_UNAVAILABLE",
            Self::InvalidInteractions(_) => "INVALID_INTERACTIONS",
            Self::InvalidProfile(_) => "INVALID_PROFILE",
            Self::InvalidChanges(_) => "INVALID_CHANGES",
            Self::InvalidBatch(_) => "INVALID_BATCH",
            Self::InvalidParameter(_) => "INVALID_PARAMETER",
            Self::UnknownParameter { .. } => "UNKNOWN_PARAMETER",
            Self::InvalidIdempotencyKey => "INVALID_IDEMPOTENCY_KEY",
            Self::IdempotencyKeyReused => "IDEMPOTENCY_KEY_REUSED",
            Self::RateLimited => "RATE_LIMITED",
            Self::TooManyUnfinished => "TOO_MANY_UNFINISHED_AUDITS",
            Self::TooManyFailedAudits(_) => "TOO_MANY_FAILED_AUDITS",
            Self::OtherLocation { .. } => "OTHER_LOCATION",
            Self::TooManySlots { .. } => "TOO_MANY_SLOTS",
            Self::SlotsInUse(_) => "SLOTS_IN_USE",
            Self::TooManyFailedKeys(_) => "TOO_MANY_FAILED_KEYS",
            Self::TooManyAtOnce => "TOO_MANY_REQUESTS_AT_ONCE",
            Self::TooManyWaits => "TOO_MANY_WAITING_REQUESTS",
            Self::Busy | Self::Unavailable(_) => "UNAVAILABLE",
            Self::InsufficientCredits => "INSUFFICIENT_CREDITS",
            Self::NotFound => "NOT_FOUND",
            Self::NoEvidence => "NO_EVIDENCE",
            Self::MethodNotAllowed => "METHOD_NOT_ALLOWED",
            Self::Internal(_) => "INTERNAL",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized | Self::InvalidToken => StatusCode::UNAUTHORIZED,
            Self::UploadConflict => StatusCode::CONFLICT,
            Self::CorruptUpload => StatusCode::UNPROCESSABLE_ENTITY,
            Self::StorageFull(_) => StatusCode::INSUFFICIENT_STORAGE,
            Self::InvalidBody(_) | Self::OtherProtocol => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::InvalidUrl(_)
            | Self::InvalidDevice(_)
            | Self::InvalidLocation(_)
            | Self::InvalidNetwork(_)
            | Self::InvalidFormat(_)
            | Self::InvalidRuns(_)
            | Self::InvalidWebhook(_)
            | Self::InvalidLabels(_)
            | Self::InvalidDays(_)
            | Self::InvalidState(_)
            | Self::InvalidExpectation(_)
            | Self::InvalidSteps(_)
            | Self::InvalidConsent(_)
            | Self::InvalidView(_)
            | Self::InvalidSecret(_)
            | Self::UnknownSecret(_)
            | Self::InvalidSession(_)
            | Self::UnknownSession(_)
            | Self::InvalidInteractions(_)
            | Self::InvalidProfile(_)
            | Self::InvalidChanges(_)
            | Self::InvalidBatch(_) => StatusCode::NOT_ACCEPTABLE,
            Self::InvalidParameter(_)
            | Self::UnknownParameter { .. }
            | Self::InvalidIdempotencyKey => StatusCode::BAD_REQUEST,
            Self::IdempotencyKeyReused => StatusCode::CONFLICT,
            Self::OtherOrigin | Self::OtherLocation { .. } | Self::TooManySlots { .. } => {
                StatusCode::FORBIDDEN
            }
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
            Self::Unavailable(_) | Self::Busy | Self::SecretsUnavailable(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = envelope::failure(self.status(), &self.to_string(), self.explanation());
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Codes of responses to agents and to forms of pages, which the API does not have.
    const OF_AGENTS_AND_PAGES: [&str; 8] = [
        "OTHER_PROTOCOL",
        "UPLOAD_CONFLICT",
        "CORRUPT_UPLOAD",
        "STORAGE_FULL",
        "OTHER_ORIGIN",
        "OTHER_LOCATION",
        "TOO_MANY_SLOTS",
        "SLOTS_IN_USE",
    ];

    /// Reads the codes from this file, so that none is forgotten.
    #[test]
    fn every_code_is_listed() {
        let source = include_str!("errors.rs");
        let (_, source) = source.split_once("fn code(&self)").unwrap();
        let (source, _) = source.split_once("fn status(&self)").unwrap();
        let codes: BTreeSet<&str> = source.split('"').skip(1).step_by(2).collect();
        let listed = CODES.iter().flat_map(|(_, codes)| codes.iter().copied());
        let listed: BTreeSet<&str> = listed.chain(OF_AGENTS_AND_PAGES).collect();
        assert_eq!(codes, listed);
    }
}
