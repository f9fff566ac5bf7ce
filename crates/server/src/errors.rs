//! All failures of requests, and the only mapping from them to responses.

mod codes;

use std::{error::Error, fmt};

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};

use crate::{
    envelope::{self, Explanation},
    fault::Fault,
};
pub(crate) use codes::{CODES, CODES_OF_AGENTS_AND_FORMS, MALFORMED_REQUEST};

/// `Retry-After` where a client must wait for audits to end. When that happens is not known; most
/// end within a minute.
const RETRY_AFTER_AUDIT_S: u32 = 30;
/// `Retry-After` where a client must wait for other requests to end.
const RETRY_AFTER_REQUEST_S: u32 = 1;

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

/// A name that begins a phrase.
struct Capitalized<'a>(&'a str);

impl fmt::Display for Capitalized<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        if let Some(first) = chars.next() {
            write!(f, "{}", first.to_ascii_uppercase())?;
        }
        f.write_str(chars.as_str())
    }
}

/// The reason why a request fails. Its `Display` text is the `message` of the failure envelope.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The key is missing, unknown, revoked or expired; the text says what to do.
    #[error("Unauthorized")]
    Unauthorized(&'static str),
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
    /// A parameter of the query is invalid.
    #[error("Invalid {}", Capitalized(.0.field))]
    InvalidParameter(InvalidValue),
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
    InsufficientCredits { needed: i64, left: i64 },
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

    /// Returns the invalid value, if it is one of the body or of the query.
    fn value(&self) -> Option<&InvalidValue> {
        match self {
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
            | Self::InvalidBatch(value)
            | Self::InvalidParameter(value) => Some(value),
            _ => None,
        }
    }

    /// Returns a sentence for people that says more than the message.
    pub(crate) fn reason(&self) -> Option<String> {
        match self {
            Self::InvalidBody(InvalidBody { reason, .. })
            | Self::UnknownParameter { reason, .. }
            | Self::SecretsUnavailable(reason) => Some(reason.clone()),
            Self::Unauthorized(reason) => Some((*reason).to_owned()),
            Self::InsufficientCredits { needed, left } => {
                let plural = if *needed == 1 { "" } else { "s" };
                Some(format!(
                    "This costs {needed} credit{plural}, and the account has {left}."
                ))
            }
            _ => self.value().map(|value| value.reason.clone()),
        }
    }

    /// Returns the members that explain the failure to a program, in addition to the message.
    fn explanation(&self) -> Explanation {
        let value = self.value();
        Explanation {
            code: self.status_and_code().1,
            field: match self {
                Self::UnknownParameter { name, .. } => Some(name.clone()),
                Self::InvalidBody(body) => body.field.clone(),
                _ => value.map(|value| value.field.to_owned()),
            },
            index: match self {
                Self::InvalidBody(body) => body.index,
                _ => value.and_then(|value| value.index),
            },
            reason: self.reason(),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, _) = self.status_and_code();
        let mut response = envelope::failure(status, &self.to_string(), self.explanation());
        match self {
            Self::Internal(cause) | Self::Unavailable(cause) | Self::StorageFull(cause) => {
                response.extensions_mut().insert(Fault(cause.into()));
            }
            // RFC 9110, 15.5.2: a 401 names a way to authenticate.
            Self::Unauthorized(_) => {
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
