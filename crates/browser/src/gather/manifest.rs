//! The web app manifest, and Chromium's installability errors.

use std::future::Future;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Gathered, null_artifact, to_artifact};
use crate::page::Caller;

/// Timeout of the manifest, as in Lighthouse 11.7.1 (core/gather/gatherers/web-app-manifest.js). A
/// later one counts as missing, so that a busy host must not make it late.
const DEADLINE: Duration = Duration::from_secs(10);

/// Requests the manifest immediately.
pub(super) fn gather(page: &Caller) -> impl Future<Output = Gathered> + use<> {
    #[derive(Deserialize)]
    struct Manifest {
        #[serde(default)]
        url: String,
        #[serde(default)]
        data: Option<String>,
    }
    let answer = page.call_within::<Manifest>(DEADLINE, "Page.getAppManifest", json!({}));
    async move {
        match answer.await {
            Ok(Manifest {
                url,
                data: Some(data),
            }) if !data.is_empty() => to_artifact(&json!({"url": url, "data": data})),
            Ok(_) | Err(_) => null_artifact(),
        }
    }
}

/// Requests the installability errors immediately.
pub(super) fn installability(page: &Caller) -> impl Future<Output = Gathered> + use<> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Errors {
        installability_errors: Box<RawValue>,
    }
    let method = "Page.getInstallabilityErrors";
    let answer = page.call_within::<Errors>(DEADLINE, method, json!({}));
    async move {
        match answer.await {
            Ok(errors) => Ok(errors.installability_errors),
            Err(_) => to_artifact(&json!([{"errorId": "protocol-timeout"}])),
        }
    }
}
