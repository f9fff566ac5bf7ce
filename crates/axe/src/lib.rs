//! axe-core, the accessibility engine that runs in the audited page, embedded at build time.
//!
//! It is not ours: MPL-2.0, unmodified, see THIRD_PARTY.md. The version is pinned in package.json,
//! its checksum in package-lock.json.

/// The whole library, minified, to be evaluated in the page before `axe.run`.
pub const AXE_SOURCE: &str = include_str!(concat!(env!("OUT_DIR"), "/axe.min.js"));

pub const VERSION: &str = env!("AXE_VERSION");

/// The licence of axe-core (MPL-2.0), to be shown wherever the binary goes.
pub const LICENSE: &str = include_str!(concat!(env!("OUT_DIR"), "/LICENSE"));

/// The licences of what axe-core itself includes.
pub const LICENSE_OF_PARTS: &str = include_str!(concat!(env!("OUT_DIR"), "/LICENSE-3RD-PARTY.txt"));

/// Where the source of this very version can be had, as the MPL asks to say.
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
        assert!(include_str!("../package-lock.json").contains(&format!("\"{VERSION}\"")));
    }

    #[test]
    fn the_licence_travels_with_it() {
        assert!(LICENSE.contains("Mozilla Public License"));
        assert!(AXE_SOURCE.starts_with("/*!"), "its own notice is kept");
        assert!(!LICENSE_OF_PARTS.is_empty());
    }

    #[test]
    fn the_notice_names_the_version_that_is_embedded() {
        assert!(include_str!("../THIRD_PARTY.md").contains(VERSION));
    }

    #[test]
    fn the_lock_file_names_no_address() {
        assert!(!include_str!("../package-lock.json").contains("\"resolved\""));
    }
}
