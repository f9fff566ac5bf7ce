//! Tests of `plumbline audit`, `judge` and `metrics`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use plumbline_bundle::Bundle;
use serde_json::Value;

use crate::pages;
use crate::server::plumbline;

fn audit(args: &[&str]) -> Output {
    plumbline().arg("audit").args(args).output().unwrap()
}

#[test]
fn a_page_is_measured_without_a_server() {
    let url = format!("http://{}/", pages::serve());
    let output = audit(&[&url, "--device", "desktop", "--network", "wifi", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["metrics"]["fcp"]["value"].as_f64().unwrap() > 0.0);
    assert_eq!(report["requestedUrl"], url.as_str());
    // Standard error is not a terminal, so the progress is not shown.
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn a_page_that_cannot_be_measured_has_exit_code_1_and_a_reason() {
    // A URL without a scheme is completed.
    let address = pages::unused_address().to_string();
    let output = audit(&[&address, "--network", "wifi"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(&format!("http://{address}/\n")), "{text}");
    assert!(text.contains("Not measured"), "{text}");
}

#[test]
fn the_trace_of_a_profile_is_not_written_without_one() {
    let output = audit(&["http://example.com/", "--output", "profile"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("--output profile requires --profile"),
        "{error}"
    );
}

#[test]
fn a_quiet_audit_prints_only_why_a_page_was_not_measured() {
    let address = pages::unused_address().to_string();
    for format in [&[][..], &["--json"]] {
        let args = [&address, "--network", "wifi", "--quiet"];
        let output = audit(&[&args[..], format].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(output.stdout.is_empty(), format.is_empty(), "{output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with("plumbline: Not measured: "), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn files_that_cannot_be_written_are_refused_before_the_visit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none/page");
    let path = path.to_str().unwrap();
    for (args, flag) in [
        (
            &["--output", "html", "--output-path", path][..],
            "--output-path",
        ),
        (
            &["--output", "html,csv", "--output-path", path],
            "--output-path",
        ),
        (&["--bundle", path], "--bundle"),
    ] {
        let output = audit(&[&["example.com"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        let expected = format!("plumbline: {flag} {path}: there is no directory ");
        assert!(stderr.starts_with(&expected), "{stderr}");
    }
}

#[test]
fn a_page_that_changes_after_the_last_screenshot_is_measured_to_the_end() {
    let url = format!("http://{}/animated", pages::serve());
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("page.bundle");
    let path = bundle.to_str().unwrap();
    let args = [&url, "--device", "desktop", "--network", "wifi", "--quick"];
    let output = audit(&[&args[..], &["--json", "--bundle", path]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let metrics = &report["metrics"];
    let value = |metric: &str| metrics[metric]["value"].as_f64().unwrap();
    assert!(report["scores"]["performance"].is_number(), "{report}");
    // Most of the page appears with its largest content.
    assert!(value("si") > value("lcp") / 2.0, "{metrics}");
    assert!(!judge(&bundle, "html").contains("Chromium stopped recording screenshots"));

    // Bundles of earlier versions have no pictures of later frames.
    let mut page = Bundle::unpack(&std::fs::read(&bundle).unwrap()).unwrap();
    page.trace = without_later_frames(&page.trace, value("lcp") * 1000.0);
    std::fs::write(&bundle, page.pack().unwrap()).unwrap();
    let report: Value = serde_json::from_str(&judge(&bundle, "json")).unwrap();
    let metrics = &report["metrics"];
    assert!(metrics["si"].is_null(), "{metrics}");
    let reason = metrics["missing"]["si"].as_str().unwrap();
    assert!(reason.contains("at most 450 screenshots"), "{reason}");
    assert!(report["scores"]["performance"].is_null());
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("so it has no Speed Index"), "{warnings}");
    let html = judge(&bundle, "html");
    assert!(html.contains("Chromium stopped recording screenshots after"));
    assert!(html.contains(r#"class="blank missing""#));
    let exported: Value = serde_json::from_str(&judge(&bundle, "lighthouse")).unwrap();
    let message = &exported["audits"]["speed-index"]["errorMessage"];
    assert!(
        message.as_str().unwrap().contains("450 screenshots"),
        "{message}"
    );
}

/// Returns the report of a bundle in a format.
fn judge(bundle: &Path, format: &str) -> String {
    let mut command = plumbline();
    command.arg("judge").arg(bundle).args(["--output", format]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Returns a trace with the first 450 screenshots, which all are from before the largest content.
fn without_later_frames(trace: &[u8], lcp_us: f64) -> Vec<u8> {
    let mut trace: Value = serde_json::from_slice(trace).unwrap();
    let events = trace["traceEvents"].as_array_mut().unwrap();
    let is_screenshot = |event: &Value| event["name"] == "Screenshot";
    let ts_us = |event: &Value| event["ts"].as_f64().unwrap();
    let mut times: Vec<f64> = events
        .iter()
        .filter(|it| is_screenshot(it))
        .map(ts_us)
        .collect();
    times.sort_by(f64::total_cmp);
    assert!(times.len() > 450, "{}", times.len());
    assert!(times[449] - times[0] < lcp_us);
    events.retain(|event| !is_screenshot(event) || ts_us(event) <= times[449]);
    serde_json::to_vec(&trace).unwrap()
}

#[test]
fn the_report_is_written_and_opened_with_the_desktops_program() {
    let dir = tempfile::tempdir().unwrap();
    let run = |exit_code: u8| {
        for program in ["xdg-open", "gio", "wslview", "open"] {
            let path = dir.path().join(program);
            let script = format!("#!/bin/sh\necho \"$0 $*\" >> opened\nexit {exit_code}\n");
            std::fs::write(&path, script).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let address = pages::unused_address().to_string();
        plumbline()
            .args(["audit", &address, "--network", "wifi", "--quiet", "--open"])
            .env("PATH", format!("{}:{path}", dir.path().display()))
            .current_dir(dir.path())
            .output()
            .unwrap()
    };
    let output = run(0);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let opened = std::fs::read_to_string(dir.path().join("opened")).unwrap();
    let file = opened.trim().split(' ').nth(1).unwrap();
    assert!(file.starts_with("127.0.0.1_") && file.ends_with(".html"));
    let page = std::fs::read_to_string(dir.path().join(file)).unwrap();
    assert!(page.starts_with("<!doctype html>"), "{page}");

    let output = run(3);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("--open: no program could open the report (tried xdg-open, gio,"),
        "{stderr}"
    );
    assert!(stderr.contains(".html in a browser"), "{stderr}");
}

#[test]
fn an_error_page_has_exit_code_1_and_its_status() {
    let url = format!("http://{}/no-such-page", pages::serve());
    let output = audit(&[&url, "--network", "wifi"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("HTTP_ERROR"), "{text}");
    assert!(text.contains("status 404"), "{text}");
    assert!(text.contains("add: --allow-error-status"), "{text}");
    let output = audit(&[&url, "--network", "wifi", "--allow-error-status"]);
    let text = String::from_utf8(output.stdout).unwrap();
    // The page is empty.
    assert!(text.contains("NO_PAINT"), "{text}");
}

#[test]
fn the_catalog_is_listed_with_ids_that_an_audit_accepts() {
    for (command, line) in [
        ("devices", "mobile "),
        ("networks", "mobileSlow4g "),
        ("locations", "us-tx "),
    ] {
        let output = plumbline().arg(command).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let list = String::from_utf8(output.stdout).unwrap();
        assert!(list.lines().any(|it| it.starts_with(line)), "{list}");
    }
    let output = plumbline().args(["completions", "bash"]).output().unwrap();
    let script = String::from_utf8(output.stdout).unwrap();
    assert!(script.contains("--agent-location"), "{script}");
}

#[test]
fn the_licences_of_everything_in_the_program_are_printed() {
    let output = plumbline().arg("licenses").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "Mozilla Public License, version 2.0",
        "Copyright (c) 2019 Patrick Hulce",
        "clap 4",
        "Apache License",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn invalid_arguments_have_exit_code_2_and_a_helpful_message() {
    for (args, expected) in [
        (
            &["http://example.com/", "--device", "toaster"][..],
            "unknown device `toaster`; known devices: mobile",
        ),
        (
            &["http://example.com/", "--network", "pigeon"][..],
            "unknown network `pigeon`",
        ),
        (
            &["http://example.com/", "--location", "moon"][..],
            "unknown location `moon`",
        ),
        (&["ftp://example.com/"][..], "is not an http or https URL"),
        (
            &["example"][..],
            "`example` is not a URL; write `http://example/` or `https://example/`",
        ),
        (
            &["user:canary@x"][..],
            "a user name and a password do not belong into the URL",
        ),
        (
            &["http://example.com/", "--device", "mobil"][..],
            "unknown device `mobil` (did you mean `mobile`?)",
        ),
        (
            &["example.com", "--preset", "lighthouse-tv"][..],
            "[possible values: lighthouse-mobile, lighthouse-desktop]",
        ),
        (
            &[
                "example.com",
                "--preset",
                "lighthouse-mobile",
                "--device",
                "pixel",
            ][..],
            "cannot be used with",
        ),
        (&[][..], "URL"),
        (
            &["http://example.com/", "--allow-target", "a b"][..],
            "--allow-target",
        ),
        (
            &["http://example.com/", "--deny-target", "10.0.0.0/33"][..],
            "--deny-target",
        ),
    ] {
        let output = audit(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
}

#[test]
fn stored_evidence_is_evaluated_again_to_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("bundle.gz");
    let bundle = bundle.to_str().unwrap();
    let url = format!("http://{}/", pages::serve());
    let output = audit(&[
        &url,
        "--network",
        "wifi",
        "--json",
        "--quick",
        "--bundle",
        bundle,
    ]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let audited: Value = serde_json::from_slice(&output.stdout).unwrap();
    let judge = || plumbline().args(["judge", bundle]).output().unwrap();
    let judged: Value = serde_json::from_slice(&judge().stdout).unwrap();
    assert_eq!(judge().stdout, judge().stdout);
    for part in ["scores", "metrics", "categories"] {
        assert_eq!(audited[part], judged[part], "{part}");
    }
    for score in [
        "performance",
        "accessibility",
        "seo",
        "bestPractices",
        "pwa",
    ] {
        assert!(judged["scores"][score].is_number(), "{score}");
    }
}

#[test]
fn the_metrics_of_a_trace_are_printed_unrounded() {
    let data = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../engine/tests/data/long-tasks.trace.json.gz"
    );
    let output = plumbline().args(["metrics", data]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let metrics: Value = serde_json::from_slice(&output.stdout).unwrap();
    for name in ["fcp", "lcp", "si", "tbt", "cls", "tti", "performance"] {
        assert!(metrics[name].is_number(), "{name}: {metrics}");
    }
    let missing = plumbline().args(["metrics", "none.json"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
}
