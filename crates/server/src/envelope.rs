//! The JSON envelopes of the contract (interface, 2.8): failure, started audit, and data.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::fault::Fault;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

#[derive(Serialize)]
struct Envelope<'a, T> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(rename = "trackingId", skip_serializing_if = "Option::is_none")]
    tracking_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<T>,
}

/// The members of a failure that explain it to a program. The contract has only the message.
#[derive(Serialize)]
pub(crate) struct Explanation {
    pub(crate) code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// The reason of a failure, as an extension of its response, for the page that replaces it.
#[derive(Debug, Clone)]
pub(crate) struct Reason(pub(crate) Arc<str>);

/// Returns a failure with its message.
pub(crate) fn failure(status: StatusCode, message: &str, explanation: Explanation) -> Response {
    #[derive(Serialize)]
    struct FailureEnvelope<'a> {
        status: &'static str,
        message: &'a str,
        #[serde(flatten)]
        explanation: Explanation,
    }
    let reason = explanation
        .reason
        .as_deref()
        .map(|reason| Reason(reason.into()));
    let mut response = json(
        status,
        &FailureEnvelope {
            status: "FAILURE",
            message,
            explanation,
        },
    );
    if let Some(reason) = reason {
        response.extensions_mut().insert(reason);
    }
    response
}

/// Returns one page of a list, and the cursor of the next page.
pub(crate) fn page<T: Serialize>(data: T, next: Option<String>) -> Response {
    #[derive(Serialize)]
    struct Page<T> {
        status: &'static str,
        data: T,
        next: Option<String>,
    }
    let status = "SUCCESS";
    json(StatusCode::OK, &Page { status, data, next })
}

/// Returns the tracking id of an audit that was accepted.
pub(crate) fn started(tracking_id: &str) -> Response {
    json(
        StatusCode::OK,
        &Envelope::<()> {
            status: "SUCCESS",
            message: None,
            tracking_id: Some(tracking_id),
            data: None,
        },
    )
}

/// Returns data.
pub(crate) fn data<T: Serialize>(data: T) -> Response {
    json(
        StatusCode::OK,
        &Envelope {
            status: "SUCCESS",
            message: None,
            tracking_id: None,
            data: Some(data),
        },
    )
}

fn json(status: StatusCode, envelope: &impl Serialize) -> Response {
    match serde_json::to_vec(envelope) {
        Ok(text) => (status, [(header::CONTENT_TYPE, JSON)], Body::from(text)).into_response(),
        Err(error) => {
            let body =
                r#"{"status":"FAILURE","message":"Internal Server Error","code":"INTERNAL"}"#;
            let headers = [(header::CONTENT_TYPE, JSON)];
            let mut response = (StatusCode::INTERNAL_SERVER_ERROR, headers, body).into_response();
            response.extensions_mut().insert(Fault(Arc::new(error)));
            response
        }
    }
}
