use serde_json::{Value, json};

use super::*;

fn check(options: Value) -> Result<(), InvalidOption> {
    serde_json::from_value::<VisitOptions>(options)
        .unwrap()
        .validate()
}

#[test]
fn ordinary_states_are_valid() {
    for state in [
        json!({}),
        json!({ "cookies": [{ "name": "a", "value": "" }] }),
        json!({ "cookies": [{ "name": "a", "value": "x=\"1\", b", "domain": ".example.com", "path": "/a" }] }),
        json!({ "cookies": [{ "name": "__Host-s", "value": "1", "secure": true }] }),
        json!({ "headers": [{ "name": "Authorization", "value": "Bearer abc" }] }),
        json!({ "headers": [{ "name": "X-A", "value": "", "origins": ["http://localhost:8080"] }] }),
        json!({ "basicAuth": { "username": "u", "password": "p:w" } }),
        json!({ "localStorage": { "": "any text, even ünicode" }, "script": "1" }),
        json!({ "origins": ["https://example.com/"], "userAgentSuffix": "Lab/1.0 (+test)" }),
        json!({ "blockedHosts": ["example.com", "*.example.com", "10.0.0.1", "[::1]"] }),
    ] {
        assert_eq!(check(json!({ "state": state })), Ok(()), "{state}");
    }
    assert_eq!(
        check(json!({ "expect": { "selector": "#a", "url": "*" } })),
        Ok(())
    );
}

