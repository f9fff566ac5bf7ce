use std::sync::Arc;

use axum::{Router, handler::Handler, middleware, routing};

use crate::{
    App, agents,
    api::{
        account, audit, audits, batches, devices,
        export::Turns,
        health, locations, networks,
        operator::{self, FiguresCache},
    },
    door::front_door,
    errors::Failure,
    openapi::{self, Book},
    pages::{self, Renders},
    peer::WrongKeys,
    places::Places,
    rate::Limit,
};

/// What every handler shares.
pub(crate) struct Service {
    pub(crate) app: App,
    pub(crate) starts: Limit,
    pub(crate) exports: Turns,
    pub(crate) requests: Limit,
    /// Requests for pages that nobody is signed in for, by address.
    pub(crate) guests: Limit,
    pub(crate) places: Places,
    pub(crate) renders: Renders,
    pub(crate) figures: FiguresCache,
    pub(crate) wrong_keys: WrongKeys,
    pub(crate) book: Book,
}

pub(crate) type Shared = Arc<Service>;

/// Every route there is.
///
/// A path matches as sent: a trailing slash, a doubled slash, a dot segment or an escaped letter
/// outside an `{id}` makes another path, which is not found.
pub fn router(app: App) -> Router {
    let Routes { router, listed } = documented();
    let limits = app.limits;
    let shared = Arc::new(Service {
        starts: Limit::new("starts", limits.starts_per_minute, &app.store),
        requests: Limit::new("requests", limits.requests_per_minute, &app.store),
        wrong_keys: WrongKeys::new(Limit::new(
            "wrong keys",
            limits.failed_keys_per_minute,
            &app.store,
        )),
        guests: Limit::new("guests", pages::guests_per_minute(&limits), &app.store),
        places: Places::new(limits.connections),
        renders: Renders::default(),
        figures: FiguresCache::default(),
        book: Book::new(&listed, &app),
        exports: Turns::default(),
        app,
    });
    let has_pages = shared.app.pages.is_some();
    let mut routes = router;
    if has_pages {
        routes = routes.merge(pages::routes());
    }
    if shared.app.agents.is_some() {
        routes = routes.merge(agents::routes());
    }
    let mut router = routes
        .route("/openapi.json", routing::get(openapi::json))
        .route("/docs", routing::get(openapi::page))
        .route("/docs/style.css", routing::get(openapi::style))
        .fallback(async || Failure::NotFound)
        .method_not_allowed_fallback(async || Failure::MethodNotAllowed)
        .layer(middleware::from_fn_with_state(shared.clone(), front_door))
        .with_state(shared.clone());
    if has_pages {
        router = router.layer(middleware::from_fn_with_state(shared, pages::page_door));
    }
    router
}

/// The routes that the reference describes, each with an entry in `openapi/operations/`.
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
        .get("/metrics", operator::metrics)
}

/// A router that remembers what it was given.
#[derive(Default)]
struct Routes {
    router: Router<Shared>,
    listed: Vec<(&'static str, &'static str)>,
}

impl Routes {
    fn get<T: 'static>(self, path: &'static str, handler: impl Handler<T, Shared>) -> Self {
        self.route("get", path, routing::get(handler))
    }

    fn post<T: 'static>(self, path: &'static str, handler: impl Handler<T, Shared>) -> Self {
        self.route("post", path, routing::post(handler))
    }

    fn delete<T: 'static>(self, path: &'static str, handler: impl Handler<T, Shared>) -> Self {
        self.route("delete", path, routing::delete(handler))
    }

    fn route(
        mut self,
        method: &'static str,
        path: &'static str,
        handler: routing::MethodRouter<Shared>,
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
        let described: BTreeSet<_> = operations::all().into_iter().map(|op| op.at).collect();
        assert_eq!(routes, described);
    }
}
