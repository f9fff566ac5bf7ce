//! What costs time: Lighthouse's insights and diagnostics. All weigh nothing; the score of the category is
//! that of the metrics.

pub mod cache;
pub mod document_latency;
pub mod font_display;
pub mod image_delivery;
pub mod modern_http;
pub mod network_dependency_tree;
pub mod redirects;
pub mod render_blocking;
pub mod resource_summary;
pub mod server_response_time;
pub mod third_parties;
pub mod total_byte_weight;