#[test]
fn an_invalid_member_is_named_and_its_value_is_not() {
    let long = |length: usize| "canary".repeat(length / 6 + 1);
    let many = |count: usize| vec![json!({ "name": "a", "value": "canary" }); count];
    for (field, index, state) in [
        (
            "state.cookies",
            Some(0),
            json!({ "cookies": [{ "name": "", "value": "canary" }] }),
        ),
        (
            "state.cookies",
            Some(0),
            json!({ "cookies": [{ "name": "a b", "value": "canary" }] }),
        ),
        (
            "state.cookies",
            Some(1),
            json!({ "cookies": [{ "name": "a", "value": "" }, { "name": "a", "value": "canary;b" }] }),
        ),
        (
            "state.cookies",
            Some(0),
            json!({ "cookies": [{ "name": "a", "value": "canary\r\nX: y" }] }),
        ),
        (
            "state.cookies",
            Some(0),
            json!({ "cookies": [{ "name": "a", "value": long(4096) }] }),
        ),
        (
            "state.cookies",
            Some(0),
            json!({ "cookies": [{ "name": "a", "value": "canary", "domain": "https://a/" }] }),
        ),
        (
            "state.cookies",
            Some(0),
            json!({ "cookies": [{ "name": "a", "value": "canary", "path": "a" }] }),
        ),
        (
            "state.cookies",
            Some(0),
            json!({ "cookies": [{ "name": "a", "value": "canary", "sameSite": "None" }] }),
        ),
        (
            "state.cookies",
            Some(0),
            json!({ "cookies": [{ "name": "__Host-a", "value": "canary" }] }),
        ),
        (
            "state.cookies",
            Some(0),
            json!({ "cookies": [{ "name": "__Secure-a", "value": "canary" }] }),
        ),
        ("state.cookies", None, json!({ "cookies": many(181) })),
        (
            "state.headers",
            Some(0),
            json!({ "headers": [{ "name": "Host", "value": "canary" }] }),
        ),
        (
            "state.headers",
            Some(0),
            json!({ "headers": [{ "name": "Content-Length", "value": "canary" }] }),
        ),
        (
            "state.headers",
            Some(0),
            json!({ "headers": [{ "name": "connection", "value": "canary" }] }),
        ),
        (
            "state.headers",
            Some(0),
            json!({ "headers": [{ "name": "Cookie", "value": "canary" }] }),
        ),
        (
            "state.headers",
            Some(0),
            json!({ "headers": [{ "name": "Sec-Fetch-Mode", "value": "canary" }] }),
        ),
        (
            "state.headers",
            Some(0),
            json!({ "headers": [{ "name": "Proxy-Authorization", "value": "canary" }] }),
        ),
        (
            "state.headers",
            Some(0),
            json!({ "headers": [{ "name": "X:", "value": "canary" }] }),
        ),
        (
            "state.headers",
            Some(0),
            json!({ "headers": [{ "name": "X", "value": "canary\nHost: a" }] }),
        ),
        (
            "state.headers",
            Some(0),
            json!({ "headers": [{ "name": "X", "value": "canary", "origins": ["example.com"] }] }),
        ),
        (
            "state.headers",
            Some(0),
            json!({ "headers": [{ "name": "X", "value": "canary", "origins": ["https://example.com/a"] }] }),
        ),
        (
            "state.headers",
            Some(0),
            json!({ "headers": [{ "name": "X", "value": long(8192) }] }),
        ),
        ("state.headers", None, json!({ "headers": many(65) })),
        (
            "state.basicAuth",
            None,
            json!({ "basicAuth": { "username": "a:b", "password": "canary" } }),
        ),
        (
            "state.basicAuth",
            None,
            json!({ "basicAuth": { "username": "a", "password": "canary\n" } }),
        ),
        (
            "state.basicAuth",
            None,
            json!({ "basicAuth": { "username": "a", "password": "canary" },
            "headers": [{ "name": "authorization", "value": "canary" }] }),
        ),
        (
            "state.localStorage",
            None,
            json!({ "localStorage": { "a": long(32 * 1024) } }),
        ),
        (
            "state.sessionStorage",
            None,
            json!({ "sessionStorage": { long(256): "" } }),
        ),
        ("state.script", None, json!({ "script": "" })),
        ("state.script", None, json!({ "script": long(32 * 1024) })),
        (
            "state.origins",
            None,
            json!({ "origins": ["file:///canary"] }),
        ),
        (
            "state.origins",
            None,
            json!({ "origins": ["https://canary@example.com"] }),
        ),
        (
            "state.userAgentSuffix",
            None,
            json!({ "userAgentSuffix": "a\nb" }),
        ),
        (
            "state.blockedHosts",
            Some(0),
            json!({ "blockedHosts": ["https://example.com"] }),
        ),
        (
            "state.blockedHosts",
            Some(0),
            json!({ "blockedHosts": ["example.com:80"] }),
        ),
        (
            "state.blockedHosts",
            Some(1),
            json!({ "blockedHosts": ["a.example", "*"] }),
        ),
        (
            "state",
            None,
            json!({ "localStorage": { "a": long(30_000) }, "script": long(30_000) }),
        ),
    ] {
        let error = check(json!({ "state": state })).unwrap_err();
        assert_eq!((error.field, error.index), (field, index), "{error}");
        assert!(!error.reason.contains("canary"), "{error}");
    }
}

#[test]
fn the_character_nul_is_refused() {
    for (field, index, options) in [
        ("state", None, json!({ "state": { "script": "'\0'" } })),
        (
            "steps",
            Some(0),
            json!({ "steps": [{ "type": "click", "selector": "a\0" }] }),
        ),
        (
            "flow",
            Some(0),
            json!({ "flow": [{ "type": "click", "selector": "a\0" }] }),
        ),
        ("expect", None, json!({ "expect": { "text": "a\0" } })),
        (
            "view",
            None,
            json!({ "view": { "after": "https://a.test/\0" } }),
        ),
    ] {
        let error = check(options).unwrap_err();
        assert_eq!((error.field, error.index), (field, index), "{error}");
    }
}

#[test]
fn an_expectation_is_neither_empty_nor_long() {
    for member in ["selector", "text", "url", "cookie"] {
        for text in [String::new(), " ".to_owned(), "x".repeat(1025)] {
            let error = check(json!({ "expect": { member: text } })).unwrap_err();
            assert_eq!(error.field, format!("expect.{member}"));
        }
    }
}
