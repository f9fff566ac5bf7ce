//! The best-practices checks: security, correctness and user experience.

pub mod baseline;
pub mod charset;
pub mod clickjacking_mitigation;
mod csp;
mod csp_findings;
pub mod csp_xss;
pub mod deprecations;
pub mod doctype;
pub mod errors_in_console;
pub mod geolocation_on_start;
pub mod has_hsts;
pub mod image_aspect_ratio;
pub mod image_size_responsive;
pub mod inspector_issues;
pub mod is_on_https;
pub mod js_libraries;
pub mod notification_on_start;
pub mod origin_isolation;
pub mod paste_preventing_inputs;
mod permission;
pub mod redirects_http;
pub mod third_party_cookies;
pub mod trusted_types_xss;
pub mod valid_source_maps;
