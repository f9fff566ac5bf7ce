//! The contract, operation by operation.

use std::collections::HashSet;

use plumbline_store::AuditError;
use serde_json::{Value, json};

use crate::rig::{Rig, failure, get, order, start};

const DEVICES: [&str; 41] = [
    "mobile",
    "desktop",
    "macbookAir2020",
    "highEndLaptop",
    "macbookPro133",
    "macbookPro16",
    "msSurfaceBook315",
    "msSurfaceBook3135",
    "msSurface",
    "ipad102",
    "samsungGalaxyTab7",
    "iphone13ProMax",
    "iphone11",
    "samsungGalaxyS10Plus",
    "redmiNote8Pro",
    "iphone7",
    "samsungGalaxyA50",
    "motorolaMotoG5",
    "redmi5A",
    "iphone13Pro",
    "iphone8Plus",
    "ipadPro129",
    "samsungGalaxyA32",
    "samsungGalaxyS21Ultra",
    "samsungGalaxyS20",
    "oneplus10Pro",
    "oneplus7",
    "iphoneXR",
    "iphone5",
    "iphone6",
    "iphone11Pro",
    "iphone12Pro",
    "iphone12Mini",
    "pixel",
    "oneplusNord",
    "samsungGalaxyS8",
    "pixel3",
    "pixel4",
    "pixel5",
    "pixel6",
    "pixel6Pro",
];
const LOCATIONS: [&str; 9] = ["in", "us-tx", "us-ca", "eu", "fr", "au", "uk", "ca", "br"];
const NETWORKS: [&str; 14] = [
    "fiber",
    "cable",
    "dsl",
    "normal5g",
    "wifiFast",
    "wifi",
    "normal4gFast",
    "desktopDense4G",
    "normal4g",
    "normal3gSlow",
    "normal2gEdge",
    "normal2g",
    "mobileSlow4g",
    "mobileRegular4g",
];

pub fn report(error: Value) -> Value {
    let metric = |value: f64| json!({ "value": value, "score": 0.5 });
    let is_measured = error.is_null();
    json!({
        "format": 1,
        "requestedUrl": "https://example.com/",
        "finalUrl": "https://example.com/",
        "conditions": {
            "device": { "id": "mobile", "name": "Phone (360x640)", "mode": "mobile" },
            "network": {
                "id": "normal4g", "name": "4G (9 Mbps, 170 ms)",
                "downKbps": 9000.0, "upKbps": 9000.0, "rttMs": 170.0,
            },
            "location": {
                "id": "eu", "name": "Frankfurt, Germany", "mode": "simulated", "addedRttMs": 20.0,
            },
            "cpu": { "rate": 4.0 },
        },
        "scores": {
            "performance": is_measured.then_some(87),
            "accessibility": null, "seo": null, "bestPractices": null, "pwa": null,
        },
        "metrics": is_measured.then(|| json!({
            "fcp": metric(1234.4), "lcp": metric(2345.6), "tbt": metric(12.5),
            "cls": metric(0.123_456), "si": metric(3000.2), "tti": metric(4000.0),
        })),
        "error": error,
        "document": null,
        "browser": null,
    })
}

