//! Optional members of a start.

use serde_json::{Value, json};

use crate::rig::{Rig, failure, get, order, start};

fn with(member: &str, value: Value) -> Value {
    let mut body = order();
    body[member] = value;
    body
}

#[tokio::test]
async fn runs_cost_as_many_credits_and_reach_the_agent() {
    let rig = Rig::new().await;
    rig.start_with(&with("runs", json!(9))).await;
    assert_eq!(rig.credits().await, 91);
    assert_eq!(rig.lease().await.runs, 9);
    rig.start_with(&with("runs", json!(3.0))).await;
    assert_eq!(rig.lease().await.runs, 3);
    rig.start().await;
    assert_eq!(rig.lease().await.runs, 1);
    assert_eq!(rig.credits().await, 87);
    let listed = rig.send(&get("/v1/audits").key(&rig.key)).await.json();
    assert_eq!(listed["data"][2]["runs"], 9);
    let poor = rig.new_key(&rig.new_account(4).await, None).await;
    rig.check(
        start(&poor, &with("runs", json!(5))),
        402,
        failure("Insufficient Credits"),
    )
    .await;
}

#[tokio::test]
async fn runs_are_a_whole_number_from_one_to_nine() {
    let rig = Rig::new().await;
    for runs in [json!(0), json!(10), json!(-1), json!(1e18), json!(u64::MAX)] {
        rig.check(
            start(&rig.key, &with("runs", runs)),
            406,
            failure("Invalid Runs"),
        )
        .await;
    }
    let invalid = "Invalid Request body or missing required parameters";
    for runs in [json!("3"), json!(null), json!(1.5), json!([1]), json!(true)] {
        rig.check(start(&rig.key, &with("runs", runs)), 400, failure(invalid))
            .await;
    }
    let twice = order().to_string().replace("}", ",\"runs\":1,\"runs\":2}");
    let request = crate::rig::post("/v1/audit/start", twice)
        .key(&rig.key)
        .json();
    rig.check(request, 400, failure(invalid)).await;
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn a_webhook_is_a_url_that_may_be_visited() {
    let rig = Rig::new().await;
    for webhook in [
        "",
        "example.com",
        "ftp://example.com/",
        "https://user:pw@example.com/",
        "https://private.example/hook",
    ] {
        rig.check(
            start(&rig.key, &with("webhook", json!(webhook))),
            406,
            failure("Invalid Webhook"),
        )
        .await;
    }
    for webhook in [json!(null), json!(1), json!({})] {
        let invalid = "Invalid Request body or missing required parameters";
        rig.check(
            start(&rig.key, &with("webhook", webhook)),
            400,
            failure(invalid),
        )
        .await;
    }
    rig.start_with(&with("webhook", json!("https://example.com/hook")))
        .await;
}
