//! The agentic browsing checks: whether AI agents can find, read and operate the page.

pub mod agent_accessibility_tree;
pub mod ard_schema;
mod catalog_formats;
mod catalog_rules;
pub mod cumulative_layout_shift;
pub mod llms_txt;
pub mod webmcp_form_coverage;
pub mod webmcp_registered_tools;
pub mod webmcp_schema_validity;

use crate::checks::Outcome;

/// Returns the outcome of a check of WebMCP in a browser that does not have it.
fn without_web_mcp() -> Outcome {
    Outcome::not_applicable()
        .with_summary("The browser has no WebMCP: in Chromium it is behind a flag.")
}
