//! What an operator's Prometheus reads.

use std::sync::{Arc, atomic::Ordering};
use std::time::Duration;

use plumbline_server::{AuditFigures, BrowserCounts, Metrics};

use crate::rig::{Rig, failure, get, order, start};

#[tokio::test]
async fn the_figures_count_requests_the_queue_and_the_store() {
    let rig = Rig::new().await;
    rig.start().await;
    rig.clock.fetch_add(2500, Ordering::SeqCst);
    rig.ask(&start("x", &order())).await;
    rig.ask(&get("/v1/devices/secret-name")).await;
    let reply = rig.ask_for_text(&get("/metrics")).await;
    assert_eq!(reply.status, 200);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(reply.header("content-type"), Some(kind));
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
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("plumbline_store_seconds_bucket{kind=\"write\",le=\"0.001\"}"));
    assert!(!text.contains("secret-name") && !text.contains(&rig.account_id));
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn the_figures_tell_how_audits_ended_how_long_each_phase_took_and_how_browsers_fare() {
    let metrics = Arc::new(Metrics::default());
    let counted = metrics.clone();
    let rig = Rig::with(|app| {
        app.metrics = counted;
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
            visits: 3,
        });
    }
    metrics.audit_faulted();
    metrics.audit_handed_back();
    let reply = rig.ask_for_text(&get("/metrics")).await;
    for line in [
        "plumbline_audits_finished_total{outcome=\"TIMEOUT\"} 1",
        "plumbline_audits_finished_total{outcome=\"measured\"} 1",
        "plumbline_visits_total 6",
        "plumbline_browser_network_isolated 1",
        "plumbline_audit_phase_seconds_sum{phase=\"loading\"} 17",
        "plumbline_audit_phase_seconds_count{phase=\"loading\"} 2",
        "plumbline_contention_share_count 1",
        "plumbline_audit_faults_total 1",
        "plumbline_audits_handed_back_total 1",
        "plumbline_browsers_total{what=\"started\"} 7",
        "plumbline_browsers_total{what=\"failed\"} 2",
        "plumbline_browsers_total{what=\"dead\"} 1",
    ] {
        let text = reply.text();
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn the_figures_are_read_once_a_second() {
    let rig = Rig::new().await;
    let figures = async || rig.ask_for_text(&get("/metrics")).await.text().to_owned();
    let first = figures().await;
    rig.start().await;
    assert_eq!(figures().await, first);
    let waiting = "plumbline_queue_audits{state=\"waiting\"} 1\n";
    assert!(!first.contains(waiting));
    rig.clock.fetch_add(1000, Ordering::SeqCst);
    assert!(figures().await.contains(waiting));
    // A clock that was set back keeps no figures for long.
    rig.clock.fetch_add(-60_000, Ordering::SeqCst);
    rig.start().await;
    assert!(
        figures()
            .await
            .contains("plumbline_queue_audits{state=\"waiting\"} 2\n")
    );
}

#[tokio::test]
async fn figures_with_a_token_are_for_those_who_have_it() {
    let rig = Rig::with(|app| {
        app.metrics_token = Some("a-token-of-the-operators".to_owned());
        app.limits.failed_keys_per_minute = 4;
    })
    .await;
    let with = |said: &str| get("/metrics").header("Authorization", said);
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
    assert_eq!(rig.ask_for_text(&right).await.status, 200);
}
