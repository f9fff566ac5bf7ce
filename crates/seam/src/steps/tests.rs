use serde_json::{Value, json};

use super::*;
use crate::InvalidOption;

/// A recording as the Recorder of Chrome DevTools exports it.
fn recording() -> Value {
    json!({
        "title": "Sign in",
        "steps": [
            { "type": "setViewport", "width": 1440, "height": 900, "deviceScaleFactor": 1.5,
              "isMobile": false, "hasTouch": false, "isLandscape": false },
            { "type": "navigate", "url": "https://example.com/login",
              "assertedEvents": [{ "type": "navigation", "url": "https://example.com/login", "title": "Sign in" }] },
            { "type": "click", "target": "main",
              "selectors": [["aria/Name"], ["#name"], ["xpath///*[@id=\"name\"]"], ["pierce/#name"], ["text/Name"]],
              "offsetY": 12.5, "offsetX": 87 },
            { "type": "change", "value": "canary-value", "selectors": [["aria/Name"], ["#name"]], "target": "main" },
            { "type": "keyDown", "target": "main", "key": "Tab" },
            { "type": "keyUp", "key": "Tab", "target": "main" },
            { "type": "doubleClick", "selectors": [["x-form", "button"]], "deviceType": "mouse", "button": "secondary",
              "offsetX": 1, "offsetY": 2, "frame": [0, 1], "timeout": 2500 },
            { "type": "hover", "selectors": ["nav", ["aria/Menu[role=\"button\"]"]] },
            { "type": "scroll", "x": 0, "y": 350.5 },
            { "type": "waitForElement", "selectors": ["li"], "operator": "==", "count": 3, "visible": true,
              "attributes": { "class": "row" }, "properties": { "hidden": false } },
            { "type": "waitForExpression", "expression": "window.ready" },
            { "type": "emulateNetworkConditions", "download": 50000, "upload": 50000, "latency": 2000 },
            { "type": "close" },
        ],
    })
}

#[test]
fn a_recording_is_read_as_it_is_and_written_as_our_own_list() {
    let steps = Steps::parse(recording()).unwrap();
    assert_eq!(
        steps.titles(),
        [
            "set the viewport to 1440x900",
            "go to https://example.com/login",
            "click `aria/Name`",
            "fill in `aria/Name`",
            "hold Tab down",
            "release Tab",
            "double-click `x-form >>> button`",
            "hover over `nav`",
            "scroll the page",
            "wait for `li`",
            "wait for an expression",
            "slow the network down",
            "close the page",
        ]
    );
    assert_eq!(steps.0[1].asserted_events, [AssertedEvent::Navigation]);
    assert_eq!(
        (steps.0[6].frame.as_slice(), steps.0[6].timeout_ms()),
        (&[0, 1][..], 2500)
    );
    assert_eq!(
        (steps.0[1].timeout_ms(), steps.0[2].timeout_ms()),
        (30_000, 10_000)
    );
    // As it is stored and sent to agents.
    let written = serde_json::to_value(&steps).unwrap();
    assert_eq!(written[1]["type"], "goto");
    let mut read: Steps = serde_json::from_value(written).unwrap();
    read.0[2].target.clone_from(&steps.0[2].target);
    assert_eq!(read.titles(), steps.titles());
    assert_eq!(read.0[2], steps.0[2]);
    assert_eq!(read.0[9], steps.0[9]);
}

#[test]
fn our_own_steps_have_one_selector_and_short_names() {
    let steps = Steps::parse(json!([
        { "type": "goto", "url": "/login" },
        { "type": "fill", "selector": "#user", "value": "ada" },
        { "type": "select", "selector": "#language", "value": "en" },
        { "type": "press", "key": "Control+a" },
        { "type": "waitFor", "selector": "#account" },
        { "type": "waitFor", "url": "*/account" },
        { "type": "waitFor", "idle": true },
        { "type": "waitFor", "expression": "true", "timeout": 1 },
        { "type": "assert", "selector": "#account", "text": "Ada", "url": "*", "cookie": "session" },
    ]));
    let steps = steps.unwrap();
    assert_eq!(steps.0.len(), 9);
    let secrets: Vec<_> = steps.secrets().map(Secret::expose).collect();
    assert_eq!(secrets, ["ada", "en"]);
    let read: Steps = serde_json::from_value(serde_json::to_value(&steps).unwrap()).unwrap();
    assert_eq!(read, steps);
}