#[tokio::test]
async fn an_audit_goes_from_start_to_report() {
    let rig = Rig::new().await;
    let reply = rig.send(&start(&rig.key, &order())).await;
    assert_eq!(reply.status, 200);
    let started = reply.json();
    let tracking_id = started["trackingId"].as_str().unwrap().to_owned();
    assert_eq!(
        started,
        json!({ "status": "SUCCESS", "trackingId": tracking_id })
    );
    assert_eq!(rig.credits().await, 99);

    let status = get(&format!("/v1/audit/status/{tracking_id}")).key(&rig.key);
    let tracked = |state: &str| {
        json!({ "status": "SUCCESS", "data": {
            "trackingId": tracking_id, "url": "https://example.com/", "status": state,
        } })
    };
    // The contract does not define the progress of an unfinished audit.
    let without_progress = async || {
        let mut body = rig.send(&status).await.json();
        let data = body["data"].as_object_mut().unwrap();
        assert!(data.remove("progress").is_some());
        body
    };
    assert_eq!(without_progress().await, tracked("not-started"));

    let lease = rig.lease().await;
    assert_eq!(without_progress().await, tracked("in-progress"));
    let audit_id = lease.audit_id.clone();
    let data = get(&format!("/v1/audit/data/{audit_id}")).key(&rig.key);
    rig.check(data.clone(), 404, failure("Resource Not Found"))
        .await;

    rig.finish(&lease, report(Value::Null), None).await;
    let mut completed = tracked("completed");
    completed["data"]["auditId"] = json!(audit_id);
    rig.check(status.clone(), 200, completed).await;
    let expected = json!({ "status": "SUCCESS", "data": {
        "auditId": audit_id,
        "url": "https://example.com/",
        "device": "Phone (360x640)",
        "network": "4G (9 Mbps, 170 ms)",
        "location": "Frankfurt, Germany",
        "createdAt": "2027-01-15T08:00:00.007Z",
        "labData": {
            "performance": 87, "accessibility": null, "seo": null, "bestPractices": null,
            "pwa": null, "fcp": 1234, "lcp": 2346, "tbt": 13, "cls": 0.1235, "si": 3000,
            "tti": 4000,
        },
        "fieldData": null,
    } });
    rig.check(data, 200, expected).await;

    let whole = json!({ "status": "SUCCESS", "data": {
        "auditId": audit_id,
        "trackingId": tracking_id,
        "createdAt": "2027-01-15T08:00:00.007Z",
        "report": report(Value::Null),
    } });
    let path = format!("/v1/audit/report/{audit_id}");
    rig.check(get(&path).key(&rig.key), 200, whole).await;
}

#[tokio::test]
async fn an_audit_without_measurements_completes_with_an_error_and_costs_nothing() {
    let rig = Rig::new().await;
    let tracking_id = rig.start().await;
    let lease = rig.lease().await;
    let error = json!({ "code": "DNS_FAILURE", "message": "The name was not found." });
    let stored = AuditError {
        code: "DNS_FAILURE".to_owned(),
        message: "The name was not found.".to_owned(),
    };
    rig.finish(&lease, report(error.clone()), Some(stored))
        .await;

    let expected = json!({ "status": "SUCCESS", "data": {
        "trackingId": tracking_id, "url": "https://example.com/", "status": "completed",
        "auditId": lease.audit_id, "error": error,
    } });
    rig.check(
        get(&format!("/v1/audit/status/{tracking_id}")).key(&rig.key),
        200,
        expected,
    )
    .await;

    let data = get(&format!("/v1/audit/data/{}", lease.audit_id)).key(&rig.key);
    let data = rig.send(&data).await.json()["data"].take();
    assert_eq!(data["error"], error);
    let lab_data = data["labData"].as_object().unwrap();
    assert_eq!(lab_data.len(), 11);
    assert!(lab_data.values().all(Value::is_null));
    assert_eq!(data["fieldData"], Value::Null);
    assert_eq!(rig.credits().await, 100);
}

#[tokio::test]
async fn a_report_is_addressed_by_its_audit_id_and_a_status_by_its_tracking_id() {
    let rig = Rig::new().await;
    let tracking_id = rig.start().await;
    let lease = rig.lease().await;
    rig.finish(&lease, report(Value::Null), None).await;
    let crossed = [
        format!("/v1/audit/data/{tracking_id}"),
        format!("/v1/audit/status/{}", lease.audit_id),
    ];
    for path in crossed {
        rig.check(get(&path).key(&rig.key), 404, failure("Resource Not Found"))
            .await;
    }
}

#[tokio::test]
async fn ids_are_short_safe_in_urls_and_never_repeat() {
    let rig = Rig::new().await;
    let mut ids = HashSet::new();
    for _ in 0..20 {
        let tracking_id = rig.start().await;
        let audit_id = rig.lease().await.audit_id;
        for id in [tracking_id, audit_id] {
            assert!((20..=50).contains(&id.len()), "{id}");
            assert!(
                id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
                "{id}"
            );
            assert!(ids.insert(id));
        }
    }
}

#[tokio::test]
async fn every_device_location_and_network_of_the_contract_is_accepted() {
    let rig = Rig::new().await;
    let members = [
        ("device", &DEVICES[..]),
        ("location", &LOCATIONS),
        ("network", &NETWORKS),
    ];
    for (member, ids) in members {
        for id in ids {
            let mut body = order();
            body[member] = json!(id);
            let reply = rig.send(&start(&rig.key, &body)).await;
            assert_eq!(reply.status, 200, "{member} {id}: {:?}", reply.json());
        }
    }
}

