//! Whether the page is an app that can be installed, as Lighthouse 11.7 judged it, the last with
//! this category.

pub mod content_width;
pub mod installable_manifest;
pub mod maskable_icon;
pub mod splash_screen;
pub mod themed_omnibox;
pub mod viewport;
mod viewport_content;
