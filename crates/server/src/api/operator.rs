use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use crate::{errors::Failure, metrics::Now, router::Shared};

/// `GET /metrics`
pub(crate) async fn metrics(State(service): State<Shared>) -> Result<Response, Failure> {
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
        at: (app.clock)(),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], app.metrics.text(&now)).into_response())
}
