//! Changes of documents and of the URLs in them.

use super::*;

#[test]
fn markup_is_inserted_into_the_main_document_by_default() {
    let mut frame = exchange(
        "https://third.test/f.html",
        "text/html; charset=utf-8",
        "<head>",
    );
    frame.started_ms = 5.0;
    let mut recording = recording();
    recording.exchanges.push(frame);
    let html = "<link rel=preconnect href=https://third.test>";
    let main = changed(&recording, json!({"type": "insertHead", "html": html}));
    assert!(content(&main, 0).contains(&format!("<head>{html}<link rel=stylesheet")));
    assert_eq!(content(&main, 5), "<head>");
    let all = changed(
        &recording,
        json!({"type": "insertHead", "html": html, "pattern": "*"}),
    );
    assert_eq!(all.effects[0].exchanges, 2);
    assert_eq!(content(&all, 5), format!("<head>{html}"));
}

#[test]
fn attributes_of_elements_are_changed() {
    let recording = page("<img src=a.png><img src=b.png loading=lazy>", &[]);
    let set = json!({
        "type": "setAttribute", "selector": "img:not([loading])", "name": "fetchpriority", "value": "high",
    });
    let set = changed(&recording, set);
    assert_eq!(
        content(&set, 0),
        "<img fetchpriority=\"high\" src=a.png><img src=b.png loading=lazy>"
    );
    let removed = json!({"type": "removeAttribute", "selector": "img", "name": "loading"});
    let removed = changed(&recording, removed);
    assert_eq!(content(&removed, 0), "<img src=a.png><img src=b.png >");
}

#[test]
fn a_content_security_policy_does_not_forbid_inserted_markup() {
    let html = "<head><meta http-equiv=Content-Security-Policy content=\"default-src 'self'\">";
    let mut recording = page(html, &[]);
    let document = recording.exchanges[0].response.as_mut().unwrap();
    let policy = "script-src 'nonce-abc'; upgrade-insecure-requests";
    document
        .headers
        .extend(headers(&[("content-security-policy", policy)]));
    let changed = changed(
        &recording,
        json!({"type": "insertHead", "html": "<style>a{}</style>"}),
    );
    assert_eq!(
        content(&changed, 0),
        "<head><style>a{}</style><meta http-equiv=Content-Security-Policy content=\"\">"
    );
    let document = response(&changed.recording.exchanges[0]);
    assert_eq!(
        document.header("content-security-policy"),
        Some("upgrade-insecure-requests")
    );
    assert_eq!(
        changed.effects[0].notes,
        ["The content security policy of https://first.test/ is not applied."]
    );
}

#[test]
fn the_integrity_of_edited_resources_only_is_not_checked() {
    let html = "<base href=/x/><script src=a.js integrity=sha256-a></script>\
                <link rel=stylesheet href='https://third.test/b.css#c' integrity='sha256-b'>\
                <script src=/a.js integrity=sha256-c></script>";
    let recording = page(
        html,
        &[
            ("https://first.test/x/a.js", "text/javascript", "one"),
            ("https://third.test/b.css", "text/css", "one"),
            ("https://first.test/a.js", "text/javascript", "two"),
        ],
    );
    let changed = changed(
        &recording,
        json!({"type": "replaceText", "pattern": "*", "from": "one", "to": "1"}),
    );
    let html = content(&changed, 0);
    assert!(
        !html.contains("sha256-a") && !html.contains("sha256-b"),
        "{html}"
    );
    assert!(html.contains("sha256-c"), "{html}");
}

