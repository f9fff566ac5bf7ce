//! The PWA checks of Lighthouse 11.7, the last version with this category.

pub mod content_width;
pub mod installable_manifest;
pub mod maskable_icon;
pub mod splash_screen;
pub mod themed_omnibox;
pub mod viewport;
mod viewport_content;
