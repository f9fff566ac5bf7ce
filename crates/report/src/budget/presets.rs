//! The presets of Lighthouse CI (@lhci/utils 0.15.1, src/presets).

use super::assertion::{Assertion, Level};

/// The names of the presets.
pub(super) const NAMES: [&str; 3] = [
    "lighthouse:all",
    "lighthouse:recommended",
    "lighthouse:no-pwa",
];

/// The ids of all audits.
const ALL: &str = "
    accesskeys aria-allowed-attr aria-allowed-role aria-command-name aria-conditional-attr aria-deprecated-role
    aria-dialog-name aria-hidden-body aria-hidden-focus aria-input-field-name aria-meter-name
    aria-progressbar-name aria-prohibited-attr aria-required-attr aria-required-children aria-required-parent
    aria-roles aria-text aria-toggle-field-name aria-tooltip-name aria-treeitem-name aria-valid-attr
    aria-valid-attr-value bf-cache bootup-time button-name bypass cache-insight canonical charset
    clickjacking-mitigation cls-culprits-insight color-contrast crawlable-anchors csp-xss cumulative-layout-shift
    definition-list deprecations dlitem doctype document-latency-insight document-title dom-size
    dom-size-insight duplicate-id-aria duplicated-javascript duplicated-javascript-insight
    efficient-animated-content empty-heading errors-in-console first-contentful-paint first-meaningful-paint
    font-display font-display-insight font-size forced-reflow-insight form-field-multiple-labels frame-title
    geolocation-on-start has-hsts heading-order hreflang html-has-lang html-lang-valid html-xml-lang-mismatch
    http-status-code identical-links-same-purpose image-alt image-aspect-ratio image-delivery-insight
    image-redundant-alt image-size-responsive input-button-name input-image-alt inspector-issues
    interaction-to-next-paint-insight interactive is-crawlable is-on-https label label-content-name-mismatch
    landmark-one-main largest-contentful-paint lcp-discovery-insight lcp-lazy-loaded lcp-phases-insight
    legacy-javascript legacy-javascript-insight link-in-text-block link-name link-text list listitem long-tasks
    mainthread-work-breakdown max-potential-fid meta-description meta-refresh meta-viewport modern-http-insight
    modern-image-formats network-dependency-tree-insight no-document-write non-composited-animations
    notification-on-start object-alt offscreen-images origin-isolation paste-preventing-inputs
    prioritize-lcp-image redirects redirects-http render-blocking-insight render-blocking-resources robots-txt
    select-name server-response-time skip-link speed-index tabindex table-duplicate-name table-fake-caption
    target-size td-has-header td-headers-attr th-has-data-cells third-parties-insight third-party-cookies
    third-party-facades total-byte-weight unminified-css unminified-javascript unsized-images unused-css-rules
    unused-javascript uses-http2 uses-long-cache-ttl uses-optimized-images uses-passive-event-listeners
    uses-rel-preconnect uses-responsive-images uses-text-compression valid-lang valid-source-maps video-caption
    viewport viewport-insight
";

/// The audits of `recommended` with level `warn`.
const WARN: &str = "
    bootup-time cumulative-layout-shift dom-size dom-size-insight first-contentful-paint first-meaningful-paint
    interactive is-on-https largest-contentful-paint mainthread-work-breakdown max-potential-fid
    server-response-time speed-index
";
/// The audits of `recommended` with level `warn` if they list any item.
const WARN_LISTED: &str = "
    cache-insight duplicated-javascript legacy-javascript modern-image-formats render-blocking-insight
    render-blocking-resources uses-long-cache-ttl
";
/// The audits of `recommended` with level `error` if they list any item.
const ERROR_LISTED: &str = "
    efficient-animated-content offscreen-images unminified-css unminified-javascript unused-css-rules
    unused-javascript uses-optimized-images uses-rel-preconnect uses-responsive-images uses-text-compression
";
/// The audits that `recommended` leaves out.
const OFF: &str = "long-tasks uses-http2";

/// The audits that `no-pwa` leaves out in addition.
const OFF_NO_PWA: &str = "is-on-https viewport";

/// Returns the assertions of a preset.
pub(super) fn from_name(name: &str) -> Option<Vec<Assertion>> {
    let strictness = NAMES.iter().position(|preset| *preset == name)?;
    let is_in = |list: &str, id: &str| list.split_whitespace().any(|other| other == id);
    let assertions = ALL.split_whitespace().map(|id| {
        let (level, max_length) = match strictness {
            0 => (Level::Error, None),
            2 if is_in(OFF_NO_PWA, id) => (Level::Off, None),
            _ if is_in(WARN, id) => (Level::Warn, None),
            _ if is_in(WARN_LISTED, id) => (Level::Warn, Some(0.0)),
            _ if is_in(ERROR_LISTED, id) => (Level::Error, Some(0.0)),
            _ if is_in(OFF, id) => (Level::Off, None),
            _ => (Level::Error, None),
        };
        Assertion {
            max_length,
            from_preset: true,
            ..Assertion::of(id, level)
        }
    });
    Some(assertions.collect())
}
