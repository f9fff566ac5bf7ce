use std::sync::Arc;

use axum::{
    Router, middleware,
    routing::{get, post},
};

use crate::{
    App,
    api::{audit, devices, export::Turns, health, locations},
    door::front_door,
    errors::Failure,
    pages,
    rate::Buckets,
};

/// What every handler shares.
pub(crate) struct Service {
    pub(crate) app: App,
    pub(crate) starts: Buckets,
    pub(crate) exports: Turns,
}

pub(crate) type Shared = Arc<Service>;

/// Every route there is.
///
/// A path matches as sent: a trailing slash, a doubled slash, a dot segment or an escaped letter
/// outside an `{id}` makes another path, which is not found.
pub fn router(app: App) -> Router {
    let shared = Arc::new(Service {
        starts: Buckets::new(app.limits.starts_per_minute),
        exports: Turns::default(),
        app,
    });
    let has_pages = shared.app.pages.is_some();
    let mut routes = Router::new();
    if has_pages {
        routes = routes.merge(pages::routes());
    }
    let mut router = routes
        .route("/v1/audit/start", post(audit::start))
        .route("/v1/audit/status/{id}", get(audit::status))
        .route("/v1/audit/data/{id}", get(audit::data))
        .route("/v1/audit/report/{id}", get(audit::report))
        .route("/v1/devices", get(devices::list))
        .route("/v1/devices/{id}", get(devices::one))
        .route("/v1/locations/{id}", get(locations::one))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .fallback(async || Failure::NotFound)
        .method_not_allowed_fallback(async || Failure::MethodNotAllowed)
        .layer(middleware::from_fn_with_state(shared.clone(), front_door))
        .with_state(shared);
    if has_pages {
        router = router.layer(middleware::from_fn(pages::page_door));
    }
    router
}
