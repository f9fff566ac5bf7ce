//! The body of a start: read, parsed, and checked value by value.

use axum::{
    body::{Body, HttpBody},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use plumbline_store::AuditOrder;
use serde::Deserialize;

use crate::{App, Limits, errors::Failure, router::Shared, target};

/// What a client wants, as it said it.
///
/// Deserialising refuses what the contract calls an invalid body: a member missing, null, not a
/// string, or given twice. Members it does not know are ignored.
#[derive(Debug, Deserialize)]
pub(crate) struct Wish {
    url: String,
    device: String,
    location: String,
    network: String,
}

impl Wish {
    /// The values in the order in which the contract lists them (2.1): the first bad one is named.
    pub(crate) fn into_order(self, app: &App) -> Result<AuditOrder, Failure> {
        if !target::is_auditable(&self.url, app.limits.url_chars, &*app.may_visit) {
            return Err(Failure::InvalidUrl);
        }
        app.catalog
            .device(&self.device)
            .ok_or(Failure::InvalidDevice)?;
        app.catalog
            .location(&self.location)
            .ok_or(Failure::InvalidLocation)?;
        app.catalog
            .network(&self.network)
            .ok_or(Failure::InvalidNetwork)?;
        Ok(AuditOrder {
            url: self.url,
            device: self.device,
            network: self.network,
            location: self.location,
        })
    }
}

impl FromRequest<Shared> for Wish {
    type Rejection = Failure;

    async fn from_request(request: Request, service: &Shared) -> Result<Self, Failure> {
        if !is_json(request.headers()) {
            return Err(Failure::InvalidBody);
        }
        let text = read(request.into_body(), service.app.limits).await?;
        // The derived reader would also take the four values as an array.
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err(Failure::InvalidBody);
        }
        serde_json::from_slice(&text).map_err(|_| Failure::InvalidBody)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else {
        return false;
    };
    let essence = only
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

async fn read(body: Body, limits: Limits) -> Result<Vec<u8>, Failure> {
    // A length that is announced needs no reading to be refused.
    if body.size_hint().lower() > limits.body_bytes as u64 {
        return Err(Failure::BodyTooLarge);
    }
    let whole = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body_read, whole).await {
        Err(_) => Err(Failure::BodyTooSlow),
        Ok(Ok(whole)) => Ok(whole.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Failure::BodyTooLarge),
        // The client broke off, or its chunks are malformed.
        Ok(Err(_)) => Err(Failure::InvalidBody),
    }
}
