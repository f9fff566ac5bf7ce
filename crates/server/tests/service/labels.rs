//! Labels of audits.

use serde_json::{Value, json};

use crate::rig::{Rig, get, order, post, start};

fn labelled(labels: Value) -> Value {
    let mut body = order();
    body["labels"] = labels;
    body
}

#[tokio::test]
async fn audits_are_found_by_their_labels() {
    let rig = Rig::new().await;
    let id = rig
        .start_with(&labelled(json!(["release 2.1", "ü&=", "ü&="])))
        .await;
    rig.start().await;
    let batch = json!({
        "urls": ["https://example.com/b"], "devices": ["mobile"], "networks": ["cable"],
        "locations": ["eu"], "labels": ["release 2.1"],
    });
    let request = post("/v1/batches", batch.to_string()).key(&rig.key).json();
    let batch_id = rig.send(&request).await.json()["data"]["batchId"].clone();
    let list = async |query: &str| {
        let request = get(&format!("/v1/audits?{query}")).key(&rig.key);
        rig.send(&request).await.json()["data"].clone()
    };
    let found = list("label=release%202.1").await;
    assert_eq!(found.as_array().unwrap().len(), 2);
    assert_eq!(found[0]["batchId"], batch_id);
    assert_eq!(found[0]["labels"], json!(["release 2.1"]));
    let found = list("label=%C3%BC%26%3D&device=mobile").await;
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(found[0]["trackingId"], id);
    assert_eq!(found[0]["labels"], json!(["release 2.1", "ü&="]));
    assert_eq!(list("label=other").await, json!([]));
    assert_eq!(list("").await[1].get("labels"), None);
    let status = get(&format!("/v1/audit/status/{id}")).key(&rig.key);
    let status = rig.send(&status).await.json();
    assert_eq!(status["data"]["labels"], json!(["release 2.1", "ü&="]));
}

#[tokio::test]
async fn invalid_labels_are_refused() {
    let rig = Rig::new().await;
    let too_many: Vec<String> = (0..11).map(|n| n.to_string()).collect();
    for (labels, index) in [
        (json!(["ok", ""]), json!(1)),
        (json!([" spaces "]), json!(0)),
        (json!(["line\nbreak"]), json!(0)),
        (json!(["nul\u{0}"]), json!(0)),
        (json!(["x".repeat(41)]), json!(0)),
        (json!(too_many), Value::Null),
    ] {
        let reply = rig.send(&start(&rig.key, &labelled(labels.clone()))).await;
        assert_eq!(reply.status, 406, "{labels}");
        let failure = reply.whole_json();
        assert_eq!(failure["message"], "Invalid Labels");
        assert_eq!(failure["code"], "INVALID_LABELS");
        assert_eq!(failure["field"], "labels");
        assert_eq!(failure["index"], index, "{labels}");
    }
    for labels in [json!("one"), json!([1]), json!(null)] {
        let reply = rig.send(&start(&rig.key, &labelled(labels.clone()))).await;
        assert_eq!(reply.status, 400, "{labels}");
    }
    assert_eq!(rig.credits().await, 100);
    for query in ["label=", "label=%20x", "label=a&label=b"] {
        let request = get(&format!("/v1/audits?{query}")).key(&rig.key);
        assert_eq!(rig.send(&request).await.status, 400, "{query}");
    }
}
