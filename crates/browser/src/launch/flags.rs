//! What Chromium is told when it starts.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Everything, loopback too, goes to this proxy, and no name is resolved: that is the proxy's affair.
pub(super) fn only_through(proxy: SocketAddr) -> [String; 3] {
    [
        format!("--proxy-server=socks5://{proxy}"),
        "--proxy-bypass-list=<-loopback>".to_owned(),
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1".to_owned(),
    ]
}

/// Docker gives 64 MB, with which larger pages crash.
const SMALL_SHARED_MEMORY_BYTES: u64 = 512 << 20;

/// The same for every browser.
pub(super) fn fixed() -> Vec<String> {
    let mut flags: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
    flags.push(format!("--disable-features={}", OFF.join(",")));
    flags
}

const FLAGS: [&str; 41] = [
    "--remote-debugging-pipe",
    "--headless=new",
    // A visit opens its own page in its own context.
    "--no-startup-window",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    // Not what the host speaks.
    "--lang=en-US",
    "--accept-lang=en-US,en",
    "--disable-search-engine-choice-screen",
    "--disable-infobars",
    // Chromium's own errands would share the page's line and cores. Those without a switch (who is
    // signed in, what is newer) are sent to a port that Chromium itself refuses to connect to.
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
    // Whatever goes out goes through the proxy: no UDP around it. Chromium 156 knows the first
    // name of the switch for WebRTC, other versions the second. (`--dns-prefetch-disable` is not
    // used: it would keep pages from connecting in advance, and names are not found anyway.)
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    // Nobody is there to answer.
    "--deny-permission-prompts",
    "--disable-prompt-on-repost",
    "--disable-hang-monitor",
    "--noerrdialogs",
    "--password-store=basic",
    "--use-mock-keychain",
    "--mute-audio",
    // The page is in front, however the window manager of a server sees it.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // As tools that measure do: a scroll bar would take width from the layout.
    "--hide-scrollbars",
    // A server has no mouse, so that desktop pages would see a device without pointer or hover.
    // Touch emulation still turns phones into coarse pointers.
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
];

/// Features that ask their maker's servers, show something, or change what a page is served.
const OFF: [&str; 19] = [
    "AutofillServerCommunication",
    "CalculateNativeWinOcclusion",
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "GlobalMediaControls",
    // `http:` is measured as asked for, not as the browser would rather have it.
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "InterestFeedContentSuggestions",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationGuideModelDownloading",
    "OptimizationHints",
    "OptimizationTargetPrediction",
    "PrivacySandboxSettings4",
    // As chrome-launcher, whose users report lost trace events with it.
    "RenderDocument",
    "SafeBrowsing",
    "Translate",
    // Pages of the browser's own window: half a second of a core while the page is being set up.
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxPopup",
];

pub(super) fn for_this_machine() -> Vec<&'static str> {
    let small = rustix::fs::statvfs("/dev/shm")
        .map(|shm| shm.f_blocks * shm.f_frsize < SMALL_SHARED_MEMORY_BYTES)
        .unwrap_or(true);
    if small {
        vec!["--disable-dev-shm-usage"]
    } else {
        Vec::new()
    }
}

/// Nothing of our own environment reaches the browser but this; every place that it or a library
/// may write to is inside its home.
pub(super) fn environment(home: &Path) -> Vec<(&'static str, OsString)> {
    const KEPT: [&str; 6] = [
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
    let kept = KEPT
        .into_iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    let homes = HOMES
        .into_iter()
        .map(|name| (name, home.as_os_str().to_owned()));
    let no_bus = ("DBUS_SESSION_BUS_ADDRESS", OsString::from("disabled:"));
    kept.chain(homes).chain([no_bus]).collect()
}

/// What has no flag: `Local State` in the profile. Without a scheme that it knows, Chromium shows the
/// page that a server sends with its request for a password, instead of an error of its own.
pub(super) const LOCAL_STATE: &str = r#"{"auth":{"schemes":"none"}}"#;

pub(super) fn with_path(flag: &str, path: &PathBuf) -> OsString {
    let mut argument = OsString::from(flag);
    argument.push(path);
    argument
}
