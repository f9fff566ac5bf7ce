//! A file fetched for the page but not by it, over the same link.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::protocol::CallError;
use crate::visit::Caller;

pub(super) struct Fetched {
    pub status: Option<u16>,
    /// Only of an answer that succeeded.
    pub text: Option<String>,
    /// Why there was no answer.
    pub error: Option<String>,
}

/// Within the deadline and the size, or an error that says so.
pub(super) async fn fetch(
    page: &Caller,
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
    page: &Caller,
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

async fn read(page: &Caller, stream: &str, max_bytes: usize) -> Result<String, CallError> {
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
        let part: Part = page.call("IO.read", json!({"handle": stream})).await?;
        match part.base64_encoded {
            true => bytes.extend(from_base64(&part.data)),
            false => bytes.extend(part.data.as_bytes()),
        }
        if part.eof || bytes.len() > max_bytes {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
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
