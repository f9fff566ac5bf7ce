//! Tests of exports with the tools that read them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::hostile::{EXTENSIONS, NAME, exports};
use crate::server::plumbline;
use crate::tools;

fn lighthouse() -> Value {
    serde_json::from_str(&exports().text("lighthouse.json")).unwrap()
}

#[test]
fn lighthouse_renders_the_result_with_the_same_scores_and_without_scripts_of_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let html = dir.path().join("report.html");
    let result = exports().path("lighthouse.json");
    tools::script(
        "render.mjs",
        &[result.to_str().unwrap(), html.to_str().unwrap()],
        "",
    );
    let dom = tools::dom_of(&html);
    // Lighthouse's page contains an error message if rendering failed.
    assert!(
        !dom.contains("Error rendering") && dom.contains("lh-scores-container"),
        "{dom}"
    );
    let report: Value = serde_json::from_str(&exports().text("report.json")).unwrap();
    let scores = &report["scores"];
    for (category, score) in [
        ("performance", &scores["performance"]),
        ("accessibility", &scores["accessibility"]),
        ("best-practices", &scores["bestPractices"]),
        ("seo", &scores["seo"]),
        ("pwa", &scores["pwa"]),
    ] {
        let displayed = gauge(&dom, category);
        assert_eq!(
            displayed.as_deref(),
            Some(score.to_string().as_str()),
            "{category}"
        );
    }
    assert!(
        !dom.contains("<script>alert(1)"),
        "a page's name became a script"
    );
    assert!(
        dom.contains("alert(1)"),
        "the page's name is shown, as text"
    );
}

/// Returns the number in the gauge of a category, which is the text of the element after its link.
fn gauge(dom: &str, category: &str) -> Option<String> {
    let from = dom.find(&format!("href=\"#{category}\""))?;
    let from = from + dom[from..].find("lh-gauge__percentage")?;
    let text = dom[from..].split('>').nth(1)?;
    Some(text.split('<').next()?.to_owned())
}

