//! Standard output, and who starts what: seen from outside.

use std::fs;
use std::io::pipe;
use std::os::unix::fs::PermissionsExt;

use plumbline_browser::{LaunchOptions, Launcher};
use serde_json::Value;

use crate::pages;
use crate::server::plumbline;

#[test]
fn a_reader_that_leaves_early_is_no_reason_to_panic() {
    let data = tempfile::tempdir().unwrap();
    for command in [&["doctor"][..], &["keys", "list"]] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output = plumbline()
            .args(command)
            .arg("--data")
            .arg(data.path())
            .stdout(writer)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said, "", "{command:?}");
        assert_eq!(output.status.code(), Some(1), "{command:?}");
    }
}

#[test]
fn an_audit_starts_no_browser_that_it_does_not_use() {
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
    // Where tests run as root, the browser does not.
    for (path, mode) in [(folder.path(), 0o755), (&counting, 0o755), (&starts, 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    let output = plumbline()
        .args(["audit", &format!("http://{}/", pages::serve())])
        .args(["--device", "desktop", "--network", "wifi", "--json"])
        .arg("--chromium")
        .arg(&counting)
        // What another build measured here would be looked at first, and for that the browser asked
        // for its version.
        .env("XDG_CACHE_HOME", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let visits = report["conditions"]["cpu"]["visits"].as_u64().unwrap();
    let started = fs::read_to_string(&starts).unwrap().lines().count() as u64;
    // One more reads the host's speed.
    assert_eq!(started, visits + 1);
}
