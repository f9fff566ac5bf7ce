//! Field data for audits: requested when an audit is leased, added to the report when it is
//! finished.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use plumbline_catalog::{Catalog, FormFactor};
use plumbline_field::{
    CruxClient, HttpResponse, HttpTransport, MAX_RESPONSE_BYTES, PendingQuery, PrivacyPolicy,
    Quota, TransportError,
};
use plumbline_http::{Bytes, ClientBuilder, HttpClient, HttpError, Limits, Request, header};
use plumbline_link::{Guard, Resolver, SystemResolver};
use plumbline_model::field::{FieldHistory, FieldReason};
use plumbline_model::report::Report;
use plumbline_server::{AuditObserver, FieldSource};
use plumbline_store::Lease;
use tokio::time::timeout;
use url::{Host, Url};

use crate::clock::now;
use crate::settings::FieldSettings;

/// The time limit for the field data of a history page.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for a response. Callers wait less; this only ends abandoned requests.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The time limit for a DNS lookup.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
/// The age at which queries of audits that were not finished here are dropped.
const MAX_QUERY_AGE: Duration = Duration::from_secs(60 * 60);

/// The field data of running audits. Without an API key there is no dataset, and nothing is sent.
pub struct FieldData {
    dataset: Option<CruxClient>,
    catalog: Arc<Catalog>,
    /// The queries of running audits, by tracking id.
    queries: Mutex<HashMap<String, (Instant, PendingQuery)>>,
}

impl FieldData {
    pub fn new(settings: FieldSettings, catalog: Arc<Catalog>, quota: Arc<dyn Quota>) -> Self {
        let dataset = settings.key.map(|key| {
            let policy = PublicHostsOnly {
                disclosed: Guard::new(settings.disclosed).denying(settings.denied.clone()),
                allowed: Guard::new(settings.allowed),
                public: Guard::public_only().denying(settings.denied),
            };
            CruxClient::new(
                settings.base,
                key,
                Arc::new(FieldTransport::new()),
                Arc::new(policy),
                quota,
                Arc::new(|| now().0),
            )
        });
        Self {
            dataset,
            catalog,
            queries: Mutex::default(),
        }
    }

    /// Starts a query for a page, which replaces earlier ones of this audit. Does not wait.
    pub fn begin(&self, tracking_id: &str, url: &str, device: &str) {
        let (Some(dataset), Some(device)) = (&self.dataset, self.catalog.device(device)) else {
            return;
        };
        let mut all = self.queries.lock();
        if all
            .get(tracking_id)
            .is_some_and(|(_, query)| query.matches_url(url))
        {
            return;
        }
        let query = dataset.begin(url, device.form_factor());
        all.retain(|_, (begun, _)| begun.elapsed() < MAX_QUERY_AGE);
        all.insert(tracking_id.to_owned(), (Instant::now(), query));
    }

    /// Queries the final URL of a visit, if it differs from the requested one, because the dataset
    /// contains visits by their final URL.
    pub fn arrived(&self, tracking_id: &str, device: &str, url: &str) {
        self.begin(tracking_id, url, device);
    }

    /// Adds the field data that has arrived to the report, or the reason why there is none. Does
    /// not wait.
    pub fn add_to(&self, report: &mut Report, tracking_id: &str) {
        let all = self.queries.lock();
        let result = match (&self.dataset, all.get(tracking_id)) {
            (None, _) => Err(FieldReason::NoKey),
            // There is no query if the audit ended before the visit.
            (Some(_), None) => Err(FieldReason::TimedOut),
            (Some(_), Some((_, query))) => query.current_result(),
        };
        drop(all);
        match result {
            Ok(data) => report.field_data = Some(data),
            Err(reason) => report.field_data_reason = Some(reason),
        }
    }
}

impl AuditObserver for FieldData {
    fn on_lease(&self, lease: &Lease) {
        let order = &lease.order;
        self.begin(&lease.tracking_id, &order.url, &order.device);
    }

    fn on_document(&self, tracking_id: &str, device: &str, url: &str) {
        self.arrived(tracking_id, device, url);
    }

    fn before_finish(&self, lease: &Lease, report: &mut Report) {
        self.add_to(report, &lease.tracking_id);
    }

    fn on_finish(&self, lease: &Lease) {
        let mut all = self.queries.lock();
        all.remove(&lease.tracking_id);
    }
}

#[async_trait]
impl FieldSource for FieldData {
    async fn history(
        &self,
        url: &str,
        form_factor: FormFactor,
    ) -> Result<FieldHistory, FieldReason> {
        match &self.dataset {
            Some(dataset) => dataset.history(url, form_factor, HISTORY_TIMEOUT).await,
            None => Err(FieldReason::NoKey),
        }
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.dataset
            .as_ref()
            .map_or_else(Vec::new, CruxClient::counts)
    }
}