#[tokio::test]
async fn the_device_list_has_every_device_in_order_without_a_key() {
    let rig = Rig::new().await;
    let reply = rig.send(&get("/v1/devices")).await;
    assert_eq!(reply.status, 200);
    let body = reply.json();
    assert_eq!(body.as_object().unwrap().len(), 2);
    let records = body["data"].as_array().unwrap();
    let ids: Vec<_> = records
        .iter()
        .map(|record| record["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, DEVICES);
    for record in records {
        assert_eq!(record.as_object().unwrap().len(), 3);
        assert!(
            record["name"]
                .as_str()
                .unwrap()
                .contains(|c: char| c.is_ascii_digit())
        );
        assert!(["mobile", "desktop"].contains(&record["mode"].as_str().unwrap()));
        let one = get(&format!("/v1/devices/{}", record["id"].as_str().unwrap()));
        rig.check(one, 200, json!({ "status": "SUCCESS", "data": record }))
            .await;
    }
}

#[tokio::test]
async fn every_location_can_be_read_without_a_key() {
    let rig = Rig::new().await;
    for id in LOCATIONS {
        let reply = rig.send(&get(&format!("/v1/locations/{id}"))).await;
        let body = reply.json();
        let name = body["data"]["name"].as_str().unwrap().to_owned();
        assert!(name.contains(", "), "city and country: {name}");
        let expected = json!({ "status": "SUCCESS", "data": { "id": id, "name": name } });
        assert_eq!((reply.status, body), (200, expected));
    }
}

#[tokio::test]
async fn the_catalog_ignores_keys_even_wrong_ones() {
    let rig = Rig::new().await;
    for path in ["/v1/devices", "/v1/devices/pixel", "/v1/locations/eu"] {
        assert_eq!(
            rig.send(&get(path).key("nonsense")).await.status,
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn invalid_values_are_reported_in_the_order_of_the_contract() {
    let rig = Rig::new().await;
    let mut body = json!({ "url": "x", "device": "x", "location": "x", "network": "x" });
    let steps = [
        ("url", "https://example.com/", "Invalid Url"),
        ("device", "mobile", "Invalid Device"),
        ("location", "eu", "Invalid Location"),
        ("network", "wifi", "Invalid Network"),
    ];
    for (member, good, message) in steps {
        // Values match exactly and case-sensitively; they are not trimmed.
        for bad in [
            "",
            " ",
            &good.to_uppercase(),
            &format!("{good} "),
            "\0",
            "null",
        ] {
            if member == "url" && bad.starts_with("HTTPS://") && !bad.ends_with(' ') {
                continue;
            }
            body[member] = json!(bad);
            rig.check(start(&rig.key, &body), 406, failure(message))
                .await;
        }
        body[member] = json!(good);
    }
    assert_eq!(rig.send(&start(&rig.key, &body)).await.status, 200);
    assert_eq!(rig.credits().await, 99, "only accepted audits are charged");
}

#[tokio::test]
async fn without_credits_a_valid_start_is_refused_and_an_invalid_one_is_still_invalid() {
    let rig = Rig::new().await;
    let poor = rig.new_account(1).await;
    let key = rig.new_key(&poor, None).await;
    assert_eq!(rig.send(&start(&key, &order())).await.status, 200);
    rig.check(start(&key, &order()), 402, failure("Insufficient Credits"))
        .await;
    let mut bad = order();
    bad["device"] = json!("toaster");
    rig.check(start(&key, &bad), 406, failure("Invalid Device"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_200_concurrent_starts_with_50_credits_exactly_50_are_accepted() {
    let rig = Rig::new().await;
    let account = rig.new_account(50).await;
    let key = rig.new_key(&account, None).await;
    let request = start(&key, &order()).bytes();
    let mut sending = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let mut connection = rig.connect().await;
        let request = request.clone();
        sending.spawn(async move {
            connection.write(&request).await;
            connection.reply().await.status
        });
    }
    let statuses = sending.join_all().await;
    let count = |expected| {
        statuses
            .iter()
            .filter(|status| **status == expected)
            .count()
    };
    assert_eq!((count(200), count(402)), (50, 150), "{statuses:?}");
}
