//! The beginning of the main document's source, and its content without scripts.

use std::future::Future;
use std::time::Duration;

use plumbline_source::ServedContent;
use serde::Deserialize;
use serde_json::json;

use super::{Gathered, error_text, to_artifact};
use crate::page::Caller;

/// Number of characters, more than the checks of document type and charset need.
const CHARS: usize = 4096;
const DEADLINE: Duration = Duration::from_secs(5);

/// Requests the document immediately.
pub(super) fn gather(page: &Caller, request: &str) -> impl Future<Output = Gathered> + use<> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body {
        body: String,
        #[serde(default)]
        base64_encoded: bool,
    }
    let request = json!({"requestId": request});
    let answer = page.call_within::<Body>(DEADLINE, "Network.getResponseBody", request);
    async move {
        let answer = answer.await.map_err(|error| error_text(&error))?;
        if answer.base64_encoded {
            return Err("the document is no text".to_owned());
        }
        let start: String = answer.body.chars().take(CHARS).collect();
        let content = ServedContent::of(&answer.body);
        to_artifact(&json!({
            "start": start,
            "content": {
                "text": content.text,
                "isCut": content.is_cut,
                "elements": content.elements,
            },
        }))
    }
}
