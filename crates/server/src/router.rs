//! The routes of the service.

use std::sync::Arc;

use axum::{Router, middleware, routing};

use crate::{
    agents,
    api::{
        account, audit, audits, batches, comparisons, devices, health, locations,
        metrics as metrics_route, networks, recordings, saved_sessions, secrets, shares,
    },
    app::App,
    errors::Failure,
    middleware::process_request,
    openapi, pages,
    routes::Routes,
    state::ServiceState,
};

/// Creates the router with all routes.
///
/// A path matches as sent: a trailing slash, a doubled slash, a dot segment or an escaped letter
/// outside an `{id}` makes another path, which is not found.
pub fn router(app: App) -> Router {
    let Routes {
        router: mut routes,
        listed,
        mut extra_times,
    } = documented();
    let api_description = openapi::describe(&listed, &app);
    let has_pages = app.pages.is_some();
    if has_pages {
        routes = routes.merge(pages::routes());
    }
    if app.agents.is_some() {
        let agent_routes = agents::routes();
        routes = routes.merge(agent_routes.router);
        extra_times.extend(agent_routes.extra_times);
    }
    let state = Arc::new(ServiceState::new(app, api_description, extra_times));
    let mut router = routes
        .route("/openapi.json", routing::get(openapi::json))
        .route("/docs", routing::get(openapi::page))
        .route("/docs/style.css", routing::get(openapi::style))
        .fallback(async || Failure::NotFound)
        .method_not_allowed_fallback(async || Failure::MethodNotAllowed)
        .layer(middleware::from_fn_with_state(
            state.clone(),
            process_request,
        ))
        .with_state(state.clone());
    if has_pages {
        router = router.layer(middleware::from_fn_with_state(
            state,
            pages::process_response,
        ));
    }
    router
}

/// The routes that the API's description covers, each with an entry in `openapi/operations/`.
fn documented() -> Routes {
    Routes::default()
        .post("/v1/audit/start", audit::start)
        .get("/v1/audit/status/{id}", audit::status)
        .extra_time(audit::MAX_WAIT)
        .post("/v1/audit/cancel/{id}", audit::cancel)
        .get("/v1/audit/data/{id}", audit::data)
        .delete("/v1/audit/data/{id}", audits::delete)
        .get("/v1/audit/report/{id}", audit::report)
        .post("/v1/audit/share/{id}", shares::create)
        .delete("/v1/audit/share/{id}", shares::revoke)
        .get("/v1/shares", shares::list)
        .get("/v1/audits", audits::list)
        .get("/v1/audits/{id}/recording", recordings::one)
        .get("/v1/audits/{id}/experiments", recordings::experiments)
        .post("/v1/audits/{id}/experiments", recordings::experiment)
        .post("/v1/audits/{id}/third-parties", recordings::third_parties)
        .get("/v1/audits/{id}/matrix", recordings::matrix_results)
        .post("/v1/audits/{id}/matrix", recordings::matrix)
        .post("/v1/batches", batches::start)
        .get("/v1/batches/{id}", batches::one)
        .post("/v1/batches/{id}/cancel", batches::cancel)
        .post("/v1/comparisons", comparisons::start)
        .get("/v1/comparisons/{id}", comparisons::one)
        .extra_time(audit::MAX_WAIT)
        .get("/v1/credits", account::credits)
        .get("/v1/webhook-secret", account::webhook_secret)
        .get("/v1/secrets", secrets::list)
        .put("/v1/secrets/{name}", secrets::put)
        .delete("/v1/secrets/{name}", secrets::delete)
        .post("/v1/sessions", saved_sessions::define)
        .get("/v1/sessions", saved_sessions::list)
        .delete("/v1/sessions/{name}", saved_sessions::delete)
        .get("/v1/devices", devices::list)
        .get("/v1/devices/{id}", devices::one)
        .get("/v1/locations", locations::list)
        .get("/v1/locations/{id}", locations::one)
        .get("/v1/networks", networks::list)
        .get("/healthz", health::alive)
        .get("/readyz", health::ready)
        .get("/metrics", metrics_route::metrics)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::openapi::operations;

    #[test]
    fn every_route_is_described_and_nothing_else_is() {
        let routes: BTreeSet<_> = documented().listed.into_iter().collect();
        let described: BTreeSet<_> = operations::all().into_iter().map(|op| op.route).collect();
        assert_eq!(routes, described);
    }
}
