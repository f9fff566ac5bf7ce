//! Checks of connections to the internet, which fail on purpose on some machines: they only warn.

use std::time::Duration;

use plumbline_field::ApiKey;
use plumbline_http::{Bytes, ClientBuilder, Full, HttpClient, Limits, Request};
use tokio::net::lookup_host;
use tokio::time::timeout;
use url::Url;

use super::{Finding, failure, warning};

/// The deadline of each check.
const DEADLINE: Duration = Duration::from_secs(4);
/// The length and the beginning of API keys of Google Cloud, which Google does not promise.
const KEY_CHARS: usize = 39;
const KEY_PREFIX: &str = "AIza";
/// The largest response that is read.
const MAX_BYTES: usize = 1 << 20;

/// Resolves the host of a URL and requests the page.
pub(super) async fn connections(url: &Url) -> Vec<Finding> {
    let host = url.host_str().unwrap_or_default();
    let lookup = lookup_host((host, url.port_or_known_default().unwrap_or(443)));
    let result = match timeout(DEADLINE, lookup).await {
        Ok(Ok(mut addresses)) => addresses.next().ok_or_else(|| "no address".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    };
    if let Err(error) = result {
        let advice = "check the name servers in /etc/resolv.conf: pages on the internet cannot be \
                      audited";
        let scheme = scheme(url);
        return vec![
            warning(format!("DNS: {host}: {error}"), advice),
            warning(
                format!("{scheme}: not checked, because {host} was not found"),
                "repeat the checks when names can be resolved, or name another page with --check-url",
            ),
        ];
    }
    vec![Finding::Ok(format!("DNS: {host} found")), page(url).await]
}

/// Returns the name of the protocol.
fn scheme(url: &Url) -> String {
    url.scheme().to_uppercase()
}

async fn page(url: &Url) -> Finding {
    let scheme = scheme(url);
    let client: HttpClient = ClientBuilder::new(DEADLINE).build();
    let request = Request::get(url.as_str()).body(Full::<Bytes>::default());
    let request = match request {
        Ok(request) => request,
        Err(error) => return failure(format!("{scheme}: {error}"), "check --check-url"),
    };
    match client
        .send(request, Limits::total(DEADLINE, MAX_BYTES))
        .await
    {
        Ok(response) => {
            let status = response.status();
            let text = format!("{scheme}: {url} responds with status {status}");
            if status >= 400 {
                let advice = "check that no proxy answers in place of the server, or name another \
                              page with --check-url";
                return warning(text, advice);
            }
            Finding::Ok(text)
        }
        Err(error) => warning(
            format!("{scheme}: {url}: {error}"),
            "allow outgoing connections and trust the certificate authorities in use: pages on the \
             internet, webhooks and field data need them",
        ),
    }
}

/// Returns whether a key looks like those that Google Cloud creates.
fn has_form_of_google(key: &str) -> bool {
    let key = key.trim();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    key.len() == KEY_CHARS && key.starts_with(KEY_PREFIX) && key.chars().all(is_allowed)
}

/// Checks the key of the Chrome UX Report, without a request.
pub(super) fn crux_key(key: Option<&str>) -> Finding {
    match key.map(ApiKey::new) {
        None => Finding::Ok("Field data: off, because no --crux-key is set".to_owned()),
        Some(Ok(_)) if !has_form_of_google(key.unwrap_or_default()) => warning(
            "Field data: on, but the key of --crux-key does not have the form of Google's keys",
            format!(
                "check that it is complete: they have {KEY_CHARS} letters, digits, `-` and `_`, and \
                 begin with {KEY_PREFIX}"
            ),
        ),
        Some(Ok(_)) => Finding::Ok("Field data: on".to_owned()),
        Some(Err(_)) => failure(
            "Field data: the key of --crux-key is not valid",
            "use the key as Google Cloud shows it, without spaces",
        ),
    }
}
