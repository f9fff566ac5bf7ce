//! The JSON schemas of the state, the expectations and the steps of a visit.

use plumbline_seam::MAX_NAME_BYTES;
use serde_json::{Value, json};

/// Returns the schemas by name.
pub(super) fn schemas() -> [(String, Value); 10] {
    [
        ("VisitState", state()),
        ("Expectation", expectation()),
        ("Steps", steps()),
        ("Step", step()),
        ("Consent", consent()),
        ("View", view()),
        ("SessionName", session_name()),
        ("Interactions", interactions()),
        ("Flow", flow()),
        ("Profile", profile()),
    ]
    .map(|(name, schema)| (name.to_owned(), schema))
}

fn state() -> Value {
    let stored = |storage: &str| {
        json!({
            "type": "object", "additionalProperties": { "type": "string" }, "maxProperties": 64,
            "description": format!("Items of `{storage}` by name, for documents of `origins`."),
        })
    };
    json!({
        "type": "object",
        "description": "The state of the browser before the visit, seeded into a fresh profile: the HTTP cache is \
                        empty and no connection is open. Values are secrets: they are erased from the database when the \
                        audit has ended, removed from all evidence, and never returned; reports have names only. In values, \
                        `{{secret.NAME}}` stands for a secret of the account (`PUT /v1/secrets/{name}`).",
        "properties": {
            "cookies": {
                "type": "array", "maxItems": 180,
                "items": {
                    "type": "object", "required": ["name", "value"],
                    "properties": {
                        "name": { "type": "string" },
                        "value": { "type": "string" },
                        "domain": {
                            "type": "string",
                            "description": "The host, with all subdomains if it begins with a dot; by default the host \
                                            of the audited URL.",
                        },
                        "path": { "type": "string", "default": "/" },
                        "secure": { "type": "boolean", "default": false },
                        "httpOnly": { "type": "boolean", "default": false },
                        "sameSite": { "type": "string", "enum": ["Strict", "Lax", "None"] },
                    },
                },
            },
            "localStorage": stored("localStorage"),
            "sessionStorage": stored("sessionStorage"),
            "headers": {
                "type": "array", "maxItems": 64,
                "description": "Headers that are added to requests of some origins, and to no others. Headers that the \
                                browser computes, such as `Host`, are refused.",
                "items": {
                    "type": "object", "required": ["name", "value"],
                    "properties": {
                        "name": { "type": "string" },
                        "value": { "type": "string" },
                        "origins": {
                            "type": "array", "items": { "type": "string" }, "maxItems": 64,
                            "description": "The origins whose requests get this header; by default those of the state.",
                        },
                    },
                },
            },
            "basicAuth": {
                "type": "object", "required": ["username", "password"],
                "description": "Credentials of HTTP basic authentication, sent with every request to `origins`.",
                "properties": {
                    "username": { "type": "string" },
                    "password": { "type": "string" },
                },
            },
            "script": {
                "type": "string", "minLength": 1, "maxLength": 32768,
                "description": "A script that runs in documents of `origins` before all others.",
            },
            "origins": {
                "type": "array", "items": { "type": "string" }, "maxItems": 64,
                "examples": [["https://example.com", "https://api.example.com"]],
                "description": "The origins that get headers, credentials, storage and the script; by default only the \
                                origin of the audited URL.",
            },
            "userAgentSuffix": {
                "type": "string", "minLength": 1, "maxLength": 256,
                "description": "A text that is appended to the user agent of the device. It is not a secret.",
            },
            "blockedHosts": {
                "type": "array", "items": { "type": "string" }, "maxItems": 64,
                "examples": [["ads.example", "*.tracker.example"]],
                "description": "Hosts to which no request is sent.",
            },
        },
    })
}

fn expectation() -> Value {
    let text = |description: &str| json!({ "type": "string", "minLength": 1, "maxLength": 1024, "description": description });
    json!({
        "type": "object",
        "description": "Conditions that the measured page must meet. If one does not hold, the audit ends with the \
                        error `PRECONDITION_FAILED`, which names it, and the credit is given back: a login page is \
                        never scored by mistake.",
        "properties": {
            "selector": text("A CSS selector that an element of the document matches. Only the browser knows \
                              whether it is valid: one that is not ends the audit with this error, too, \
                              which says so."),
            "text": text("A text that the document shows."),
            "url": text("The URL of the document after redirects, in which `*` stands for any characters."),
            "cookie": text("The name of a cookie that requests to the document's URL carry."),
        },
    })
}

/// Returns the two forms of steps.
fn list_or_recording() -> Value {
    json!([
        { "type": "array", "maxItems": 50, "items": { "$ref": "#/components/schemas/Step" } },
        {
            "type": "object", "required": ["steps"],
            "properties": {
                "title": { "type": "string" },
                "steps": { "type": "array", "maxItems": 50, "items": { "$ref": "#/components/schemas/Step" } },
                "timeout": {
                    "type": "integer", "minimum": 1, "maximum": 60000,
                    "description": "The time limit of steps that have none, in milliseconds.",
                },
            },
        },
    ])
}

