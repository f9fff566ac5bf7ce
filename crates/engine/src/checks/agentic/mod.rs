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