#[test]
fn the_time_limit_of_a_recording_is_that_of_its_steps() {
    let recording = json!({ "timeout": 3000, "steps": [
        { "type": "close" , "timeout": 1000 }] });
    assert_eq!(Steps::parse(recording).unwrap().0[0].timeout_ms(), 1000);
    let recording = json!({ "timeout": 3000, "steps": [{ "type": "close" }] });
    assert_eq!(Steps::parse(recording).unwrap().0[0].timeout_ms(), 3000);
}

#[test]
fn the_members_of_a_recording_are_checked_even_without_steps() {
    for (member, value) in [
        ("title", json!({})),
        ("timeout", json!(0)),
        ("timeout", json!(60_001)),
        ("timeout", json!("1")),
        ("steps", json!({})),
    ] {
        let mut recording = json!({ "title": "Sign in", "timeout": 1000, "steps": [] });
        assert!(Steps::parse(recording.clone()).is_ok());
        recording[member] = value.clone();
        let error = Steps::parse(recording).unwrap_err();
        assert!(error.reason.contains(member), "{member} {value}: {error:?}");
    }
}

#[test]
fn a_step_that_cannot_be_performed_is_named_and_its_value_is_not() {
    let click = |member: &str, value: Value| {
        let mut step = json!({ "type": "click", "selector": "#a", "value": "canary" });
        step[member] = value;
        step
    };
    for (step, reason) in [
        (
            json!({ "type": "customStep", "name": "sign-in", "parameters": {} }),
            "`customStep` (sign-in)",
        ),
        (
            json!({ "type": "drag" }),
            "The type `drag` is not supported",
        ),
        (json!({}), "The type `` is not supported"),
        (json!("canary"), "is not supported"),
        (
            json!({ "type": "close" }),
            "only be closed in the last step",
        ),
        (
            click("target", json!("https://example.com/popup")),
            "`target`",
        ),
        (click("timeout", json!(0)), "`timeout`"),
        (click("timeout", json!(60_001)), "`timeout`"),
        (
            click("timeout", json!("canary")),
            "`timeout` must be a whole number",
        ),
        (
            click("frame", json!([0, "canary"])),
            "`frame[1]` must be a whole number",
        ),
        (
            click("offsetX", json!("canary")),
            "`offsetX` must be a number",
        ),
        (
            click("frame", json!([0, 0, 0, 0, 0, 0, 0, 0, 0])),
            "`frame`",
        ),
        (click("selector", json!("")), "selector is empty"),
        (click("selector", json!([])), "selector is empty"),
        (click("selector", json!([[]])), "selector is empty"),
        (
            click("selector", json!({ "canary": 1 })),
            "`selector` must be a selector or a list of selectors.",
        ),
        (click("selector", json!(vec!["a"; 17])), "alternatives"),
        (click("selector", json!("a".repeat(1025))), "1024 bytes"),
        (
            click("assertedEvents", json!([{ "type": "load" }])),
            "`assertedEvents[0].type` must be `navigation`",
        ),
        (json!({ "type": "click" }), "`selector` is missing."),
        (
            json!({ "type": "fill", "selector": "#a" }),
            "`value` is missing.",
        ),
        (
            json!({ "type": "fill", "selector": "#a", "value": ["canary"] }),
            "`value` must be a text",
        ),
        (
            json!({ "type": "waitFor", "selector": "#a", "attributes": { "class": ["canary"] } }),
            "`attributes.class` must be a text",
        ),
        (
            json!({ "type": "assert", "text": ["canary"] }),
            "`text` must be a text",
        ),
        (
            json!({ "type": "fill", "selector": "#a", "value": "canary".repeat(1000) }),
            "4096 bytes",
        ),
        (
            json!({ "type": "goto", "url": "javascript:alert(1)" }),
            "http or https",
        ),
        (
            json!({ "type": "goto", "url": "file:///etc/passwd" }),
            "http or https",
        ),
        (
            json!({ "type": "goto", "url": "//example.com/" }),
            "http or https",
        ),
        (json!({ "type": "press", "key": "Any" }), "The key `Any`"),
        (json!({ "type": "keyDown", "key": "Control+a" }), "The key"),
        (
            json!({ "type": "setViewport", "width": 0, "height": 1 }),
            "between 1 and",
        ),
        (json!({ "type": "waitFor" }), "Exactly one"),
        (
            json!({ "type": "waitFor", "selector": "#a", "url": "*" }),
            "Exactly one",
        ),
        (json!({ "type": "waitFor", "expression": "" }), "is empty"),
        (
            json!({ "type": "waitForExpression", "expression": "1", "frame": [0] }),
            "in frames",
        ),
        (json!({ "type": "assert" }), "One of"),
        (json!({ "type": "assert", "text": " " }), "is empty"),
    ] {
        let steps =
            json!([{ "type": "press", "key": "Tab" }, step, { "type": "press", "key": "Tab" }]);
        let error: InvalidOption = Steps::parse(steps).unwrap_err();
        assert_eq!((error.field, error.index), ("steps", Some(1)), "{error}");
        assert!(error.reason.contains(reason), "{step}: {error}");
        assert!(!error.reason.contains("canary"), "{error}");
    }
}