fn flow() -> Value {
    json!({
        "description": "Steps that are performed and measured once, after the visits, with the device, the network, the \
                        state and the steps of the audit: a list, or a recording of the Recorder in Chrome DevTools as it is \
                        exported. Every step that does something is measured until the page is at rest: Interaction to Next \
                        Paint, Cumulative Layout Shift, Total Blocking Time, requests and, after a navigation, First and \
                        Largest Contentful Paint. Steps that wait or check something belong to the step before them. Steps \
                        that open no page begin on the audited one. A step that fails ends the flow; the audit is complete \
                        without the rest, and the report says why. All steps together have at most 180 s.",
        "oneOf": list_or_recording(),
        "examples": [[
            { "type": "click", "selector": "#menu" },
            { "type": "fill", "selector": "#search", "value": "lamp" },
            { "type": "press", "key": "Enter" },
            { "type": "waitFor", "selector": ".results" },
        ]],
    })
}

fn steps() -> Value {
    json!({
        "description": "Steps that are performed before each visit, unthrottled and in its profile: a list, or a recording \
                        of the Recorder in Chrome DevTools as it is exported. Cookies and storage carry over; the HTTP \
                        cache is empty again and no connection is open when the page is measured. If a step fails, the \
                        audit ends with the error `PRECONDITION_FAILED`, which names it, and the credit is given back. \
                        Steps that open no page begin on the audited one. All steps together have at most 120 s.",
        "oneOf": list_or_recording(),
        "examples": [[
            { "type": "goto", "url": "/login" },
            { "type": "fill", "selector": "#name", "value": "ada" },
            { "type": "fill", "selector": "#password", "value": "correct horse" },
            { "type": "press", "key": "Enter" },
            { "type": "waitFor", "selector": "#account" },
        ]],
    })
}

fn step() -> Value {
    let kinds = [
        "goto",
        "navigate",
        "click",
        "doubleClick",
        "fill",
        "change",
        "select",
        "press",
        "keyDown",
        "keyUp",
        "hover",
        "scroll",
        "waitFor",
        "waitForElement",
        "waitForExpression",
        "assert",
        "setViewport",
        "emulateNetworkConditions",
        "close",
    ];
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object", "required": ["type"],
        "description": "One step. Which members it needs depends on its type; a step that cannot be performed is refused \
                        with `INVALID_STEPS` and its position. Besides those listed here, the members of the Recorder \
                        are accepted.",
        "properties": {
            "type": { "type": "string", "enum": kinds },
            "url": text("For `goto`: an http or https URL, or a path of the audited site. For `waitFor` and `assert`: the \
                         URL of the page, in which `*` stands for any characters."),
            "selector": text("The element: a CSS selector, or one that begins with `aria/`, `text/`, `xpath/` or \
                              `pierce/`."),
            "selectors": {
                "type": "array", "maxItems": 16,
                "description": "Alternatives to `selector`, of which the first that finds an element is used; a list inside \
                                it is a path through shadow roots.",
                "items": {},
            },
            "value": text("For `fill` and `select`: the value, which is a secret like those of `state`; `{{secret.NAME}}` \
                           stands for a secret of the account."),
            "key": text("For `press`: a key such as `Enter`, or `Control+a`."),
            "idle": { "type": "boolean", "description": "For `waitFor`: until the page is loaded and its network is idle." },
            "expression": text("For `waitFor` and `assert`: a JavaScript expression."),
            "text": text("For `assert`: a text that the document shows."),
            "cookie": text("For `assert`: the name of a cookie."),
            "timeout": {
                "type": "integer", "minimum": 1, "maximum": 60000,
                "description": "The time limit in milliseconds; by default 30,000 for `goto` and 10,000 for others.",
            },
        },
    })
}

fn view() -> Value {
    json!({
        "oneOf": [
            { "type": "string", "enum": ["first", "repeat"], "default": "first" },
            {
                "type": "object", "required": ["after"],
                "properties": { "after": { "$ref": "#/components/schemas/Url" } },
            },
        ],
        "description": "The content of the browser's cache before each visit: `first` is an empty cache. Otherwise the same \
                        page (`repeat`), or the one of `after`, is loaded without limits in the same profile, and the \
                        cache is kept. The report has a member `cache` with the requests that it answered.",
    })
}

fn consent() -> Value {
    json!({
        "type": "string", "enum": ["none", "accept", "reject"], "default": "none",
        "description": "The choice in the page's consent dialog. Before each visit, and after the steps, the page is opened \
                        and the button of a known consent manager is clicked; the visit is cold, as after steps. The \
                        report names the manager (`conditions.consent`), or says that there was no known dialog.",
    })
}

fn session_name() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": MAX_NAME_BYTES, "pattern": "^[A-Za-z0-9_.-]+$",
        "description": "The name of a session of the account (`POST /v1/sessions`). Its cookies and storage are seeded into \
                        each visit, before those of `state`. The first audit that uses it signs in; if the page shows \
                        that the session has ended, the audit signs in again, once.",
    })
}

fn profile() -> Value {
    json!({
        "type": "boolean",
        "default": false,
        "description": "Whether the page is loaded once more after the visits, with a sampling profiler. The report then \
                        names the functions of each long task, those that force styles and layout, and those that take \
                        most of the load, with file and line of the source if scripts have source maps. The profiler \
                        slows the page down, so that this load has no part in scores and metrics.",
    })
}

fn interactions() -> Value {
    json!({
        "anyOf": [{ "type": "boolean" }, { "type": "integer", "minimum": 0, "maximum": 8 }], "default": false,
        "description": "Real inputs on visible controls after all visits, up to this number (`true` is 8): each on a page \
                        that was loaded again, with its Interaction to Next Paint, the three parts of it and the scripts. \
                        Nothing leaves the page, and requests other than GET, HEAD and OPTIONS are not sent. No score \
                        depends on it.",
    })
}
