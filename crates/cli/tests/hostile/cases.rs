//! The list of hostile pages and responses, with the allowed results of each.

/// The result of an audit that was measured, instead of an error code.
pub const MEASURED: &str = "measured";

pub struct Case {
    /// The path without its first slash. Without `.html`, it is also the name.
    pub path: &'static str,
    /// The last number of the IP address.
    pub host: u8,
    /// The allowed codes, or [`MEASURED`]. Empty allows any but `INTERNAL`, for pages whose result
    /// depends on the machine.
    pub ends: &'static [&'static str],
    /// Whether the case is in the short part.
    pub short: bool,
}

impl Case {
    pub fn name(&self) -> String {
        let name = self.path.trim_end_matches(".html");
        if self.host == 1 {
            name.to_owned()
        } else {
            format!("{name}@{}", self.host)
        }
    }

    pub fn allows(&self, end: &str) -> bool {
        end != "INTERNAL" && (self.ends.is_empty() || self.ends.contains(&end))
    }
}

const ANY: &[&str] = &[];
const HUNG: &[&str] = &["PAGE_HUNG"];
const MEASURED_ONLY: &[&str] = &[MEASURED];
const MEASURED_OR_HUNG: &[&str] = &[MEASURED, "PAGE_HUNG"];
const TOO_LARGE: &[&str] = &["TOO_LARGE"];
/// A page that sends more than is read, unless it crashes or hangs before.
const FLOODED: &[&str] = &["TOO_LARGE", "PAGE_CRASHED", "PAGE_HUNG"];
/// A page that is never idle: what it did until the deadline is measured, unless it never pauses or
/// its trace becomes too large to arrive in time.
const BUSY: &[&str] = &[MEASURED, "PAGE_HUNG", "TOO_LARGE"];
const LOOPS: &[&str] = &["TOO_MANY_REDIRECTS"];
const BROKEN: &[&str] = &["CONNECTION_FAILED"];
/// Chromium already has a document, in which nothing is painted.
const BROKEN_LATE: &[&str] = &["CONNECTION_FAILED", "NO_PAINT", "TIMEOUT"];
const LATE: &[&str] = &["TIMEOUT"];
const BLOCKED: &[&str] = &["BLOCKED_TARGET"];
const NOT_HTML: &[&str] = &["NOT_HTML"];
/// Chromium does not report every URL that it does not open.
const NOT_OPENED: &[&str] = &["BLOCKED_TARGET", "NOT_HTML"];
/// A page that allocates memory until its process or its browser is terminated.
const OUT_OF_MEMORY: &[&str] = &[
    MEASURED,
    "PAGE_CRASHED",
    "PAGE_HUNG",
    "TOO_LARGE",
    "TIMEOUT",
];
/// A page whose first frame takes longer than anyone waits, or more memory than there is.
const TOO_MUCH_TO_PAINT: &[&str] = &[MEASURED, "NO_PAINT", "TOO_LARGE"];