/// Sends requests to the URL that the operator set, without the guard. Redirects are not followed.
struct FieldTransport(HttpClient);

impl FieldTransport {
    fn new() -> Self {
        Self(ClientBuilder::new(RESPONSE_TIMEOUT).build())
    }
}

#[async_trait]
impl HttpTransport for FieldTransport {
    async fn post(&self, url: &Url, body: String) -> Result<HttpResponse, TransportError> {
        let request = Request::post(url.as_str())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .body(Bytes::from(body).into())
            .map_err(|error| TransportError::Unreachable(error.to_string()))?;
        let limits = Limits::total(RESPONSE_TIMEOUT, MAX_RESPONSE_BYTES);
        let failed = |error| match error {
            HttpError::TooLarge => TransportError::TooLarge,
            other => TransportError::Unreachable(other.to_string()),
        };
        let response = self.0.send(request, limits).await.map_err(failed)?;
        let retry_after = response.headers().get(header::RETRY_AFTER);
        Ok(HttpResponse {
            status: response.status(),
            retry_after: retry_after.and_then(|v| v.to_str().ok()).map(str::to_owned),
            body: response.body.map_err(failed)?.to_vec(),
        })
    }
}

/// Allows the disclosure of public hosts only, and of none that the operator had to allow
/// explicitly, such as a staging host.
struct PublicHostsOnly {
    /// Targets that are disclosed because the operator named them.
    disclosed: Guard,
    /// Targets that the operator allowed to be visited.
    allowed: Guard,
    /// The public internet, without targets that the operator denied.
    public: Guard,
}

#[async_trait]
impl PrivacyPolicy for PublicHostsOnly {
    async fn may_disclose(&self, url: &Url) -> bool {
        let (Some(host), Some(name), Some(port)) =
            (url.host(), url.host_str(), url.port_or_known_default())
        else {
            return false;
        };
        let addresses = match host {
            Host::Ipv4(ip) => vec![IpAddr::V4(ip)],
            Host::Ipv6(ip) => vec![IpAddr::V6(ip)],
            Host::Domain(name) => {
                let addresses = timeout(LOOKUP_TIMEOUT, SystemResolver.resolve(name)).await;
                addresses.ok().and_then(Result::ok).unwrap_or_default()
            }
        };
        let public = &self.public;
        let is_public_name = public.check_host(name, port).is_ok();
        let may_disclose = |ip: &IpAddr| {
            let address = SocketAddr::new(*ip, port);
            let is_public = is_public_name && public.check_address(name, address).is_ok();
            self.disclosed.allows(name, address)
                || (is_public && !self.allowed.allows(name, address))
        };
        !addresses.is_empty() && addresses.iter().all(may_disclose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(disclosed: &[&str], allowed: &[&str]) -> PublicHostsOnly {
        policy_denying(disclosed, allowed, &[])
    }

    fn policy_denying(disclosed: &[&str], allowed: &[&str], denied: &[&str]) -> PublicHostsOnly {
        let targets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        PublicHostsOnly {
            disclosed: Guard::new(targets(disclosed)).denying(targets(denied)),
            allowed: Guard::new(targets(allowed)),
            public: Guard::public_only().denying(targets(denied)),
        }
    }

    async fn check(policy: &PublicHostsOnly, url: &str, expected: bool) {
        let url = Url::parse(url).unwrap();
        assert_eq!(policy.may_disclose(&url).await, expected, "{url}");
    }

    #[tokio::test]
    async fn only_public_hosts_are_disclosed() {
        let policy = policy(&[], &["93.184.215.0/24"]);
        check(&policy, "https://8.8.8.8/", true).await;
        check(&policy, "https://[2606:4700::1111]/", true).await;
        for private in [
            "http://127.0.0.1/",
            "http://10.1.2.3/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://localhost/",
            "http://nothing.localhost/",
            "http://2130706433/",
        ] {
            check(&policy, private, false).await;
        }
        // Public, but only visited because the operator allowed it.
        check(&policy, "https://93.184.215.14/", false).await;
    }

    #[tokio::test]
    async fn targets_named_by_the_operator_are_disclosed() {
        let policy = policy(&["127.0.0.1", "10.0.0.0/8"], &["127.0.0.1", "10.0.0.0/8"]);
        check(&policy, "http://127.0.0.1:8080/", true).await;
        check(&policy, "http://10.1.2.3/", true).await;
        check(&policy, "http://192.168.1.1/", false).await;
    }

    #[tokio::test]
    async fn denied_targets_are_not_disclosed() {
        let denied = ["93.184.215.0/24", "10.1.2.3", "secret.example.com"];
        let policy = policy_denying(&["10.0.0.0/8"], &[], &denied);
        check(&policy, "https://93.184.215.14/", false).await;
        check(&policy, "https://93.184.216.14/", true).await;
        check(&policy, "http://10.1.2.3/", false).await;
        check(&policy, "http://10.1.2.4/", true).await;
    }
}
