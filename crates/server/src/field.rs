//! The source of field data for pages; the implementation is supplied by the program.

use async_trait::async_trait;
use plumbline_catalog::FormFactor;
use plumbline_model::field::{FieldHistory, FieldReason};

/// A source of field data, which is what real visitors of a page experienced.
#[async_trait]
pub trait FieldSource: Send + Sync + 'static {
    /// Returns the field data of a page over time, or the reason why there is none, within a few
    /// seconds.
    async fn history(
        &self,
        url: &str,
        form_factor: FormFactor,
    ) -> Result<FieldHistory, FieldReason>;

    /// Returns the number of queries since the process started, by outcome.
    fn counts(&self) -> Vec<(&'static str, u64)>;
}
