use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;
use crate::testing::{exchange, headers, recording, recording_of, recordings};

/// Returns whether bytes contain others.
fn contains(content: &[u8], part: &[u8]) -> bool {
    content.windows(part.len()).any(|window| window == part)
}

/// Returns everything in a recording as one text: its description and its decoded bodies.
fn everything(recording: &Recording) -> Vec<u8> {
    let mut all = format!("{recording:?}").into_bytes();
    all.extend(serde_json::to_vec(&recording.exchanges).unwrap());
    for exchange in &recording.exchanges {
        if let Some(response) = &exchange.response {
            all.extend_from_slice(&response.body);
            if let Ok(content) = response.decoded_body() {
                all.extend_from_slice(&content);
            }
        }
    }
    all
}

/// Returns a page behind a login. Its secrets contain `canary`, or encode it.
fn private_page() -> Recording {
    let cookie = "canary-session-0123";
    let login = "canary/token+4567==";
    let html = format!(
        "<html><script src=/a.js integrity=sha256-abc></script>\
         <meta name=csrf-token content=canary-csrf-99>\
         <a href='/out?token={}'>out</a><p>{cookie}</p><p>{}</p></html>",
        percent::encode(login, ""),
        STANDARD.encode(format!("id={cookie};")),
    );
    let mut document = exchange("https://first.test/?code=canary-code-1", "text/html", &html);
    document.request_headers.extend(headers(&[
        ("cookie", &format!("lang=de; sid={cookie}")),
        ("referer", "https://sso.test/cb?id_token=canary-id-2#a"),
        ("authorization", &format!("Bearer {login}")),
        ("proxy-authorization", "Basic dTpjYW5hcnktcHJveHk="),
    ]));
    let response = document.response.as_mut().unwrap();
    response.headers.extend(headers(&[
        ("set-cookie", "next=canary-next-1; Path=/; HttpOnly"),
        ("x-session-key", "canary-header-1"),
        ("location", "/next?access_token=canary-location"),
    ]));
    let script = format!(
        "go({:?}, '{}', \"{}\"); {}",
        login,
        login.replace('/', "\\/"),
        URL_SAFE_NO_PAD.encode(format!("..{login}..")),
        "filler(); ".repeat(50),
    );
    let mut script = exchange("https://first.test/a.js", "text/javascript", &script);
    let response = script.response.as_mut().unwrap();
    let content = response.decoded_body().unwrap();
    response
        .headers
        .extend(headers(&[("content-encoding", "gzip")]));
    response.body = bytes::Bytes::new();
    response.set_decoded_body(&content).unwrap();
    let data = r#"{"user": 1, "refresh_token": "canary-refresh-1"}"#;
    let data = exchange("https://api.test/me", "application/json", data);
    let mut recording = recording_of(vec![document, script, data]);
    recording.url = "https://user:canary-password@first.test/?code=canary-code-1".to_owned();
    recording
}

#[test]
fn no_cookie_and_no_token_remains() {
    let mut recording = private_page();
    let encoded = [
        STANDARD.encode("canary-session-0123"),
        "Y2FuYXJ5".to_owned(),
        "canary".to_owned(),
        "dTpjYW5hcnktcHJveHk=".to_owned(),
    ];
    assert!(contains(&everything(&recording), b"canary"));
    let redaction = recording.redact();
    recording.check().unwrap();
    let all = everything(&recording);
    for text in encoded {
        assert!(!contains(&all, text.as_bytes()), "{text}");
    }
    let base64 = STANDARD.encode("id=canary-session-0123;");
    assert!(!contains(&all, &base64.as_bytes()[4..20]));
    assert_eq!(redaction.bodies, 3);
    assert_eq!(redaction.blank_bodies, 0);
    let packed = recording.pack().unwrap();
    assert_eq!(Recording::unpack(&packed).unwrap(), recording);
}

#[test]
fn names_attributes_and_sizes_stay() {
    let before = private_page();
    let mut after = before.clone();
    after.redact();
    let header = |name: &str| after.exchanges[0].response.as_ref().unwrap().header(name);
    assert_eq!(
        header("set-cookie"),
        Some("next=xxxxxxxxxxxxx; Path=/; HttpOnly")
    );
    assert_eq!(header("x-session-key"), Some("xxxxxxxxxxxxxxx"));
    for (old, new) in before.exchanges.iter().zip(&after.exchanges) {
        let size = |it: &crate::RecordedExchange| {
            it.response.as_ref().unwrap().decoded_body().unwrap().len()
        };
        assert_eq!(old.path.len(), new.path.len());
        // Only the attribute for the integrity of the edited script is left out.
        assert!(size(old) - size(new) <= "integrity=sha256-abc".len());
    }
    let script = after.exchanges[1].response.as_ref().unwrap();
    assert_eq!(script.header("content-encoding"), Some("gzip"));
    let html = after.exchanges[0].response.as_ref().unwrap().body.clone();
    assert!(!contains(&html, b"integrity"));
}

