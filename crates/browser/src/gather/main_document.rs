//! How the main document begins, as it came.

use std::future::Future;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::{Gathered, gathered, missing};
use crate::visit::Caller;

/// More than the checks of document type and charset look at.
const CHARS: usize = 4096;
const DEADLINE: Duration = Duration::from_secs(5);

/// Asked for at once.
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
        let answer = answer.await.map_err(|error| missing(&error))?;
        if answer.base64_encoded {
            return Err("the document is no text".to_owned());
        }
        let start: String = answer.body.chars().take(CHARS).collect();
        gathered(&json!({"start": start}))
    }
}
