//! Tests of the pages in a real browser, driven by `browse.mjs`.

use std::path::Path;
use std::process::Command;

use plumbline_browser::{LaunchOptions, Launcher};

use crate::pages;
use crate::server::{Server, create_key};

#[test]
fn a_user_can_audit_follow_read_sort_share_compare_and_sign_out() {
    let data = tempfile::tempdir().unwrap();
    let key = create_key(data.path(), 5);
    let server = Server::start(data.path(), &["--allow-target", "127.0.0.1"]);
    let launcher = Launcher::find(LaunchOptions::default()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/service/browse.mjs");
    let output = Command::new("node")
        .arg("--experimental-websocket")
        .arg(script)
        .arg(launcher.chromium())
        .arg(data.path().join("browser"))
        .arg(server.address.to_string())
        .arg(&key)
        .arg(format!("http://{}/rich", pages::serve()))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(server.stop(), Some(0));
}