#[test]
fn a_cookie_with_the_address_of_the_page_does_not_remove_all_links() {
    let mut document = exchange(
        "https://first.test/",
        "text/html",
        "<a href=https://first.test/a>",
    );
    document.request_headers.extend(headers(&[(
        "cookie",
        "landing=https%3A%2F%2Ffirst.test%2F; domain=.first.test",
    )]));
    let mut recording = recording_of(vec![document]);
    recording.redact();
    let body = &recording.exchanges[0].response.as_ref().unwrap().body;
    assert_eq!(body, "<a href=https://first.test/a>");
    let cookie = &recording.exchanges[0].request_headers[2].1;
    assert!(!cookie.contains("first"), "{cookie}");
}

#[test]
fn a_body_that_cannot_be_searched_is_blank() {
    let mut recording = private_page();
    let script = recording.exchanges[1].response.as_mut().unwrap();
    let half = script.body.slice(..script.body.len() / 2);
    script.set_body(half.clone());
    let redaction = recording.redact();
    assert_eq!(redaction.blank_bodies, 1);
    let body = &recording.exchanges[1].response.as_ref().unwrap().body;
    assert_eq!(body, &vec![0; half.len()]);
}

#[test]
fn explicit_values_are_replaced_everywhere() {
    let mut recording = recording();
    let redaction = recording.redact_values(&["third.test".into(), "color: red".into()]);
    assert_eq!((redaction.values, redaction.bodies), (2, 1));
    assert!(!contains(&everything(&recording), b"third.test"));
    let sheet = recording.exchanges[1].response.as_ref().unwrap();
    assert_eq!(sheet.body, "a { xxxxxxxxxx }");
    recording.check().unwrap();
    let unchanged = recording.clone();
    assert_eq!(recording.redact_values(&[]), Redaction::default());
    recording.redact_values(&[String::new()]);
    assert_eq!(recording, unchanged);
}

#[test]
fn a_body_that_cannot_be_searched_is_blank_even_if_no_value_is_known() {
    let mut page = exchange("https://a.test/", "text/html", "something");
    let response = page.response.as_mut().unwrap();
    response.set_header("content-encoding", "unknown");
    let mut recording = recording_of(vec![page]);
    assert_eq!(recording.redact().blank_bodies, 1);
    let response = recording.exchanges[0].response.as_ref().unwrap();
    assert_eq!(response.body, vec![0; 9]);
}

#[test]
fn if_there_are_too_many_values_everything_is_masked() {
    let token = |number: u32| format!("\"token\":\"{number:0>300}=/+\",");
    let tokens: String = (0..3000).map(token).collect();
    let mut page = exchange("https://a.test/b?c=d", "application/json", &tokens);
    page.request_headers = headers(&[("referer", "https://a.test/e")]);
    let mut recording = recording_of(vec![page]);
    assert_eq!(recording.redact().blank_bodies, 1);
    recording.check().unwrap();
    assert_eq!(recording.url, "https://a.test/xxxxx");
    let page = &recording.exchanges[0];
    assert_eq!(page.path, "/xxxxx");
    assert_eq!(page.request_headers[0].1, "x".repeat(16));
    let body = &page.response.as_ref().unwrap().body;
    assert_eq!(body, &vec![0; tokens.len()]);
}

#[test]
fn many_compression_bombs_are_not_all_decoded() {
    let content = vec![b'a'; 60 << 20];
    let mut bomb = exchange("https://a.test/", "text/plain", "");
    let response = bomb.response.as_mut().unwrap();
    response.set_header("content-encoding", "gzip");
    response.set_decoded_body(&content).unwrap();
    let mut recording = recording_of(vec![bomb; 6]);
    let redaction = recording.redact_values(&["secret-value".to_owned()]);
    assert_eq!(redaction.blank_bodies, 6 - 4);
    assert_eq!(redaction.bodies, 0);
}

proptest! {
    #[test]
    fn no_form_of_a_value_remains(
        before in "[a-z]{0,3}",
        value in "[!-~]{8,16}",
        after in "[a-z]{0,3}",
        mut recording in recordings(),
    ) {
        let text = format!(
            "{before}{value}{after} {} {} {}",
            percent::encode(&value, ""),
            serde_json::Value::from(value.as_str()),
            STANDARD.encode(format!("{before}{value}{after}")),
        );
        let mut page = exchange("https://a.test/", "text/html", &text);
        page.request_headers.extend(headers(&[("x", &text)]));
        recording.exchanges.push(page);
        recording.redact_values(std::slice::from_ref(&value));
        let body = &recording.exchanges.last().unwrap().response.as_ref().unwrap().body;
        prop_assert_eq!(body.len(), text.len());
        for form in forms::all(&value) {
            prop_assert!(!contains(body, &form));
        }
        recording.check().unwrap();
    }

    #[test]
    fn a_redacted_recording_is_valid(mut recording in recordings()) {
        recording.redact();
        prop_assert!(recording.check().is_ok());
    }
}
