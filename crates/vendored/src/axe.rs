//! axe-core, the accessibility engine that runs in the audited page.
//!
//! It is embedded unmodified under the MPL-2.0.

/// The whole library, minified, to be evaluated in the page before `axe.run`.
pub const AXE_SOURCE: &str = include_str!(concat!(env!("OUT_DIR"), "/axe.min.js"));

pub const VERSION: &str = env!("AXE_VERSION");

/// The licence of axe-core (MPL-2.0), to be distributed with the binary.
pub const LICENSE: &str = include_str!(concat!(env!("OUT_DIR"), "/axe-license.txt"));

/// The licences of the libraries that axe-core includes.
pub const LICENSE_OF_PARTS: &str =
    include_str!(concat!(env!("OUT_DIR"), "/axe-bundled-licenses.txt"));

/// URL of the source code of this version, which the MPL requires to be named.
pub const SOURCE_ADDRESS: &str = concat!(
    "https://github.com/dequelabs/axe-core/tree/v",
    env!("AXE_VERSION")
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_library_is_the_pinned_version() {
        assert!(AXE_SOURCE.contains(&format!("axe v{VERSION}")));
    }

    #[test]
    fn the_licence_is_embedded_too() {
        assert!(LICENSE.contains("Mozilla Public License"));
        assert!(AXE_SOURCE.starts_with("/*!"), "its own notice is kept");
        assert!(!LICENSE_OF_PARTS.is_empty());
    }
}