const fn case(path: &'static str, ends: &'static [&'static str]) -> Case {
    Case {
        path,
        host: 1,
        ends,
        short: false,
    }
}

/// Returns a case that ends within seconds, for the short part.
const fn short(path: &'static str, ends: &'static [&'static str]) -> Case {
    Case {
        short: true,
        ..case(path, ends)
    }
}

const fn at(host: u8, path: &'static str, ends: &'static [&'static str]) -> Case {
    Case {
        host,
        ..case(path, ends)
    }
}

pub const CASES: &[Case] = &[
    // Endless loops.
    short("loop-script.html", HUNG),
    case("loop-after-paint.html", HUNG),
    case("loop-microtask.html", &["PAGE_HUNG", "TOO_LARGE"]),
    case("loop-frames.html", MEASURED_OR_HUNG),
    case("loop-layout.html", MEASURED_OR_HUNG),
    case("loop-timers.html", TOO_LARGE),
    case("loop-messages.html", BUSY),
    case("loop-observers.html", TOO_LARGE),
    case("loop-regex.html", HUNG),
    case("loop-wasm.html", HUNG),
    case("loop-debugger.html", TOO_LARGE),
    case("loop-synchronous-requests.html", HUNG),
    case("loop-document-write.html", OUT_OF_MEMORY),
    // Pages that wait until they have been measured.
    case("loop-when-gathered.html", MEASURED_OR_HUNG),
    case("crash-when-gathered.html", OUT_OF_MEMORY),
    case("leave-when-gathered.html", MEASURED_ONLY),
    case("dialogs-when-gathered.html", MEASURED_OR_HUNG),
    case("loop-when-left.html", MEASURED_ONLY),
    case("loop-when-resized.html", MEASURED_OR_HUNG),
    case("hostile-prototypes.html", MEASURED_ONLY),
    // Dialogs, windows, files, permissions.
    case("dialogs-alert.html", MEASURED_OR_HUNG),
    case("dialogs-confirm.html", MEASURED_OR_HUNG),
    case("dialogs-prompt.html", MEASURED_OR_HUNG),
    case("dialogs-at-once.html", &["PAGE_HUNG", "TIMEOUT"]),
    case("dialogs-element.html", MEASURED_OR_HUNG),
    case("print-loop.html", BUSY),
    case("print-huge.html", OUT_OF_MEMORY),
    short("leave-trap.html", ANY),
    case("downloads-blob.html", OUT_OF_MEMORY),
    case("downloads-attachment.html", OUT_OF_MEMORY),
    case("popups.html", OUT_OF_MEMORY),
    case("popups-busy.html", OUT_OF_MEMORY),
    case("file-choosers.html", MEASURED_ONLY),
    case("permissions.html", MEASURED_ONLY),
    // Crashes and memory.
    case("crash-stack.html", MEASURED_OR_HUNG),
    case("crash-heap.html", OUT_OF_MEMORY),
    case("memory-buffers.html", OUT_OF_MEMORY),
    case("memory-strings.html", OUT_OF_MEMORY),
    case("memory-wasm.html", OUT_OF_MEMORY),
    case("memory-workers.html", OUT_OF_MEMORY),
    case("memory-canvas.html", OUT_OF_MEMORY),
    case("memory-data-images.html", OUT_OF_MEMORY),
    case("memory-blobs.html", OUT_OF_MEMORY),
    case("memory-storage.html", OUT_OF_MEMORY),
    case("memory-console-objects.html", OUT_OF_MEMORY),
    case("memory-console-text.html", FLOODED),
    case("memory-cookies.html", OUT_OF_MEMORY),
    case("memory-elements.html", OUT_OF_MEMORY),
    case("memory-errors.html", OUT_OF_MEMORY),
    case("memory-images-in-page.html", FLOODED),
    case("memory-inline-script.html", OUT_OF_MEMORY),
    case("memory-inline-style.html", OUT_OF_MEMORY),
    case("memory-long-addresses.html", OUT_OF_MEMORY),
    case("memory-messages.html", OUT_OF_MEMORY),
    // Floods.
    case("flood-console.html", OUT_OF_MEMORY),
    case("flood-console-huge.html", FLOODED),
    case("console-large-message.html", TOO_LARGE),
    case("flood-console-large.html", OUT_OF_MEMORY),
    case("flood-console-objects.html", OUT_OF_MEMORY),
    case("flood-exceptions.html", OUT_OF_MEMORY),
    case("flood-issues.html", OUT_OF_MEMORY),
    case("flood-trace.html", FLOODED),
    case("flood-trace-endless.html", FLOODED),
    case("trace-marks.html", FLOODED),
    case("trace-long-marks.html", FLOODED),
    case("trace-timers.html", FLOODED),
    case("flood-history.html", OUT_OF_MEMORY),
    case("flood-requests.html", OUT_OF_MEMORY),
    case("flood-data-requests.html", OUT_OF_MEMORY),
    case("flood-beacons.html", OUT_OF_MEMORY),
    case("flood-websocket.html", OUT_OF_MEMORY),
    case("flood-event-source.html", OUT_OF_MEMORY),
    case("flood-cookies.html", TOO_LARGE),
    case("flood-sockets.html", MEASURED_OR_HUNG),
    // Bodies and media that never end.
    case("fetch-endless.html", &["TOO_LARGE", MEASURED]),
    case("fetch-hanging.html", MEASURED_ONLY),
    case("media-endless.html", &["TOO_LARGE", MEASURED]),
    // Frames and workers.
    case("frames-10000.html", OUT_OF_MEMORY),
    case("frames-nested.html", OUT_OF_MEMORY),
    case("frames-of-other-sites.html", OUT_OF_MEMORY),
    case("frames-crash.html", OUT_OF_MEMORY),
    case("frames-come-and-go.html", OUT_OF_MEMORY),
    case("workers-storm.html", OUT_OF_MEMORY),
    case("workers-nested.html", OUT_OF_MEMORY),
    case("service-worker-loop.html", BUSY),
    // Documents and style sheets.
    case("dom-million.html", OUT_OF_MEMORY),
    case("dom-deep.html", OUT_OF_MEMORY),
    case("dom-text.html", OUT_OF_MEMORY),
    case("dom-attributes.html", OUT_OF_MEMORY),
    case("dom-links.html", OUT_OF_MEMORY),
    case("dom-listeners.html", MEASURED_OR_HUNG),
    case("dom-shadow.html", OUT_OF_MEMORY),
    case("dom-shifts.html", MEASURED_OR_HUNG),
    case("css-variables.html", MEASURED_ONLY),
    case("css-rules.html", OUT_OF_MEMORY),
    case("css-nesting.html", OUT_OF_MEMORY),
    case("css-filters.html", TOO_MUCH_TO_PAINT),
    case("svg-laughs.html", OUT_OF_MEMORY),
    case("svg-filters.html", TOO_MUCH_TO_PAINT),
    case("images-giant.html", TOO_MUCH_TO_PAINT),
    case("fonts-hostile.html", &[MEASURED, "TOO_LARGE"]),
    case("webgl.html", OUT_OF_MEMORY),
    case("webgpu.html", OUT_OF_MEMORY),
    // Pages that do not stay.
    short("reload.html", LOOPS),
    short("refresh-meta.html", LOOPS),
    case("ping.html", LOOPS),
    case("ping-sites.html", LOOPS),
    case("ping-slow.html", ANY),
    case("navigate-never.html", MEASURED_ONLY),
    case(
        "navigate-restlessly.html",
        &["TIMEOUT", MEASURED, "PAGE_HUNG"],
    ),
    case("submit-forms.html", LOOPS),
    case("history-walk.html", ANY),
    case("schemes.html", ANY),
    case("blank-itself.html", ANY),
    case("closes-itself.html", ANY),
    short("to-itself", LOOPS),
    case("to-next", LOOPS),
    case(
        "to-longer",
        &["TOO_MANY_REDIRECTS", "CONNECTION_FAILED", "BLOCKED_TARGET"],
    ),
    case("to-huge", ANY),
    short("to-file", BLOCKED),
    case("to-chrome", BLOCKED),
    case("to-script", NOT_OPENED),
    case("to-data", BLOCKED),
    case("to-view-source", NOT_OPENED),
    case("to-nothing", ANY),
    case("to-garbage", ANY),
    case("to-other-sites", LOOPS),
    case("to-slow", &["TOO_MANY_REDIRECTS", "TIMEOUT"]),
    // Responses that are slow, endless, packed or broken.
    case("hang", LATE),
    short("silent-close", BROKEN),
    case("endless", ANY),
    case("endless-html", &["TOO_LARGE", "PAGE_HUNG"]),
    case("endless-line", &["TOO_LARGE", "TIMEOUT", "PAGE_HUNG"]),
    short("attachment", NOT_HTML),
    case("attachment-endless", NOT_HTML),
    case("drip-body", MEASURED_ONLY),
    case("drip-body-blank", LATE),
    case("body-too-short", ANY),
    case("chunks-broken", BROKEN_LATE),
    case("chunks-endless-extension", ANY),
    case("chunks-of-one", ANY),
    short("gzip-bomb", TOO_LARGE),
    short("gzip-nested", TOO_LARGE),
    short("zstd-bomb", TOO_LARGE),
    short("brotli-bomb", TOO_LARGE),
    case("gzip-broken", BROKEN_LATE),
    case("gzip-many-times", ANY),
    case("encoding-unknown", ANY),
    case("resources-packed", TOO_LARGE),
    case("resources-many", ANY),
    case("xml-entities", ANY),
    short("xml-deep", &["PAGE_CRASHED", MEASURED]),
    case("html-deep", OUT_OF_MEMORY),
    case("html-attributes", OUT_OF_MEMORY),
    case("html-nul", MEASURED_ONLY),
    case("html-templates", OUT_OF_MEMORY),
    case("sniffed", NOT_HTML),
    case("pdf", NOT_HTML),
    case("video", NOT_HTML),
    case("charset", ANY),
    case("multipart", ANY),
    case("password", ANY),
    case("password-of-proxy", ANY),
    case("passwords-of-resources", MEASURED_ONLY),
    short("not-http", BROKEN),
    case("status-none", ANY),
    short("status-204", NOT_HTML),
    case("status-205", ANY),
    case("status-304", ANY),
    case("status-408", ANY),
    case("continue-endless", ANY),
    case("hints-endless", ANY),
    case("hints-many", MEASURED_ONLY),
    case("switch-protocols", BROKEN),
    short("head-endless", BROKEN),
    case("head-endless-line", BROKEN),
    case("head-drip", LATE),
    case("head-drip-status", BROKEN_LATE),
    case("head-many", ANY),
    case("head-cookies", ANY),
    case("head-policy", ANY),
    case("head-policies", ANY),
    case("head-links", ANY),
    case("head-link-preloads", ANY),
    case("head-timing", ANY),
    case("head-reports", ANY),
    case("head-refresh", LOOPS),
    case("head-refresh-elsewhere", ANY),
    case("head-clear-site-data", ANY),
    case("head-lengths", ANY),
    case("head-length-negative", ANY),
    case("head-length-huge", ANY),
    case("head-control-characters", ANY),
    case("head-source-map", ANY),
    // Texts that Plumbline itself parses: robots.txt, manifests, texts for agents, source maps,
    // links.
    at(40, "readers.html", MEASURED_ONLY),
    at(39, "small", MEASURED_ONLY),
    at(38, "small", MEASURED_ONLY),
    at(37, "small", MEASURED_ONLY),
    at(36, "small", MEASURED_ONLY),
    at(35, "small", MEASURED_ONLY),
    at(34, "small", MEASURED_ONLY),
    at(33, "small", MEASURED_ONLY),
    case("scripts-many.html", OUT_OF_MEMORY),
    case("scripts-for-readers.html", MEASURED_ONLY),
];
