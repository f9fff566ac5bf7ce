//! Third-party software and data from npm, embedded at build time.
//!
//! The versions are pinned in package.json and their checksums in package-lock.json; see
//! THIRD_PARTY.md for the licences.
#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_macros,
        clippy::disallowed_methods,
        clippy::disallowed_types
    )
)]

pub mod axe;
pub mod entities;
pub mod features;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_versions_are_those_of_the_lock_file_and_of_the_notice() {
        for version in [axe::VERSION, entities::VERSION, features::VERSION] {
            assert!(include_str!("../package-lock.json").contains(&format!("\"{version}\"")));
            assert!(include_str!("../THIRD_PARTY.md").contains(version));
        }
    }

    #[test]
    fn the_lock_file_names_no_registry() {
        assert!(!include_str!("../package-lock.json").contains("\"resolved\""));
    }
}
