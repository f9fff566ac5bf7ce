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
        return vec![warning(format!("DNS: {host}: {error}"), advice)];
    }
    vec![Finding::Ok(format!("DNS: {host} found")), page(url).await]
}

async fn page(url: &Url) -> Finding {
    let scheme = url.scheme().to_uppercase();
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
        Ok(response) => Finding::Ok(format!(
            "{scheme}: {url} responds with status {}",
            response.status()
        )),
        Err(error) => warning(
            format!("{scheme}: {url}: {error}"),
            "allow outgoing connections and trust the certificate authorities in use: pages on the \
             internet, webhooks and field data need them",
        ),
    }
}

/// Checks the key of the Chrome UX Report, without a request.
pub(super) fn crux_key(key: Option<&str>) -> Finding {
    match key.map(ApiKey::new) {
        None => Finding::Ok("Field data: off, because no --crux-key is set".to_owned()),
        Some(Ok(_)) => Finding::Ok("Field data: on".to_owned()),
        Some(Err(_)) => failure(
            "Field data: the key of --crux-key is not valid",
            "use the key as Google Cloud shows it, without spaces",
        ),
    }
}
