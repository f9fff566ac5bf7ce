//! Fetches a file for the page over the same link.

use std::time::Duration;

use base64::engine::general_purpose::{self, GeneralPurpose};
use base64::{Engine, alphabet};
use serde::Deserialize;
use serde_json::json;

use crate::page::Caller;
use crate::protocol::CallError;

/// The number of bytes of a file that are requested at a time.
const PART_BYTES: usize = 1 << 20;

/// The response of a server. The browser holds the content until it is read or closed.
pub(super) struct LoadedFile {
    pub status: Option<u16>,
    /// The reason why there was no response.
    pub error: Option<String>,
    /// The handle of the content of a successful response.
    stream: Option<String>,
}

/// The content that was read of a file.
pub(super) struct Text {
    pub text: String,
    /// Whether the file is longer than the limit.
    pub is_cut: bool,
}

/// Lets the browser load a file. Errors of the protocol are returned like errors of the server.
pub(super) async fn load(page: &Caller, url: &str, deadline: Duration) -> LoadedFile {
    #[derive(Deserialize)]
    struct Response {
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
    let params = json!({
        "frameId": page.main_frame(),
        "url": url,
        "options": {"disableCache": true, "includeCredentials": true},
    });
    let method = "Network.loadNetworkResource";
    let resource = match page.call_within::<Response>(deadline, method, params).await {
        Ok(response) => response.resource,
        Err(error) => {
            let error = match error {
                CallError::TimedOut { .. } => "it took too long".to_owned(),
                error => error.to_string(),
            };
            return LoadedFile {
                status: None,
                error: Some(error),
                stream: None,
            };
        }
    };
    let status = resource.http_status_code.map(|status| status as u16);
    let succeeded = resource.success && status.is_some_and(|status| (200..300).contains(&status));
    let mut stream = resource.stream;
    if !succeeded && let Some(stream) = stream.take() {
        page.send("IO.close", json!({"handle": stream}));
    }
    LoadedFile {
        status,
        stream,
        error: match status {
            Some(_) => None,
            None => Some(
                resource
                    .net_error_name
                    .unwrap_or_else(|| "no response".to_owned()),
            ),
        },
    }
}

impl LoadedFile {
    /// Reads up to `max_bytes` of the file; the rest is never sent to us. Returns `None` if there
    /// is no content.
    pub(super) async fn read(
        &mut self,
        page: &Caller,
        deadline: Duration,
        max_bytes: usize,
    ) -> Option<Result<Text, String>> {
        let stream = self.stream.take()?;
        let result = tokio::time::timeout(deadline, read(page, &stream, max_bytes)).await;
        page.send("IO.close", json!({"handle": stream}));
        Some(match result {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("it took too long".to_owned()),
        })
    }
}

async fn read(page: &Caller, stream: &str, max_bytes: usize) -> Result<Text, CallError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Part {
        data: String,
        #[serde(default)]
        base64_encoded: bool,
        eof: bool,
    }
    let mut bytes = Vec::new();
    loop {
        let params = json!({"handle": stream, "size": PART_BYTES});
        let part: Part = page.call("IO.read", params).await?;
        if part.base64_encoded {
            // The browser writes valid Base64.
            bytes.extend(from_base64(&part.data).unwrap_or_default());
        } else {
            bytes.extend(part.data.as_bytes());
        }
        if part.eof || bytes.len() > max_bytes {
            break;
        }
    }
    let is_cut = bytes.len() > max_bytes;
    bytes.truncate(max_bytes);
    // The bytes are copied only if they are not UTF-8.
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(Text { text, is_cut })
}

/// Decodes Base64 with or without padding, and ignores white space, as browsers do (Infra
/// Standard, forgiving-base64 decode).
pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text: String = text.split_ascii_whitespace().collect();
    const FORGIVING: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        general_purpose::PAD_INDIFFERENT.with_decode_allow_trailing_bits(true),
    );
    FORGIVING.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_with_and_without_padding() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9vYmFy", b"foobar"),
            ("+/+/", &[0xfb, 0xff, 0xbf]),
            ("Zm9v\nYmFy", b"foobar"),
        ] {
            assert_eq!(from_base64(text).as_deref(), Some(bytes), "{text}");
        }
    }
}
