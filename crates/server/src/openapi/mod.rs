//! The description of the API: OpenAPI 3.1 at `/openapi.json`, and the same as a self-contained
//! page at `/docs`.
//!
//! It is generated from the router's list of routes when the service starts, and contains the ids
//! of the catalog. A test fails if a route has no description or a description has no route.

pub(crate) mod operations;
mod page;
mod parts;
mod report;
mod schemas;
mod visit_options;

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use crate::{
    app::App,
    envelope::JSON,
    state::{ApiDescription, SharedState},
};

/// Describes the API in both formats.
pub(crate) fn describe(routes: &[(&'static str, &'static str)], app: &App) -> ApiDescription {
    let document = document(routes, app);
    ApiDescription {
        page: page::render(&document),
        json: format!("{document:#}"),
    }
}

fn document(routes: &[(&'static str, &'static str)], app: &App) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations::all() {
        let (method, path) = operation.route;
        if routes.contains(&operation.route) {
            let item = paths.entry(path).or_insert_with(|| json!({}));
            item[method] = operation.description();
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Plumbline",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Audits web pages under a chosen device, network and location.",
            "description": operations::INTRODUCTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": operations::tags(),
        "paths": paths,
        "webhooks": parts::webhooks(),
        "components": {
            "securitySchemes": {
                "key": { "type": "apiKey", "in": "header", "name": "X-SVC-KEY" },
            },
            "schemas": schemas::all(&app.catalog, &app.limits),
            "responses": parts::shared_responses(),
            "headers": parts::shared_headers(),
        },
    })
}

/// `GET /openapi.json`: the OpenAPI document.
pub(crate) async fn json(State(service): State<SharedState>) -> Response {
    (
        [(header::CONTENT_TYPE, JSON)],
        service.api_description.json.clone(),
    )
        .into_response()
}

/// `GET /docs`: the page.
pub(crate) async fn page(State(service): State<SharedState>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
        ),
    ];
    (headers, service.api_description.page.clone()).into_response()
}

/// `GET /docs/style.css`: the style sheet of the page.
pub(crate) async fn style() -> Response {
    let content_type = "text/css; charset=utf-8";
    (
        [(header::CONTENT_TYPE, content_type)],
        include_str!("style.css"),
    )
        .into_response()
}
