//! The routes of the service.

use std::sync::Arc;

use axum::{Router, handler::Handler, middleware, routing};

use crate::{
    agents,
    api::{
        account, audit, audits, batches, devices, health, locations, metrics as metrics_route,
        networks,
    },
    app::App,
    errors::Failure,
    middleware::process_request,
    openapi, pages,
    state::{ServiceState, SharedState},
};

/// Creates the router with all routes.
///
/// A path matches as sent: a trailing slash, a doubled slash, a dot segment or an escaped letter
/// outside an `{id}` makes another path, which is not found.
pub fn router(app: App) -> Router {
    let Routes { router, listed } = documented();
    let api_description = openapi::describe(&listed, &app);
    let state = Arc::new(ServiceState::new(app, api_description));
    let has_pages = state.app.pages.is_some();
    let mut routes = router;
    if has_pages {
        routes = routes.merge(pages::routes());
    }
    if state.app.agents.is_some() {
        routes = routes.merge(agents::routes());
    }
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
        .get("/v1/audit/data/{id}", audit::data)
        .delete("/v1/audit/data/{id}", audits::delete)
        .get("/v1/audit/report/{id}", audit::report)
        .get("/v1/audits", audits::list)
        .post("/v1/batches", batches::start)
        .get("/v1/batches/{id}", batches::one)
        .get("/v1/credits", account::credits)
        .get("/v1/webhook-secret", account::webhook_secret)
        .get("/v1/devices", devices::list)
        .get("/v1/devices/{id}", devices::one)
        .get("/v1/locations", locations::list)
        .get("/v1/locations/{id}", locations::one)
        .get("/v1/networks", networks::list)
        .get("/healthz", health::alive)
        .get("/readyz", health::ready)
        .get("/metrics", metrics_route::metrics)
}

/// A router that also lists the methods and paths of its routes.
#[derive(Default)]
struct Routes {
    router: Router<SharedState>,
    listed: Vec<(&'static str, &'static str)>,
}

impl Routes {
    fn get<T: 'static>(self, path: &'static str, handler: impl Handler<T, SharedState>) -> Self {
        self.route("get", path, routing::get(handler))
    }

    fn post<T: 'static>(self, path: &'static str, handler: impl Handler<T, SharedState>) -> Self {
        self.route("post", path, routing::post(handler))
    }

    fn delete<T: 'static>(self, path: &'static str, handler: impl Handler<T, SharedState>) -> Self {
        self.route("delete", path, routing::delete(handler))
    }

    fn route(
        mut self,
        method: &'static str,
        path: &'static str,
        handler: routing::MethodRouter<SharedState>,
    ) -> Self {
        self.listed.push((method, path));
        self.router = self.router.route(path, handler);
        self
    }
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
