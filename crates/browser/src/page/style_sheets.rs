use serde::Deserialize;

use crate::protocol::ProtocolEvent;

const MAX_SHEETS: usize = 5_000;

/// Style sheets that the browser reports while their inspection is enabled.
#[derive(Default)]
pub(crate) struct StyleSheets(Vec<StyleSheetHeader>);

#[derive(Deserialize)]
struct StyleSheetAdded {
    header: StyleSheetHeader,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StyleSheetHeader {
    pub(crate) style_sheet_id: String,
    #[serde(default, rename = "sourceURL")]
    pub(crate) source_url: String,
    #[serde(default)]
    pub(crate) is_inline: bool,
    #[serde(default)]
    pub(crate) length: f64,
}

impl StyleSheets {
    /// Records a style sheet and returns how many bytes of the event are kept.
    pub(super) fn record(&mut self, event: &ProtocolEvent) -> usize {
        match event.read() {
            Some(StyleSheetAdded { header }) if self.0.len() < MAX_SHEETS => {
                let texts = header.source_url.len();
                self.0.push(header);
                texts + size_of::<StyleSheetHeader>()
            }
            _ => 0,
        }
    }

    pub(crate) fn into_vec(self) -> Vec<StyleSheetHeader> {
        self.0
    }
}