#[test]
fn the_number_and_the_size_of_steps_are_limited() {
    let press = json!({ "type": "press", "key": "Tab" });
    assert!(Steps::parse(json!(vec![press.clone(); 50])).is_ok());
    assert!(Steps::parse(json!(vec![press; 51])).is_err());
    let fill = json!({ "type": "fill", "selector": "#a", "value": "a".repeat(4000) });
    assert!(Steps::parse(json!(vec![fill.clone(); 12])).is_ok());
    assert!(Steps::parse(json!(vec![fill; 13])).is_err());
    for other in [json!("a"), json!(null), json!({}), json!({ "steps": {} })] {
        assert_eq!(Steps::parse(other).unwrap_err().index, None);
    }
}

#[test]
fn values_are_erased_and_never_formatted() {
    let mut steps = Steps::parse(recording()).unwrap();
    assert!(!format!("{steps:?}").contains("canary"));
    let titles = steps.titles();
    steps.erase_values();
    assert!(!serde_json::to_string(&steps).unwrap().contains("canary"));
    assert_eq!(steps.titles(), titles);
}

#[test]
fn selectors_have_the_notations_of_the_recorder() {
    for (text, selector) in [
        ("#a > b", Selector::Css("#a > b")),
        ("css/#a", Selector::Css("#a")),
        ("pierce/#a", Selector::Pierce("#a")),
        ("xpath///*[@id=\"a\"]", Selector::XPath("//*[@id=\"a\"]")),
        ("text/Sign in", Selector::Text("Sign in")),
        (
            "aria/Sign in",
            Selector::Aria {
                name: "Sign in",
                role: None,
            },
        ),
        (
            "aria/Sign in[role=\"button\"]",
            Selector::Aria {
                name: "Sign in",
                role: Some("button"),
            },
        ),
        (
            "aria/[role=\"main\"]",
            Selector::Aria {
                name: "",
                role: Some("main"),
            },
        ),
    ] {
        assert_eq!(Selector::of(text), selector);
    }
}

#[test]
fn keys_have_the_codes_of_a_keyboard() {
    let code = |name: &str| KeyDefinition::of(name).map(|key| (key.code, key.key_code, key.text));
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(code("Enter"), Some(("Enter".to_owned(), 13, text("\r"))));
    assert_eq!(code("a"), Some(("KeyA".to_owned(), 65, text("a"))));
    assert_eq!(code("7"), Some(("Digit7".to_owned(), 55, text("7"))));
    assert_eq!(code("&"), Some(("Digit7".to_owned(), 55, text("&"))));
    assert_eq!(code("?"), Some(("Slash".to_owned(), 191, text("?"))));
    assert_eq!(code(" "), Some(("Space".to_owned(), 32, text(" "))));
    assert_eq!(code("Space"), code(" "));
    assert_eq!(code("ArrowDown"), Some(("ArrowDown".to_owned(), 40, None)));
    for unknown in ["", "enter", "ä", "ab"] {
        assert_eq!(code(unknown), None, "{unknown}");
    }
    let press = KeyPress::of("Control+Shift++").unwrap();
    let modifiers: Vec<_> = press.modifiers.iter().map(|key| key.modifier).collect();
    assert_eq!(
        (modifiers.as_slice(), press.key.key.as_str()),
        (&[2, 8][..], "+")
    );
    assert_eq!(KeyPress::of("+").unwrap().key.code, "Equal");
    assert_eq!(KeyPress::of("a+b"), None);
}
