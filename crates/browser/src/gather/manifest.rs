//! The web app manifest, and what Chromium says about installing the page.

use std::future::Future;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Gathered, gathered, nothing};
use crate::visit::Caller;

/// Lighthouse 11.7.1 waits as long for the manifest (core/gather/gatherers/web-app-manifest.js). One that comes later counts as none,
/// so a busy host must not make it late.
const DEADLINE: Duration = Duration::from_secs(10);

/// Asked for at once.
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
            }) if !data.is_empty() => gathered(&json!({"url": url, "data": data})),
            Ok(_) | Err(_) => nothing(),
        }
    }
}

/// Asked for at once.
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
            Err(_) => gathered(&json!([{"errorId": "protocol-timeout"}])),
        }
    }
}
