//! A file fetched for the page but not by it, over the same link.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::protocol::CallError;
use crate::visit::Caller;

/// How much of a file is asked for at a time.
const PART_BYTES: usize = 1 << 20;

/// What the server answered. The browser has the file; we read it when we want it.
pub(super) struct Loaded {
    pub status: Option<u16>,
    /// Why there was no answer.
    pub error: Option<String>,
    /// Only of an answer that succeeded.
    stream: Option<String>,
}

/// What was read of a file.
pub(super) struct Text {
    pub text: String,
    /// There was more than was asked for.
    pub is_cut: bool,
}

/// Lets the browser load a file. An error of ours is told like one of the server.
pub(super) async fn load(page: &Caller, url: &str, deadline: Duration) -> Loaded {
    #[derive(Deserialize)]
    struct Answer {
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
    let resource = match page.call_within::<Answer>(deadline, method, params).await {
        Ok(answer) => answer.resource,
        Err(error) => {
            let error = match error {
                CallError::Late { .. } => "it took too long".to_owned(),
                error => error.to_string(),
            };
            return Loaded {
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
    Loaded {
        status,
        stream,
        error: match status {
            Some(_) => None,
            None => Some(
                resource
                    .net_error_name
                    .unwrap_or_else(|| "no answer".to_owned()),
            ),
        },
    }
}

impl Loaded {
    /// Up to `max_bytes` of the file; none where there is no file. What comes after that is never sent to us.
    pub(super) async fn read(
        &mut self,
        page: &Caller,
        deadline: Duration,
        max_bytes: usize,
    ) -> Option<Result<Text, String>> {
        let stream = self.stream.take()?;
        let reading = tokio::time::timeout(deadline, read(page, &stream, max_bytes)).await;
        page.send("IO.close", json!({"handle": stream}));
        Some(match reading {
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
            bytes.extend(from_base64(&part.data));
        } else {
            bytes.extend(part.data.as_bytes());
        }
        if part.eof || bytes.len() > max_bytes {
            break;
        }
    }
    let is_cut = bytes.len() > max_bytes;
    bytes.truncate(max_bytes);
    // Copied only where it is not UTF-8.
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(Text { text, is_cut })
}

/// As the browser writes it: no line ends, and nothing but padding that is no digit (RFC 4648,
/// section 4).
pub(super) fn from_base64(text: &str) -> Vec<u8> {
    let digits = text.bytes().filter_map(|letter| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    });
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0_u32, 0);
    for digit in digits {
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_and_without_padding() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9vYmFy", b"foobar"),
            ("+/+/", &[0xfb, 0xff, 0xbf]),
        ] {
            assert_eq!(from_base64(text), bytes, "{text}");
        }
    }
}