#[test]
fn a_style_sheet_is_inlined_in_place_of_its_link() {
    let html = "<head><link rel='stylesheet' href=/css/a.css media='(min-width: 9px)'>\
                <link rel=stylesheet href=/css/b.css><link rel=\"alternate stylesheet\" href=a.css>\
                <link rel=preload href=/css/a.css></head>";
    let css = "@charset \"utf-8\";a{b:url(../i.png)} c::after{content:'</style>'}";
    let recording = page(html, &[("https://first.test/css/a.css", "text/css", css)]);
    let inlined = changed(
        &recording,
        json!({"type": "inlineStylesheet", "pattern": "*.css"}),
    );
    assert_eq!(
        content(&inlined, 0),
        "<head><style media=\"(min-width: 9px)\">a{b:url(https://first.test/i.png)} \
         c::after{content:'<\\/style>'}</style>\
         <link rel=stylesheet href=/css/b.css><link rel=\"alternate stylesheet\" href=a.css>\
         <link rel=preload href=/css/a.css></head>"
    );
    assert_eq!(
        inlined.effects[0].notes,
        ["https://first.test/css/b.css is not inlined, since it is not in the recording."]
    );
    let missing = json!({"type": "inlineStylesheet", "pattern": "b.css"});
    assert!(error(&recording, missing).contains("not in the recording"));
}

#[test]
fn resources_of_other_hosts_are_served_by_the_first_party() {
    let html = "<link rel=preconnect href=https://cdn.test><script src=//cdn.test/a.js \
                integrity=sha256-a></script><img src=https://cdn.test.example/b><img \
                src=http://cdn.test/c><img src=wss://cdn.test/d>";
    let recording = page(
        html,
        &[
            (
                "https://cdn.test/a.js",
                "text/javascript",
                "f('https:\\/\\/cdn.test\\/x')",
            ),
            ("https://cdn.test/s/a.css", "text/css", "a{b:url(/i.png)}"),
            ("https://cdn.test/i.png", "image/png", "png"),
            ("https://other.test/", "text/plain", "https://cdn.test/?a"),
        ],
    );
    let moved = changed(
        &recording,
        json!({"type": "serveFromFirstParty", "hosts": ["*.cdn.test"]}),
    );
    assert_eq!(moved.effects[0].exchanges, 3);
    assert_eq!(
        content(&moved, 0),
        "<link rel=preconnect href=https://first.test/cdn.test><script \
         src=//first.test/cdn.test/a.js ></script><img src=https://cdn.test.example/b><img \
         src=http://cdn.test/c><img src=wss://cdn.test/d>"
    );
    assert_eq!(
        content(&moved, 1),
        "f('https:\\/\\/first.test\\/cdn.test\\/x')"
    );
    assert_eq!(
        content(&moved, 2),
        "a{b:url(https://first.test/cdn.test/i.png)}"
    );
    assert_eq!(content(&moved, 4), "https://first.test/cdn.test/?a");
    let urls: Vec<_> = moved
        .recording
        .exchanges
        .iter()
        .map(|it| it.url())
        .collect();
    assert_eq!(
        urls,
        [
            "https://first.test/",
            "https://first.test/cdn.test/a.js",
            "https://first.test/cdn.test/s/a.css",
            "https://first.test/cdn.test/i.png",
            "https://other.test/",
        ]
    );
    assert_eq!(
        moved.recording.exchanges[1].request_headers[0].1,
        "first.test"
    );
    let own = json!({"type": "serveFromFirstParty", "hosts": ["first.test"]});
    assert!(error(&recording, own).contains("affects nothing"));
}

#[test]
fn resources_that_a_moved_frame_names_by_path_are_found() {
    let recording = page(
        "<iframe src=https://frame.test/f></iframe>",
        &[
            (
                "https://frame.test/f",
                "text/html",
                "<script src=/f.js></script>",
            ),
            ("https://frame.test/f.js", "text/javascript", "1"),
        ],
    );
    let moved = changed(
        &recording,
        json!({"type": "serveFromFirstParty", "hosts": ["frame.test"]}),
    );
    let urls: Vec<_> = moved
        .recording
        .exchanges
        .iter()
        .map(|it| it.url())
        .collect();
    assert!(urls.contains(&"https://first.test/frame.test/f.js".to_owned()));
    assert!(urls.contains(&"https://first.test/f.js".to_owned()));
}
