//! Network isolation of a browser, by its namespace and by its flags.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use plumbline_agent::{SelfCheckError, self_check};
use plumbline_browser::{LaunchOptions, Launcher, NetworkIsolation};
use plumbline_catalog::{BUILT_IN, Catalog};

use crate::rig::{open_link, visit_through};
use crate::site::{Response, Site};

/// A Chromium that ignores the flags that disable UDP.
struct WithoutFlags {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

impl WithoutFlags {
    fn new() -> Self {
        let chromium = Launcher::find(LaunchOptions::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let path = dir.path().join("chromium");
        let script = format!(
            "#!/bin/bash\nfor flag; do shift; case $flag in *webrtc*|--disable-quic) ;; \
             *) set -- \"$@\" \"$flag\";; esac; done\nexec {} \"$@\"\n",
            chromium.chromium().display()
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self { _dir: dir, path }
    }
}

async fn check(chromium: Option<PathBuf>, network_namespace: bool) -> Result<(), SelfCheckError> {
    let launcher = Launcher::find(LaunchOptions {
        chromium,
        only_through_proxy: true,
        network_namespace,
        ..LaunchOptions::default()
    });
    let launcher = launcher.unwrap();
    let has_namespace = *launcher.network_isolation() == NetworkIsolation::Namespace;
    assert_eq!(has_namespace, network_namespace);
    self_check(&launcher, &Catalog::load(BUILT_IN).unwrap()).await
}

#[tokio::test]
async fn a_browser_with_a_namespace_is_isolated() {
    check(None, true).await.unwrap();
}

#[tokio::test]
async fn a_browser_with_a_namespace_is_isolated_without_its_flags() {
    let chromium = WithoutFlags::new();
    check(Some(chromium.path.clone()), true).await.unwrap();
}

#[tokio::test]
async fn a_browser_with_its_flags_is_isolated_without_a_namespace() {
    check(None, false).await.unwrap();
}

#[tokio::test]
async fn the_self_check_detects_a_browser_with_neither() {
    let chromium = WithoutFlags::new();
    let error = check(Some(chromium.path.clone()), false).await.unwrap_err();
    let SelfCheckError::Leak(leaks) = error else {
        panic!("{error}");
    };
    let is_udp = |leak: &String| leak.starts_with("a UDP datagram arrived at 127.0.0.1:");
    assert!(leaks.iter().any(is_udp), "{leaks:?}");
}

#[tokio::test]
async fn a_page_in_a_namespace_is_online() {
    let page = "<!doctype html><h1>Hello</h1><script>
        const report = (name, state) => fetch(`/${name}-${state}`);
        report('page', navigator.onLine);
        report('type', navigator.connection?.effectiveType);
        const worker = new Worker(URL.createObjectURL(new Blob(['postMessage(navigator.onLine)'])));
        worker.onmessage = event => { report('worker', event.data); worker.terminate(); };
        addEventListener('message', event => report('frame', event.data));
        setTimeout(() => report('later', navigator.onLine), 400);
    </script><iframe srcdoc='<script>parent.postMessage(navigator.onLine)</script>'></iframe>";
    let site = Site::serve([("/", Response::html(page))]).await;
    let link = open_link(&["127.0.0.0/8"]).await;
    visit_through(&link, &site.url("/")).await.unwrap();
    let paths = site.requested_paths();
    for path in [
        "/page-true",
        "/worker-true",
        "/frame-true",
        "/later-true",
        "/type-4g",
    ] {
        assert!(paths.iter().any(|p| p == path), "{path}: {paths:?}");
    }
}
