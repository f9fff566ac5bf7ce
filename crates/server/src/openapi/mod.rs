//! The interface described for programs and people: OpenAPI 3.1 at `/openapi.json`, and the same
//! as a page at `/docs` that needs nothing but this server.
//!
//! It is made from the router's own list of routes, when the service starts, with the catalog's ids
//! in it; a route without a description, or the other way round, fails a test.

pub(crate) mod operations;
mod page;
mod parts;
mod schemas;

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use crate::{App, answer::JSON, router::Shared};

/// Both forms, made once.
pub(crate) struct Book {
    json: String,
    page: String,
}

impl Book {
    pub(crate) fn new(routes: &[(&'static str, &'static str)], app: &App) -> Self {
        let document = document(routes, app);
        Self {
            page: page::render(&document),
            json: format!("{document:#}"),
        }
    }
}

fn document(routes: &[(&'static str, &'static str)], app: &App) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations::all() {
        let (method, path) = operation.at;
        if routes.contains(&operation.at) {
            let at = paths.entry(path).or_insert_with(|| json!({}));
            at[method] = operation.description();
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

/// `GET /openapi.json`
pub(crate) async fn json(State(service): State<Shared>) -> Response {
    ([(header::CONTENT_TYPE, JSON)], service.book.json.clone()).into_response()
}

/// `GET /docs`
pub(crate) async fn page(State(service): State<Shared>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
        ),
    ];
    (headers, service.book.page.clone()).into_response()
}

/// `GET /docs/style.css`
pub(crate) async fn style() -> Response {
    let kind = "text/css; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], include_str!("style.css")).into_response()
}
