use std::ops::Range;

use axum::{
    body::Bytes,
    extract::{FromRequestParts, State},
    http::{header, request::Parts},
    response::{IntoResponse, Response},
};
use plumbline_store::{KeyDigest, Timestamp};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use crate::{errors::Failure, metrics::Now, peer, router::Shared};

/// How long figures are shown again, so that asking for them often costs the store nothing.
const CACHED_MS: Range<i64> = 0..1000;

/// The figures that were read last, and when.
#[derive(Default)]
pub(crate) struct FiguresCache(Mutex<Option<(Timestamp, Bytes)>>);

/// Whoever may read the metrics.
pub(crate) struct MetricsReader;

impl FromRequestParts<Shared> for MetricsReader {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &Shared) -> Result<Self, Failure> {
        let Some(token) = &service.app.metrics_token else {
            return Ok(Self);
        };
        // Equality of digests takes the same time wherever they differ.
        let digest = |token: &[u8]| KeyDigest(Sha256::digest(token).into());
        let presented = parts.headers.get(header::AUTHORIZATION);
        let presented = presented.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        if presented.is_some_and(|presented| digest(presented) == digest(token.as_bytes())) {
            return Ok(Self);
        }
        let from = peer::address_of(parts, &service.app.limits);
        let now = (service.app.clock)();
        service.wrong_keys.failed(from, None, now).await?;
        Err(Failure::InvalidToken)
    }
}

/// `GET /metrics`
pub(crate) async fn metrics(
    State(service): State<Shared>,
    _reader: MetricsReader,
) -> Result<Response, Failure> {
    let now = (service.app.clock)();
    // Held while they are read: who asks meanwhile gets the same.
    let mut cached = service.figures.0.lock().await;
    let text = match &*cached {
        Some((at, text)) if CACHED_MS.contains(&(now.0 - at.0)) => text.clone(),
        _ => {
            let text = Bytes::from(read(&service, now).await?);
            *cached = Some((now, text.clone()));
            text
        }
    };
    drop(cached);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

async fn read(service: &Shared, now: Timestamp) -> Result<String, Failure> {
    let app = &service.app;
    let now = Now {
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
    Ok(app.metrics.text(&now))
}
