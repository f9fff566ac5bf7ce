//! The metrics for operators.

use std::ops::Range;

use axum::{
    body::Bytes,
    extract::{FromRequestParts, State},
    http::{header, request::Parts},
    response::{IntoResponse, Response},
};
use plumbline_store::{KeyDigest, Timestamp};
use sha2::{Digest, Sha256};

use crate::{errors::Failure, metrics::Snapshot, peer, state::SharedState};

/// The age up to which cached metrics are sent, so that frequent requests cost the store nothing.
const CACHED_AGES_MS: Range<i64> = 0..1000;

/// Authorization to read the metrics.
pub(crate) struct MetricsReader;

impl FromRequestParts<SharedState> for MetricsReader {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &SharedState) -> Result<Self, Failure> {
        let Some(token) = &service.app.metrics_token else {
            return Ok(Self);
        };
        // The comparison of digests takes the same time wherever they differ.
        let digest = |token: &[u8]| KeyDigest(Sha256::digest(token).into());
        let presented = parts.headers.get(header::AUTHORIZATION);
        let presented = presented.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        if presented.is_some_and(|presented| digest(presented) == digest(token.as_bytes())) {
            return Ok(Self);
        }
        let address = peer::client_address(parts, &service.app.limits);
        let now = (service.app.clock)();
        service
            .failed_keys
            .record_failure(address, None, now)
            .await?;
        Err(Failure::InvalidToken)
    }
}

/// `GET /metrics`: the metrics for Prometheus.
pub(crate) async fn metrics(
    State(service): State<SharedState>,
    _reader: MetricsReader,
) -> Result<Response, Failure> {
    let now = (service.app.clock)();
    // Locked while they are read, so that concurrent requests get the same.
    let mut cached = service.metrics_cache.0.lock().await;
    let text = match &*cached {
        Some((at, text)) if CACHED_AGES_MS.contains(&(now.0 - at.0)) => text.clone(),
        _ => {
            let text = Bytes::from(render(&service, now).await?);
            *cached = Some((now, text.clone()));
            text
        }
    };
    drop(cached);
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, content_type)], text).into_response())
}

async fn render(service: &SharedState, now: Timestamp) -> Result<String, Failure> {
    let app = &service.app;
    let snapshot = Snapshot {
        depth: app.store.queue_depth().await?,
        waiting_since: app.store.waiting_since().await?,
        deliveries: app.store.delivery_depth().await?,
        latency: app.store.latency(),
        browsers: app.browsers.as_ref().map(|count| count()),
        field: app
            .field
            .as_ref()
            .map_or_else(Vec::new, |field| field.counts()),
        at: now,
    };
    Ok(app.metrics.text(&snapshot))
}
