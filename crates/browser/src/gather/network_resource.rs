//! A file fetched for the page but not by it, over the same link.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::protocol::CallError;
use crate::visit::Page;

pub(super) struct Fetched {
    pub status: Option<u16>,
    /// Only of an answer that succeeded.
    pub text: Option<String>,
    /// Why there was no answer.
    pub error: Option<String>,
}

/// Within the deadline and the size, or an error that says so.
pub(super) async fn fetch(
    page: &mut Page<'_>,
    url: &str,
    deadline: Duration,
    max_bytes: usize,
) -> Fetched {
    let fetching = load(page, url, deadline, max_bytes);
    match tokio::time::timeout(deadline, fetching).await {
        Ok(Ok(fetched)) => fetched,
        Ok(Err(error)) => failed(error.to_string()),
        Err(_) => failed("it took too long".to_owned()),
    }
}

fn failed(error: String) -> Fetched {
    Fetched {
        status: None,
        text: None,
        error: Some(error),
    }
}

#[derive(Deserialize)]
struct Loaded {
    resource: Resource,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    success: bool,
    #[serde(default)]
    http_status_code: Option<f64>,
    #[serde(default)]
    net_error_name: Option<String>,
    #[serde(default)]
    stream: Option<String>,
}

async fn load(
    page: &mut Page<'_>,
    url: &str,
    deadline: Duration,
    max_bytes: usize,
) -> Result<Fetched, CallError> {
    let params = json!({
        "frameId": page.main_frame(),
        "url": url,
        "options": {"disableCache": true, "includeCredentials": true},
    });
    let Loaded { resource } = page
        .call_within(deadline, "Network.loadNetworkResource", params)
        .await?;
    let status = resource.http_status_code.map(|status| status as u16);
    let succeeded = resource.success && status.is_some_and(|status| (200..300).contains(&status));
    let text = match (&resource.stream, succeeded) {
        (Some(stream), true) => Some(read(page, stream, max_bytes).await?),
        _ => None,
    };
    if let Some(stream) = resource.stream {
        page.send("IO.close", json!({"handle": stream}));
    }
    let error = match status {
        Some(_) => None,
        None => Some(
            resource
                .net_error_name
                .unwrap_or_else(|| "no answer".to_owned()),
        ),
    };
    Ok(Fetched {
        status,
        text,
        error,
    })
}

async fn read(page: &mut Page<'_>, stream: &str, max_bytes: usize) -> Result<String, CallError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Part {
        data: String,
        #[serde(default)]
        base64_encoded: bool,
        eof: bool,
    }
    let mut text = String::new();
    loop {
        let part: Part = page.call("IO.read", json!({"handle": stream})).await?;
        if part.base64_encoded {
            text.push_str(&from_base64(page, &part.data).await?);
        } else {
            text.push_str(&part.data);
        }
        if part.eof || text.len() > max_bytes {
            return Ok(text);
        }
    }
}

/// The browser itself decodes best: the text is in no more danger there than where it came from.
async fn from_base64(page: &mut Page<'_>, data: &str) -> Result<String, CallError> {
    let bytes = "Uint8Array.from(atob(text), c => c.charCodeAt(0))";
    let script = format!(
        "((text) => new TextDecoder().decode({bytes}))({})",
        Value::from(data)
    );
    page.evaluate(Duration::from_secs(2), &script).await
}
