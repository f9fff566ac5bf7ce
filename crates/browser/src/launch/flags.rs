//! Command line flags and environment of Chromium.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Returns flags that send all connections, including those to loopback, to this proxy, and that
/// leave name resolution to it.
pub(super) fn proxy(proxy: SocketAddr) -> [String; 3] {
    [
        format!("--proxy-server=socks5://{proxy}"),
        "--proxy-bypass-list=<-loopback>".to_owned(),
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1".to_owned(),
    ]
}

/// Size of `/dev/shm` below which it is not used. Docker's default is 64 MB, with which larger
/// pages crash.
const MIN_SHARED_MEMORY_BYTES: u64 = 512 << 20;

/// Returns the flags that are the same for every browser.
pub(super) fn fixed() -> Vec<String> {
    let mut flags: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
    flags.push(format!(
        "--disable-features={}",
        DISABLED_FEATURES.join(",")
    ));
    flags
}

const FLAGS: [&str; 42] = [
    "--remote-debugging-pipe",
    "--headless=new",
    // A visit opens its own page in its own context.
    "--no-startup-window",
    // The windows of pages fill the screen. Without this flag, they show how to leave that mode.
    "--kiosk",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    // Instead of the host's language.
    "--lang=en-US",
    "--accept-lang=en-US,en",
    "--disable-search-engine-choice-screen",
    "--disable-infobars",
    // Chromium's own requests would share the line and the cores with the page. Those that no
    // switch disables (sign-in state, updates) go to a port that Chromium refuses to connect to.
    "--gaia-url=https://127.0.0.1:1/",
    "--google-apis-url=https://127.0.0.1:1/",
    "--component-updater=url-source=https://127.0.0.1:1/",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-client-side-phishing-detection",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-component-extensions-with-background-pages",
    "--disable-field-trial-config",
    "--disable-sync",
    "--no-pings",
    "--metrics-recording-only",
    "--disable-breakpad",
    "--disable-crash-reporter",
    // All traffic goes through the proxy: no UDP past it. Chromium 156 has the first name of the
    // switch for WebRTC, other versions the second. (`--dns-prefetch-disable` is not used: it would
    // prevent pages from connecting in advance, and names are not resolved anyway.)
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    // There is no user to respond.
    "--deny-permission-prompts",
    "--disable-prompt-on-repost",
    "--disable-hang-monitor",
    "--noerrdialogs",
    "--password-store=basic",
    "--use-mock-keychain",
    "--mute-audio",
    // The page counts as visible, whatever the window manager of a server reports.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // Like other measuring tools: a scroll bar would reduce the width of the layout.
    "--hide-scrollbars",
    // A server has no mouse, so desktop pages would detect a device without pointer or hover. Touch
    // emulation still gives phones a coarse pointer.
    // Windows fill the screen, but pages have the display mode of a browser (1).
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4,\
     displayModeOverride=1",
];

/// Features that contact Google's servers, show something, or change what a page is served.
const DISABLED_FEATURES: [&str; 19] = [
    "AutofillServerCommunication",
    "CalculateNativeWinOcclusion",
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "GlobalMediaControls",
    // `http:` URLs are measured as requested, without an upgrade.
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "InterestFeedContentSuggestions",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationGuideModelDownloading",
    "OptimizationHints",
    "OptimizationTargetPrediction",
    "PrivacySandboxSettings4",
    // As in chrome-launcher, whose users report lost trace events with this feature.
    "RenderDocument",
    "SafeBrowsing",
    "Translate",
    // Pages of the browser's own window: half a second of CPU time while the page is being set up.
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxPopup",
];

/// Returns the flags that depend on this machine.
pub(super) fn for_this_machine() -> Vec<&'static str> {
    let is_small = rustix::fs::statvfs("/dev/shm")
        .map(|shm| shm.f_blocks * shm.f_frsize < MIN_SHARED_MEMORY_BYTES)
        .unwrap_or(true);
    if is_small {
        vec!["--disable-dev-shm-usage"]
    } else {
        Vec::new()
    }
}

/// Returns the environment of the browser: a few variables of this process, and its home as the
/// value of all variables that name a directory to which it or a library may write.
pub(super) fn environment(home: &Path) -> Vec<(&'static str, OsString)> {
    const INHERITED: [&str; 6] = [
        "PATH",
        "TZ",
        "FONTCONFIG_FILE",
        "FONTCONFIG_PATH",
        "LD_LIBRARY_PATH",
        "CHROME_DEVEL_SANDBOX",
    ];
    const HOMES: [&str; 8] = [
        "HOME",
        "TMPDIR",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_RUNTIME_DIR",
        "BREAKPAD_DUMP_LOCATION",
    ];
    let inherited = INHERITED
        .into_iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    let homes = HOMES
        .into_iter()
        .map(|name| (name, home.as_os_str().to_owned()));
    let no_bus = ("DBUS_SESSION_BUS_ADDRESS", OsString::from("disabled:"));
    inherited.chain(homes).chain([no_bus]).collect()
}

/// Contents of `Local State` in the profile, for a setting that has no flag. Without supported
/// authentication schemes, Chromium shows the page that a server sends with status 401 instead of
/// its own error.
pub(super) const LOCAL_STATE: &str = r#"{"auth":{"schemes":"none"}}"#;

pub(super) fn with_path(flag: &str, path: &PathBuf) -> OsString {
    let mut argument = OsString::from(flag);
    argument.push(path);
    argument
}
