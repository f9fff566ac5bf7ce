//! The statuses and the stable names of failures.

use axum::http::StatusCode;

use super::Failure;

/// The code of a request that the HTTP library refuses before it is read.
pub(crate) const MALFORMED_REQUEST: &str = "MALFORMED_REQUEST";

/// The codes of failures of the API, by status, for its description.
pub(crate) const CODES: &[(u16, &[&str])] = &[
    (
        400,
        &[
            "INVALID_BODY",
            "INVALID_PARAMETER",
            "UNKNOWN_PARAMETER",
            "INVALID_IDEMPOTENCY_KEY",
            MALFORMED_REQUEST,
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
    (431, &[MALFORMED_REQUEST]),
    (500, &["INTERNAL"]),
    (503, &["UNAVAILABLE", "SECRETS_UNAVAILABLE"]),
];

/// The codes of responses to agents and to forms of pages, by status, which the API does not have.
pub(crate) const CODES_OF_AGENTS_AND_FORMS: &[(u16, &[&str])] = &[
    (400, &["OTHER_PROTOCOL"]),
    (403, &["OTHER_ORIGIN", "OTHER_LOCATION", "TOO_MANY_SLOTS"]),
    (409, &["UPLOAD_CONFLICT"]),
    (422, &["CORRUPT_UPLOAD"]),
    (429, &["SLOTS_IN_USE"]),
    (507, &["STORAGE_FULL"]),
];

impl Failure {
    /// Returns the status of the response, and the stable name of the failure.
    pub(super) fn status_and_code(&self) -> (StatusCode, &'static str) {
        match self {
            Self::OtherProtocol => (StatusCode::BAD_REQUEST, "OTHER_PROTOCOL"),
            Self::InvalidBody(_) => (StatusCode::BAD_REQUEST, "INVALID_BODY"),
            Self::InvalidParameter(_) => (StatusCode::BAD_REQUEST, "INVALID_PARAMETER"),
            Self::UnknownParameter { .. } => (StatusCode::BAD_REQUEST, "UNKNOWN_PARAMETER"),
            Self::InvalidIdempotencyKey => (StatusCode::BAD_REQUEST, "INVALID_IDEMPOTENCY_KEY"),
            Self::Unauthorized(_) => (StatusCode::UNAUTHORIZED, "UNAUTHORIZED"),
            Self::InvalidToken => (StatusCode::UNAUTHORIZED, "INVALID_TOKEN"),
            Self::InsufficientCredits { .. } => {
                (StatusCode::PAYMENT_REQUIRED, "INSUFFICIENT_CREDITS")
            }
            Self::OtherOrigin => (StatusCode::FORBIDDEN, "OTHER_ORIGIN"),
            Self::OtherLocation { .. } => (StatusCode::FORBIDDEN, "OTHER_LOCATION"),
            Self::TooManySlots { .. } => (StatusCode::FORBIDDEN, "TOO_MANY_SLOTS"),
            Self::NotFound => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            Self::NoEvidence => (StatusCode::NOT_FOUND, "NO_EVIDENCE"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
            Self::InvalidUrl(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_URL"),
            Self::InvalidDevice(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_DEVICE"),
            Self::InvalidLocation(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_LOCATION"),
            Self::InvalidNetwork(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_NETWORK"),
            Self::InvalidFormat(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_FORMAT"),
            Self::InvalidRuns(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_RUNS"),
            Self::InvalidWebhook(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_WEBHOOK"),
            Self::InvalidLabels(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_LABELS"),
            Self::InvalidDays(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_DAYS"),
            Self::InvalidState(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_STATE"),
            Self::InvalidExpectation(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_EXPECTATION"),
            Self::InvalidSteps(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_STEPS"),
            Self::InvalidConsent(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_CONSENT"),
            Self::InvalidView(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_VIEW"),
            Self::InvalidSecret(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_SECRET"),
            Self::UnknownSecret(_) => (StatusCode::NOT_ACCEPTABLE, "UNKNOWN_SECRET"),
            Self::InvalidSession(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_SESSION"),
            Self::UnknownSession(_) => (StatusCode::NOT_ACCEPTABLE, "UNKNOWN_SESSION"),
            Self::InvalidInteractions(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_INTERACTIONS"),
            Self::InvalidProfile(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_PROFILE"),
            Self::InvalidChanges(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_CHANGES"),
            Self::InvalidBatch(_) => (StatusCode::NOT_ACCEPTABLE, "INVALID_BATCH"),
            Self::BodyTooSlow => (StatusCode::REQUEST_TIMEOUT, "BODY_TOO_SLOW"),
            Self::UploadConflict => (StatusCode::CONFLICT, "UPLOAD_CONFLICT"),
            Self::IdempotencyKeyReused => (StatusCode::CONFLICT, "IDEMPOTENCY_KEY_REUSED"),
            Self::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE"),
            Self::CorruptUpload => (StatusCode::UNPROCESSABLE_ENTITY, "CORRUPT_UPLOAD"),
            Self::RateLimited => (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED"),
            Self::TooManyUnfinished => {
                (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_UNFINISHED_AUDITS")
            }
            Self::TooManyFailedAudits(_) => {
                (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_FAILED_AUDITS")
            }
            Self::SlotsInUse(_) => (StatusCode::TOO_MANY_REQUESTS, "SLOTS_IN_USE"),
            Self::TooManyFailedKeys(_) => (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_FAILED_KEYS"),
            Self::TooManyAtOnce => (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS_AT_ONCE"),
            Self::TooManyWaits => (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_WAITING_REQUESTS"),
            Self::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
            Self::SecretsUnavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "SECRETS_UNAVAILABLE"),
            Self::Busy | Self::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
            Self::StorageFull(_) => (StatusCode::INSUFFICIENT_STORAGE, "STORAGE_FULL"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Reads statuses and codes from this file, so that none is forgotten.
    #[test]
    fn every_code_is_listed_with_its_status() {
        let source = include_str!("codes.rs");
        let (_, source) = source.split_once("fn status_and_code(&self)").unwrap();
        let (source, _) = source.split_once("mod tests").unwrap();
        let sent = source.split("StatusCode::").skip(1).map(|arm| {
            let (status, rest) = arm.split_once(',').unwrap();
            (status.to_owned(), rest.split('"').nth(1).unwrap())
        });
        let refused = ["BAD_REQUEST", "REQUEST_HEADER_FIELDS_TOO_LARGE"];
        let refused = refused.map(|status| (status.to_owned(), MALFORMED_REQUEST));
        let sent: BTreeSet<_> = sent.chain(refused).collect();
        let listed = CODES.iter().chain(CODES_OF_AGENTS_AND_FORMS);
        let listed = listed.flat_map(|(status, codes)| {
            let status = StatusCode::from_u16(*status).unwrap();
            let name = status.canonical_reason().unwrap().to_uppercase();
            let name = name.replace(' ', "_");
            codes.iter().map(move |code| (name.clone(), *code))
        });
        assert_eq!(sent, listed.collect());
    }
}
