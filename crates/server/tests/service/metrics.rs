//! The metrics for Prometheus.

use std::sync::{Arc, atomic::Ordering};
use std::time::Duration;

use plumbline_model::report::CpuEmulationMethod;
use plumbline_server::{AuditFigures, BrowserCounts, Metrics};

use crate::rig::{Rig, failure, get, order, start};

#[tokio::test]
async fn the_metrics_count_requests_the_queue_and_the_store() {
    let rig = Rig::new().await;
    rig.start().await;
    rig.clock.fetch_add(2500, Ordering::SeqCst);
    rig.send(&start("x", &order())).await;
    rig.send(&get("/v1/devices/secret-name")).await;
    let reply = rig.fetch(&get("/metrics")).await;
    assert_eq!(reply.status, 200);
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(reply.header("content-type"), Some(content_type));
    let text = reply.text();
    for line in [
        "plumbline_requests_total{method=\"POST\",route=\"/v1/audit/start\",status=\"200\"} 1",
        "plumbline_requests_total{method=\"POST\",route=\"/v1/audit/start\",status=\"401\"} 1",
        "plumbline_requests_total{method=\"GET\",route=\"/v1/devices/{id}\",status=\"404\"} 1",
        "plumbline_request_seconds_count{route=\"/v1/audit/start\"} 2",
        "plumbline_queue_audits{state=\"waiting\"} 1",
        "plumbline_queue_age_seconds 2.5",
        "plumbline_webhooks{state=\"pending\"} 0",
        "plumbline_audit_faults_total 0",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    assert!(text.contains("plumbline_store_seconds_bucket{kind=\"write\",le=\"0.001\"}"));
    assert!(!text.contains("secret-name") && !text.contains(&rig.account_id));
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn the_metrics_have_outcomes_and_phases_of_audits_and_counts_of_browsers() {
    let metrics = Arc::new(Metrics::default());
    let app_metrics = metrics.clone();
    let rig = Rig::with(|app| {
        app.metrics = app_metrics;
        app.browsers = Some(Arc::new(|| BrowserCounts {
            started: 7,
            failed: 2,
            dead: 1,
            have_own_network: true,
        }));
    })
    .await;
    for (outcome, contention) in [("measured", Some(0.02)), ("TIMEOUT", None)] {
        metrics.audit_finished(&AuditFigures {
            outcome: outcome.to_owned(),
            phases: vec![("loading".to_owned(), Duration::from_millis(8500))],
            contention,
            cpu_emulation: contention.and(Some(CpuEmulationMethod::Clock)),
            visits: 3,
            run_duration: None,
        });
    }
    metrics.audit_faulted();
    metrics.audit_handed_back();
    let reply = rig.fetch(&get("/metrics")).await;
    for line in [
        "plumbline_audits_finished_total{outcome=\"TIMEOUT\"} 1",
        "plumbline_audits_finished_total{outcome=\"measured\"} 1",
        "plumbline_visits_total 6",
        "plumbline_browser_network_isolated 1",
        "plumbline_audit_phase_seconds_sum{phase=\"loading\"} 17",
        "plumbline_audit_phase_seconds_count{phase=\"loading\"} 2",
        "plumbline_contention_share_count 1",
        "plumbline_cpu_emulations_total{method=\"clock\"} 1",
        "plumbline_audit_faults_total 1",
        "plumbline_audits_handed_back_total 1",
        "plumbline_browsers_total{what=\"started\"} 7",
        "plumbline_browsers_total{what=\"failed\"} 2",
        "plumbline_browsers_total{what=\"dead\"} 1",
    ] {
        let text = reply.text();
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn the_metrics_are_updated_once_a_second() {
    let rig = Rig::new().await;
    let read = async || rig.fetch(&get("/metrics")).await.text().to_owned();
    let first = read().await;
    rig.start().await;
    assert_eq!(read().await, first);
    let waiting = "plumbline_queue_audits{state=\"waiting\"} 1\n";
    assert!(!first.contains(waiting));
    rig.clock.fetch_add(1000, Ordering::SeqCst);
    assert!(read().await.contains(waiting));
    // A clock that was set back does not extend the cache.
    rig.clock.fetch_add(-60_000, Ordering::SeqCst);
    rig.start().await;
    assert!(
        read()
            .await
            .contains("plumbline_queue_audits{state=\"waiting\"} 2\n")
    );
}

#[tokio::test]
async fn metrics_with_a_token_require_it() {
    let rig = Rig::with(|app| {
        app.metrics_token = Some("a-token-of-the-operators".to_owned());
        app.limits.failed_keys_per_minute = 4;
    })
    .await;
    let with = |value: &str| get("/metrics").header("Authorization", value);
    for wrong in [
        get("/metrics"),
        with("Bearer another-token"),
        with("Bearer a-token-of-the-operators2"),
        with("Basic a-token-of-the-operators"),
    ] {
        let refused = rig.check(wrong, 401, failure("Unauthorized")).await;
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    }
    let too_many = failure("Too Many Failed Keys");
    rig.check(get("/metrics"), 429, too_many).await;
    let right = with("Bearer a-token-of-the-operators");
    assert_eq!(rig.fetch(&right).await.status, 200);
}
