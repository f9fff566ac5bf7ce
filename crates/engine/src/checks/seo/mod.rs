//! The SEO checks: whether search engines can find, read and index the page.

pub mod canonical;
pub mod crawlable_anchors;
pub(crate) mod date;
pub mod hreflang;
pub mod http_status_code;
pub mod is_crawlable;
mod language;
pub mod link_text;
mod link_words;
pub mod meta_description;
mod robots_rules;
pub mod robots_txt;
