//! Bodies of a start that violate the contract.

use serde_json::{Value, json};

use crate::rig::{HttpRequest, Rig, failure, order, post, start};

fn raw(rig: &Rig, body: impl Into<Vec<u8>>) -> HttpRequest {
    post("/v1/audit/start", body).key(&rig.key).json()
}

fn invalid() -> Value {
    failure("Invalid Request body or missing required parameters")
}

#[tokio::test]
async fn a_body_that_is_not_a_json_object_with_the_four_members_is_invalid() {
    let rig = Rig::new().await;
    let good = order().to_string();
    let open = good.strip_suffix('}').unwrap();
    let not_utf8 = [
        b"{\"url\":\"https://example.com/\xff\"",
        &open.as_bytes()[1..],
    ]
    .concat();
    let bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b" ".to_vec(),
        b"{".to_vec(),
        b"{}".to_vec(),
        b"null".to_vec(),
        b"true".to_vec(),
        b"1".to_vec(),
        b"\"text\"".to_vec(),
        b"[]".to_vec(),
        b"\0".to_vec(),
        b"\xff\xfe".to_vec(),
        b"url=https://example.com/&device=mobile".to_vec(),
        br#"["https://example.com/","mobile","eu","normal4g"]"#.to_vec(),
        format!("[{good}]").into(),
        format!("{good}{good}").into(),
        format!("{good}x").into(),
        format!("{good}\0").into(),
        format!("{open},}}").into(),
        format!("{open},\"extra\":}}").into(),
        format!("// comment\n{good}").into(),
        format!("\u{feff}{good}").into(),
        good.replace('"', "'").into(),
        open.into(),
        format!("{open},\"x\":\"\\ud800").into(),
        good.replace("mobile", "mob\nile").into(),
        good.replace("mobile", "\\ud800").into(),
        not_utf8,
        good.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        vec![b'['; 60_000],
        format!("{open},\"deep\":{}", "[".repeat(60_000)).into(),
    ];
    for body in bodies {
        rig.check(raw(&rig, body), 400, invalid()).await;
    }
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn each_member_is_required_and_a_string() {
    let rig = Rig::new().await;
    for member in ["url", "device", "location", "network"] {
        let mut body = order();
        body.as_object_mut().unwrap().remove(member);
        rig.check(start(&rig.key, &body), 400, invalid()).await;
        body[member.to_uppercase()] = json!("mobile");
        rig.check(start(&rig.key, &body), 400, invalid()).await;
        for value in [
            json!(null),
            json!(1),
            json!(true),
            json!([]),
            json!(["mobile"]),
            json!({}),
        ] {
            body[member] = value;
            rig.check(start(&rig.key, &body), 400, invalid()).await;
        }
    }
}

#[tokio::test]
async fn a_member_given_twice_is_invalid_even_with_the_same_value() {
    let rig = Rig::new().await;
    let good = order().to_string();
    let open = good.strip_suffix('}').unwrap();
    for repeated in [
        "\"url\":\"https://example.com/\"",
        "\"device\":\"mobile\"",
        "\"location\":\"eu\"",
        "\"network\":\"normal4g\"",
        "\"\\u0075rl\":\"https://example.com/\"",
    ] {
        rig.check(raw(&rig, format!("{open},{repeated}}}")), 400, invalid())
            .await;
    }
}

#[tokio::test]
async fn an_invalid_body_is_reported_before_any_invalid_value() {
    let rig = Rig::new().await;
    let body = json!({ "url": "nonsense", "device": "nonsense", "location": "nonsense" });
    rig.check(start(&rig.key, &body), 400, invalid()).await;
}

#[tokio::test]
async fn unknown_members_are_ignored_whatever_their_value() {
    let rig = Rig::new().await;
    let good = order().to_string();
    let open = good.strip_suffix('}').unwrap();
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    for extra in [
        "\"Url\":1",
        "\"\":null",
        "\"x\":1,\"x\":2",
        "\"x\":{\"url\":1,\"url\":2}",
        "\"x\":1e999",
        &format!("\"x\":{deep}"),
    ] {
        let reply = rig.send(&raw(&rig, format!("{open},{extra}}}"))).await;
        assert_eq!(reply.status, 200, "{}", &extra[..extra.len().min(40)]);
    }
    let spaced = format!("\r\n\t {good} \n");
    assert_eq!(rig.send(&raw(&rig, spaced)).await.status, 200);
    let escaped = good.replace("mobile", "mob\\u0069le");
    assert_eq!(rig.send(&raw(&rig, escaped)).await.status, 200);
}

#[tokio::test]
async fn the_content_type_must_be_json() {
    let rig = Rig::new().await;
    let bare = post("/v1/audit/start", order().to_string()).key(&rig.key);
    for good in [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "application/json ;x=y",
    ] {
        let reply = rig.send(&bare.clone().header("Content-Type", good)).await;
        assert_eq!(reply.status, 200, "{good}");
    }
    rig.check(bare.clone(), 400, invalid()).await;
    for bad in [
        "",
        "text/plain",
        "text/json",
        "application/jsonp",
        "application/json, text/plain",
        "application/x-www-form-urlencoded",
        "application/problem+json",
        "json",
        "application/ json",
        "multipart/form-data; boundary=application/json",
    ] {
        rig.check(bare.clone().header("Content-Type", bad), 400, invalid())
            .await;
    }
    rig.check(bare.json().json(), 400, invalid()).await;
}

#[tokio::test]
async fn a_body_may_have_64_kib_and_not_a_byte_more() {
    let rig = Rig::new().await;
    let good = order().to_string();
    let padded = |bytes: usize| {
        let mut body = good.clone();
        body.extend(std::iter::repeat_n(' ', bytes - good.len()));
        raw(&rig, body)
    };
    assert_eq!(rig.send(&padded(65_536)).await.status, 200);
    for bytes in [65_537, 100_000, 900_000] {
        rig.check(padded(bytes), 413, failure("Request Body Too Large"))
            .await;
    }
    assert_eq!(rig.credits().await, 99);
}
