use plumbline_catalog::FormFactor;
use plumbline_model::field::RecordScope;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn query(kind: QueryKind) -> Query {
    Query {
        kind,
        record: RecordScope::Url,
        subject: "https://example.com/".to_owned(),
        form_factor: FormFactor::Phone,
    }
}

fn now(status: u16, body: &Value) -> Interpretation {
    interpret(
        &query(QueryKind::Current),
        status,
        body.to_string().as_bytes(),
    )
}

fn history(body: &Value) -> Interpretation {
    interpret(&query(QueryKind::History), 200, body.to_string().as_bytes())
}

fn days(day: i8) -> Value {
    json!({
        "firstDate": { "year": 2026, "month": 10, "day": day },
        "lastDate": { "year": 2026, "month": 11, "day": day },
    })
}

fn record(metrics: Value) -> Value {
    json!({ "record": {
        "key": { "formFactor": "PHONE", "url": "https://example.com/" },
        "metrics": metrics,
        "collectionPeriod": days(3),
    } })
}

fn data(interpretation: Interpretation) -> FieldData {
    match interpretation {
        Interpretation::Final(Ok(FieldRecord::Data(data))) => (*data).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_record_is_read_with_its_percentiles_shares_and_period() {
    let bins = |densities: [f64; 3], ends: [Value; 2]| {
        json!([
            { "start": 0, "end": ends[0], "density": densities[0] },
            { "start": ends[0], "end": ends[1], "density": densities[1] },
            { "start": ends[1], "density": densities[2] },
        ])
    };
    let body = record(json!({
        "first_contentful_paint": {
            "histogram": bins([0.7, 0.2, 0.1], [json!(1800), json!(3000)]), "percentiles": { "p75": 1923 },
        },
        "cumulative_layout_shift": {
            "histogram": bins([0.9, 0.06, 0.04], [json!("0.10"), json!("0.25")]),
            "percentiles": { "p75": "0.05" },
        },
        "interaction_to_next_paint": { "percentiles": { "p75": 201 } },
        "experimental_time_to_first_byte": { "percentiles": { "p75": 640 } },
        "largest_contentful_paint": { "percentiles": {} },
        "navigation_types": { "fractions": { "navigate": 0.9 } },
        "form_factors": { "fractions": { "phone": 1 } },
    }));
    let data = data(now(200, &body));
    assert_eq!(data.subject, "https://example.com/");
    assert_eq!(
        (data.record, data.form_factor, data.percentile),
        (RecordScope::Url, FormFactor::Phone, 75)
    );
    let period = data.collection_period.unwrap();
    assert_eq!(
        (period.first_date.as_str(), period.last_date.as_str()),
        ("2026-10-03", "2026-11-03")
    );
    let fcp = data.metrics.fcp.unwrap();
    assert_eq!(fcp.p75, 1923.0);
    assert_eq!(fcp.shares.unwrap().needs_improvement, 0.2);
    assert_eq!(data.metrics.cls.unwrap().p75, 0.05);
    assert_eq!(data.metrics.inp.unwrap().shares, None);
    assert_eq!(data.metrics.ttfb.unwrap().p75, 640.0);
    assert_eq!(
        (data.metrics.fid, data.metrics.lcp),
        (None, None),
        "absent is none"
    );
}

#[test]
fn the_record_may_have_another_spelling_of_the_url_than_the_query() {
    let mut body = record(json!({ "first_contentful_paint": { "percentiles": { "p75": 1 } } }));
    body["record"]["key"] = json!({ "origin": "https://example.org" });
    body["urlNormalizationDetails"] =
        json!({ "originalUrl": "https://example.com/#x", "normalizedUrl": "https://example.com/" });
    assert_eq!(data(now(200, &body)).subject, "https://example.org");
}

#[test]
fn a_record_without_supported_metrics_is_none() {
    for metrics in [
        json!({}),
        json!({ "round_trip_time": { "percentiles": { "p75": 100 } } }),
        json!({ "first_contentful_paint": {} }),
    ] {
        assert_eq!(
            now(200, &record(metrics)),
            Interpretation::Final(Err(FieldReason::NotInDataset))
        );
    }
}

#[test]
fn errors_are_distinguished() {
    let error = |code: u16, status: &str, reason: &str| {
        json!({ "error": { "code": code, "message": "words", "status": status,
                           "details": [{ "@type": "ErrorInfo", "reason": reason }] } })
    };
    for (status, body, expected) in [
        (
            404,
            error(404, "NOT_FOUND", ""),
            Interpretation::Final(Err(FieldReason::NotInDataset)),
        ),
        (
            404,
            json!({ "error": { "code": 404, "status": "NOT_FOUND" } }),
            Interpretation::Final(Err(FieldReason::NotInDataset)),
        ),
        (
            400,
            error(400, "INVALID_ARGUMENT", ""),
            Interpretation::Final(Err(FieldReason::Rejected)),
        ),
        (
            400,
            error(400, "INVALID_ARGUMENT", "API_KEY_INVALID"),
            Interpretation::KeyRefused,
        ),
        (
            403,
            error(403, "PERMISSION_DENIED", "SERVICE_DISABLED"),
            Interpretation::KeyRefused,
        ),
        (
            401,
            error(401, "UNAUTHENTICATED", ""),
            Interpretation::KeyRefused,
        ),
        (
            429,
            error(429, "RESOURCE_EXHAUSTED", ""),
            Interpretation::TooManyRequests,
        ),
        (429, json!("anything"), Interpretation::TooManyRequests),
        (503, json!("anything"), Interpretation::Failed),
    ] {
        assert_eq!(now(status, &body), expected, "{status} {body}");
    }
}

#[test]
fn an_unexpected_response_is_invalid_and_not_a_missing_record() {
    for (status, body) in [
        (200, json!({})),
        (200, json!([])),
        (200, json!({ "record": {} })),
        (404, json!({ "message": "no such page" })),
        (404, json!({ "error": { "status": "UNIMPLEMENTED" } })),
        (302, json!({})),
        (204, json!({})),
        (
            200,
            record(json!({ "first_contentful_paint": { "percentiles": { "p75": "soon" } } })),
        ),
        (
            200,
            record(json!({ "first_contentful_paint": { "percentiles": { "p75": -1 } } })),
        ),
        (
            200,
            record(json!({ "cumulative_layout_shift": { "percentiles": { "p75": "inf" } } })),
        ),
        (200, record(json!({ "first_contentful_paint": 7 }))),
    ] {
        let result = now(status, &body);
        assert!(
            matches!(result, Interpretation::Invalid(_)),
            "{status} {body}: {result:?}"
        );
    }
    let mut body = record(json!({ "first_contentful_paint": { "percentiles": { "p75": 1 } } }));
    body["record"]["collectionPeriod"] = days(31);
    assert_eq!(now(200, &body), Interpretation::Invalid("an invalid date"));
}

#[test]
fn a_history_has_a_value_or_none_for_each_period() {
    let body = json!({ "record": {
        "key": { "origin": "https://example.com" },
        "metrics": {
            "largest_contentful_paint": {
                "histogramTimeseries": [{ "start": 0, "end": 2500, "densities": [0.5, "NaN", 0.6] }],
                "percentilesTimeseries": { "p75s": [2600, null, 2400] },
            },
            "cumulative_layout_shift": { "percentilesTimeseries": { "p75s": ["0.01", "NaN", "0.2"] } },
            "first_input_delay": { "percentilesTimeseries": { "p75s": [null, null, null] } },
        },
        "collectionPeriods": [days(1), days(8), days(15)],
    } });
    let Interpretation::Final(Ok(FieldRecord::History(history))) = history(&body) else {
        panic!("{:?}", history(&body));
    };
    assert_eq!(history.periods[1].last_date, "2026-11-08");
    assert_eq!(
        history.p75s,
        [
            (FieldKind::Lcp, vec![Some(2600.0), None, Some(2400.0)]),
            (FieldKind::Cls, vec![Some(0.01), None, Some(0.2)]),
        ]
    );
}

#[test]
fn a_history_with_lists_of_different_lengths_is_invalid() {
    let body = |periods: Vec<Value>, values: Vec<u32>| {
        json!({ "record": {
            "key": { "origin": "https://example.com" },
            "metrics": { "largest_contentful_paint": { "percentilesTimeseries": { "p75s": values } } },
            "collectionPeriods": periods,
        } })
    };
    let few = history(&body(vec![days(1)], vec![1, 2]));
    assert!(matches!(few, Interpretation::Invalid(_)), "{few:?}");
    let many = history(&body(vec![days(1); 101], vec![1; 101]));
    assert!(matches!(many, Interpretation::Invalid(_)), "{many:?}");
}

#[test]
fn a_wait_is_seconds_or_a_date() {
    let now_ms = 1_794_744_000_000;
    for (text, expected_ms) in [
        ("120", Some(120_000)),
        (" 0 ", Some(0)),
        ("Sun, 15 Nov 2026 12:00:30 GMT", Some(30_000)),
        ("Sun, 15 Nov 2026 11:00:00 GMT", Some(0)),
        ("soon", None),
        ("-5", None),
        ("", None),
    ] {
        let wait = retry_after(text, now_ms).map(|wait| wait.as_millis());
        assert_eq!(wait, expected_ms, "{text}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zN0-9.-]{0,6}".prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "record",
        "key",
        "url",
        "metrics",
        "first_contentful_paint",
        "percentiles",
        "p75",
        "p75s",
        "percentilesTimeseries",
        "collectionPeriods",
        "histogram",
        "density",
        "error",
        "status",
    ]);
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(names.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(status in 100_u16..600, body in prop::collection::vec(any::<u8>(), 0..200)) {
        interpret(&query(QueryKind::Current), status, &body);
        interpret(&query(QueryKind::History), status, &body);
    }

    #[test]
    fn every_value_is_finite_and_not_negative(body in any_json(), inner in any_json()) {
        for body in [body, record(json!({ "first_contentful_paint": inner }))] {
            if let Interpretation::Final(Ok(FieldRecord::Data(data))) = now(200, &body) {
                for kind in FieldKind::ALL {
                    if let Some(metric) = data.metrics.get(kind) {
                        prop_assert!(metric.p75.is_finite() && metric.p75 >= 0.0);
                    }
                }
            }
            history(&body);
        }
    }

    #[test]
    fn a_layout_shift_is_read_as_it_was_written(value in 0.0_f64..10.0) {
        let text = format!("{value:.2}");
        let body = record(json!({ "cumulative_layout_shift": { "percentiles": { "p75": text.clone() } } }));
        let result = data(now(200, &body)).metrics.cls.unwrap().p75;
        prop_assert_eq!(format!("{result:.2}"), text);
    }
}