#[test]
fn lighthouse_ci_checks_assertions_on_the_result_and_uploads_it() {
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join(".lighthouseci");
    fs::create_dir(&results).unwrap();
    fs::copy(
        exports().path("lighthouse.json"),
        results.join("lhr-1.json"),
    )
    .unwrap();
    let configure = |assertions: &str| {
        let text = format!(r#"{{"ci": {{"assert": {{"assertions": {assertions}}}}}}}"#);
        fs::write(dir.path().join("lighthouserc.json"), text).unwrap();
    };
    configure(
        r#"{"categories:performance": ["error", {"minScore": 0.01}],
            "resource-summary:document:count": ["error", {"maxNumericValue": 5}],
            "largest-contentful-paint": ["error", {"maxNumericValue": 60000}]}"#,
    );
    let passed = tools::lhci(dir.path(), &["assert"]);
    assert_eq!(passed.status.code(), Some(0), "{passed:?}");
    configure(
        r#"{"image-alt": "error", "resource-summary:total:size": ["error", {"maxNumericValue": 1}]}"#,
    );
    let failed = tools::lhci(dir.path(), &["assert"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let out = dir.path().join("out");
    let uploaded = tools::lhci(
        dir.path(),
        &[
            "upload",
            "--target",
            "filesystem",
            "--outputDir",
            out.to_str().unwrap(),
        ],
    );
    assert_eq!(uploaded.status.code(), Some(0), "{uploaded:?}");
    let manifest: Value =
        serde_json::from_slice(&fs::read(out.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest[0]["isRepresentativeRun"], true);
    let performance = &lighthouse()["categories"]["performance"]["score"];
    let summary = &manifest[0]["summary"]["performance"];
    assert_eq!(summary.as_f64(), performance.as_f64());
}

#[test]
fn the_har_is_valid_and_contains_redirects_and_failures() {
    let path = exports().path("har");
    tools::script("har.mjs", &[path.to_str().unwrap()], "");
    let har: Value = serde_json::from_str(&exports().text("har")).unwrap();
    let entries = har["log"]["entries"].as_array().unwrap();
    let first = &entries[0];
    assert_eq!(first["response"]["status"], 302);
    assert!(
        first["response"]["redirectURL"]
            .as_str()
            .unwrap()
            .contains("/page"),
        "{first}"
    );
    assert!(
        entries
            .iter()
            .any(|entry| entry["response"]["status"] == 404)
    );
    let headers = first["response"]["headers"].as_array().unwrap();
    assert!(
        headers.iter().any(|header| header["value"] == NAME),
        "{headers:?}"
    );
    assert_eq!(first["response"]["cookies"][0]["value"], NAME);
    for entry in entries {
        let timings = &entry["timings"];
        let phase = |name: &str| timings[name].as_f64().unwrap().max(0.0);
        let sum: f64 = ["blocked", "dns", "connect", "send", "wait", "receive"]
            .map(phase)
            .iter()
            .sum();
        assert!(
            (sum - entry["time"].as_f64().unwrap()).abs() < 0.1,
            "{entry}"
        );
    }
    let page = &har["log"]["pages"][0]["pageTimings"];
    assert!(
        page["onLoad"].as_f64().unwrap() >= page["onContentLoad"].as_f64().unwrap(),
        "{page}"
    );
}

#[test]
fn the_trace_is_parsed_by_devtools() {
    let path = exports().path("trace.json");
    let parsed = tools::script("trace.mjs", &[path.to_str().unwrap()], "");
    let parsed: Value = serde_json::from_str(parsed.lines().last().unwrap()).unwrap();
    assert!(
        parsed["requests"][0].as_str().unwrap().contains("/page"),
        "{parsed}"
    );
    assert!(parsed["navigations"].as_u64().unwrap() >= 1, "{parsed}");
    assert!(
        parsed["requests"].as_array().unwrap().len() >= 3,
        "{parsed}"
    );
    assert!(parsed["metrics"].as_u64().unwrap() >= 1, "{parsed}");
}

#[test]
fn the_csv_begins_like_that_of_lighthouse_and_no_cell_is_a_formula() {
    let dir = tempfile::tempdir().unwrap();
    let html = dir.path().join("report.html");
    let result = exports().path("lighthouse.json");
    let theirs = tools::script(
        "render.mjs",
        &[result.to_str().unwrap(), html.to_str().unwrap()],
        "",
    );
    let ours = exports().text("csv");
    let until_audits = |text: &str| text.split("category,audit").next().unwrap().to_owned();
    assert_eq!(until_audits(&ours), until_audits(&theirs));
    let cells = ours.split("\r\n").flat_map(|line| line.split("\",\""));
    for cell in cells {
        let start = cell.trim_start_matches('"').trim_start();
        assert!(!start.starts_with(['=', '+', '-', '@']), "{cell}");
    }
}

#[test]
fn junit_is_well_formed_and_explains_what_the_checks_found() {
    let text = exports().text("junit.xml");
    let xml = roxmltree::Document::parse(&text).unwrap();
    let suites: Vec<&str> = xml
        .descendants()
        .filter(|node| node.has_tag_name("testsuite"))
        .filter_map(|suite| suite.attribute("name"))
        .collect();
    for suite in [
        "performance",
        "accessibility",
        "best-practices",
        "seo",
        "pwa",
    ] {
        assert!(suites.contains(&suite), "{suites:?}");
    }
    let output = xml
        .descendants()
        .filter(|node| node.has_tag_name("system-out"))
        .find(|node| {
            node.parent()
                .unwrap()
                .attribute("name")
                .unwrap()
                .starts_with("image-alt:")
        })
        .unwrap();
    let text = output.text().unwrap();
    assert!(
        text.contains("alert(1)") && text.contains("Why: "),
        "{text}"
    );
}

#[test]
fn no_export_contains_anything_about_the_host() {
    let home = std::env::var("HOME").unwrap_or_default();
    let here = env!("CARGO_MANIFEST_DIR").to_owned();
    let temporary = exports().dir().parent().unwrap().display().to_string();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut secrets: Vec<String> = [
        "--remote-debugging",
        "--user-data-dir",
        "command_line",
        "command-line",
        "os-version",
        "/usr/lib/chromium",
        "/usr/bin/chromium",
    ]
    .map(str::to_owned)
    .to_vec();
    // A short name could occur anywhere.
    let names = [
        home + "/",
        here,
        format!("{temporary}/"),
        host.trim().to_owned(),
    ];
    secrets.extend(names.into_iter().filter(|name| name.len() >= 5));
    for extension in EXTENSIONS {
        let text = exports().text(extension);
        for secret in &secrets {
            assert!(
                !text.contains(secret.as_str()),
                "{extension} contains {secret}"
            );
        }
    }
}

#[test]
fn judge_gives_the_same_files() {
    let bundle = exports().dir().join("bundle.gz");
    for (format, extension) in [("har", "har"), ("trace", "trace.json")] {
        let output = plumbline()
            .arg("judge")
            .arg(&bundle)
            .args(["--output", format])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            text.trim_end(),
            exports().text(extension).trim_end(),
            "{format}"
        );
    }
    let prefix = exports().dir().join("again");
    let output = plumbline()
        .arg("judge")
        .arg(&bundle)
        .args(["--output", "csv,junit,video", "--output-path"])
        .arg(&prefix)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let file = |extension: &str| format!("{}.{extension}", prefix.display());
    for extension in ["csv", "junit.xml"] {
        assert!(Path::new(&file(extension)).exists());
    }
    // No line break follows a file that is no text.
    let video = fs::read(file("video.png")).unwrap();
    assert!(video.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(video.ends_with(b"IEND\xae\x42\x60\x82"));
    let output = plumbline()
        .arg("judge")
        .arg(&bundle)
        .args(["--output", "video"])
        .output()
        .unwrap();
    assert!(output.stdout == video, "{:?}", output.status);
}

#[test]
fn an_invalid_output_has_exit_code_2_and_lists_the_formats() {
    for (args, expected) in [
        (
            &["--output", "pdf"][..],
            "json, lighthouse, har, csv, junit, trace, html, profile, video",
        ),
        (&["--output-path", "x"][..], "--output"),
        (
            &["--output", "har,csv", "--output-path", "-"][..],
            "only one format",
        ),
        (&["--json", "--output", "har"][..], "--json"),
    ] {
        let output = plumbline()
            .args(["audit", "http://127.0.0.1:9/"])
            .args(args)
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
}
