//! Where the pages get field data from: how it is asked for is not known here.

use async_trait::async_trait;
use plumbline_catalog::FormFactor;
use plumbline_report::html::{FieldHistory, FieldReason};

#[async_trait]
pub trait FieldSource: Send + Sync + 'static {
    /// What visitors of a page met over time. Answers within a few seconds, if only with a reason.
    async fn history(
        &self,
        url: &str,
        form_factor: FormFactor,
    ) -> Result<FieldHistory, FieldReason>;

    /// Questions since the process began, by what became of them.
    fn counts(&self) -> Vec<(&'static str, u64)>;
}
