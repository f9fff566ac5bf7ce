//! Tests of standard output and of the number of browsers that are started.

use std::fs;
use std::io::pipe;
use std::os::unix::fs::PermissionsExt;

use plumbline_browser::{LaunchOptions, Launcher};
use serde_json::Value;

use crate::pages;
use crate::server::plumbline;

#[test]
fn a_closed_standard_output_causes_no_panic() {
    let data = tempfile::tempdir().unwrap();
    let doctor = ["doctor", "--check-url", "http://127.0.0.1:1/"];
    for command in [&doctor[..], &["keys", "list"]] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = plumbline()
            .args(command)
            .arg("--data")
            .arg(data.path())
            .stdout(writer)
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, "", "{command:?}");
        assert_eq!(output.status.code(), Some(1), "{command:?}");
    }
}

#[test]
fn doctor_checks_the_machine_and_its_connections() {
    let data = tempfile::tempdir().unwrap();
    let url = format!("http://{}/", pages::serve());
    let doctor = |url: &str, key: &str| {
        let output = plumbline()
            .args(["doctor", "--check-url", url, "--crux-key", key, "--data"])
            .arg(data.path())
            .env("XDG_CACHE_HOME", data.path())
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let key = format!("AIza{}", "k".repeat(35));
    let (code, text) = doctor(&url, &key);
    assert_eq!(code, Some(0), "{text}");
    for check in [
        "Cores: ",
        "Memory: ",
        "Shared memory: ",
        "Fonts: ",
        "Load: ",
        "Stolen time: ",
        "ok    Processor: devices are emulated by page clocks",
        "warn  Calibration: none for this machine and browser",
        "ok    DNS: 127.0.0.1 found",
        "ok    Field data: on",
    ] {
        assert!(text.contains(check), "{check}: {text}");
    }
    let responds = format!("ok    HTTP: {url} responds with status 200");
    assert!(text.contains(&responds), "{text}");
    let (code, text) = doctor(&format!("{url}no-such-page"), "zz");
    assert_eq!(code, Some(0), "{text}");
    for warning in [
        "no-such-page responds with status 404",
        "Field data: on, but the key of --crux-key does not have the form",
    ] {
        let is_warning = |line: &str| line.starts_with("warn  ") && line.contains(warning);
        assert!(text.lines().any(is_warning), "{warning}: {text}");
    }
    let (_, text) = doctor("no-such-host.invalid", &key);
    assert!(text.contains("warn  DNS: no-such-host.invalid: "), "{text}");
    let unchecked = "warn  HTTPS: not checked, because no-such-host.invalid was not found";
    assert!(text.contains(unchecked), "{text}");
    let nowhere = format!("http://{}/", pages::unused_address());
    let (code, text) = doctor(&nowhere, "a b");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("warn  HTTP: {nowhere}: ")), "{text}");
    assert!(text.contains("FAIL  Field data: the key"), "{text}");
}

#[test]
fn doctor_says_that_chromium_throttles_without_page_clocks() {
    let folder = tempfile::tempdir().unwrap();
    let chromium = Launcher::find(LaunchOptions::default()).unwrap();
    let not_preloaded = folder.path().join("chromium");
    let script = format!(
        "#!/bin/sh\nunset LD_PRELOAD\nexec '{}' \"$@\"\n",
        chromium.chromium().display()
    );
    fs::write(&not_preloaded, script).unwrap();
    fs::set_permissions(&not_preloaded, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let not_preloaded = not_preloaded.to_str().unwrap();
    for (options, reason) in [
        (&["--no-page-clock"][..], "page clocks are off"),
        (
            &["--chromium", not_preloaded],
            "this Chromium cannot be preloaded",
        ),
    ] {
        let output = plumbline()
            .args(["doctor", "--check-url", "http://127.0.0.1:1/", "--data"])
            .arg(folder.path())
            .args(options)
            .env("XDG_CACHE_HOME", folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let emulation = "warn  Processor: devices are emulated by Chromium's own throttling";
        assert!(text.contains(&format!("{emulation}: {reason}")), "{text}");
    }
}

#[test]
fn an_audit_starts_only_the_browsers_it_uses() {
    let folder = tempfile::tempdir().unwrap();
    let chromium = Launcher::find(LaunchOptions::default()).unwrap();
    let counting = folder.path().join("chromium");
    let starts = folder.path().join("starts");
    let script = format!(
        "#!/bin/sh\necho started >> '{}'\nexec '{}' \"$@\"\n",
        starts.display(),
        chromium.chromium().display()
    );
    fs::write(&counting, script).unwrap();
    fs::write(&starts, "").unwrap();
    // If tests run as root, the browser runs as another user.
    for (path, mode) in [(folder.path(), 0o755), (&counting, 0o755), (&starts, 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    let output = plumbline()
        .args(["audit", &format!("http://{}/", pages::serve())])
        .args(["--device", "desktop", "--network", "wifi", "--json"])
        .arg("--chromium")
        .arg(&counting)
        // A cached calibration would be checked against the version of the browser, which starts
        // one.
        .env("XDG_CACHE_HOME", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let visits = report["conditions"]["cpu"]["visits"].as_u64().unwrap();
    let started = fs::read_to_string(&starts).unwrap().lines().count() as u64;
    // One more browser calibrates the host.
    assert_eq!(started, visits + 1);
}
