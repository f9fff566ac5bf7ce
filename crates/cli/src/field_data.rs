//! Field data for audits: begun when an audit is taken up, looked at when its report is handed in.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use plumbline_catalog::{Catalog, FormFactor};
use plumbline_engine::field::{FieldHistory, FieldReason};
use plumbline_engine::report::Report;
use plumbline_field::{
    CruxClient, HttpResponse, HttpTransport, MAX_RESPONSE_BYTES, PendingQuery, PrivacyPolicy,
    Quota, TransportError,
};
use plumbline_link::{Guard, Resolver, SystemResolver};
use plumbline_server::{AuditObserver, FieldSource};
use plumbline_store::Lease;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::{Host, Url};

use crate::clock::now;
use crate::https_client::{AnswerBounds, HttpsClient, place};
use crate::settings::FieldSettings;

/// As long as a person waits for a page without wondering.
const HISTORY_WITHIN: Duration = Duration::from_secs(2);
/// Who asks waits less; this only ends what nobody waits for any more.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
const LOOKUP_WITHIN: Duration = Duration::from_secs(5);
/// What nobody came back for is dropped: the audit went to another agent.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60 * 60);

/// Without a dataset, because there is no key, nothing is ever sent.
pub struct FieldData {
    dataset: Option<CruxClient>,
    catalog: Arc<Catalog>,
    /// By tracking id.
    asked: Mutex<HashMap<String, (Instant, PendingQuery)>>,
}

impl FieldData {
    /// `https` is made only where somebody can be asked.
    pub fn new(
        settings: FieldSettings,
        catalog: Arc<Catalog>,
        quota: Arc<dyn Quota>,
        https: impl FnOnce() -> HttpsClient,
    ) -> Self {
        let dataset = settings.key.map(|key| {
            let discreet = Discreet {
                named: Guard::new(settings.named).denying(settings.denied.clone()),
                allowed: Guard::new(settings.allowed),
                public: Guard::public_only().denying(settings.denied),
            };
            CruxClient::new(
                settings.base,
                key,
                Arc::new(HttpsTransport(https())),
                Arc::new(discreet),
                quota,
                Arc::new(|| now().0),
            )
        });
        Self {
            dataset,
            catalog,
            asked: Mutex::default(),
        }
    }

    /// Begins to ask about the page, and about nothing else for this audit any more. Does not wait.
    pub fn begin(&self, tracking_id: &str, url: &str, device: &str) {
        let (Some(dataset), Some(device)) = (&self.dataset, self.catalog.device(device)) else {
            return;
        };
        let mut all = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if all
            .get(tracking_id)
            .is_some_and(|(_, asked)| asked.matches_url(url))
        {
            return;
        }
        let asked = dataset.begin(url, device.form_factor());
        all.retain(|_, (begun, _)| begun.elapsed() < FORGOTTEN_AFTER);
        all.insert(tracking_id.to_owned(), (Instant::now(), asked));
    }

    /// The dataset files a visit under the address it led to: from there on that one is asked
    /// about, where it is another than the one that was ordered.
    pub fn arrived(&self, tracking_id: &str, device: &str, url: &str) {
        self.begin(tracking_id, url, device);
    }

    /// Adds to the report what is there by now, or why it is not. Does not wait.
    pub fn add_to(&self, report: &mut Report, tracking_id: &str) {
        let all = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match (&self.dataset, all.get(tracking_id)) {
            (None, _) => Err(FieldReason::NoKey),
            // Nothing was begun: the audit ends before it was visited.
            (Some(_), None) => Err(FieldReason::TimedOut),
            (Some(_), Some((_, asked))) => asked.current_result(),
        };
        drop(all);
        match found {
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
        let mut all = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
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
            Some(dataset) => dataset.history(url, form_factor, HISTORY_WITHIN).await,
            None => Err(FieldReason::NoKey),
        }
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.dataset
            .as_ref()
            .map_or_else(Vec::new, CruxClient::counts)
    }
}

/// The operator named the address, so the guard has no say; redirects are not followed.
struct HttpsTransport(HttpsClient);

#[async_trait]
impl HttpTransport for HttpsTransport {
    async fn post(&self, url: &Url, body: String) -> Result<HttpResponse, TransportError> {
        let (host, port) = place(url).map_err(TransportError::Unreachable)?;
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port))
            .await
            .map_err(|error| TransportError::Unreachable(error.to_string()))?;
        let headers = vec![
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json".to_owned()),
        ];
        let bounds = AnswerBounds {
            bytes: MAX_RESPONSE_BYTES,
            head_by: tokio::time::Instant::now() + ANSWER_WITHIN,
            body_within: ANSWER_WITHIN,
        };
        let sent = self.0.post(stream, url, headers, body, bounds).await;
        let answer = sent.map_err(TransportError::Unreachable)?;
        let retry_after = answer.headers.get("retry-after");
        Ok(HttpResponse {
            status: answer.status,
            retry_after: retry_after.and_then(|v| v.to_str().ok()).map(str::to_owned),
            body: answer.body.ok_or(TransportError::TooLarge)?.to_vec(),
        })
    }
}

/// Names public hosts only, and of those none that the operator had to allow: a staging host is
/// nobody's business.
struct Discreet {
    /// What the operator wants to be asked about all the same.
    named: Guard,
    /// What the operator let be visited beyond the public internet.
    allowed: Guard,
    /// The public internet, without what the operator denied.
    public: Guard,
}

#[async_trait]
impl PrivacyPolicy for Discreet {
    async fn may_disclose(&self, url: &Url) -> bool {
        let (Some(host), Ok((name, port))) = (url.host(), place(url)) else {
            return false;
        };
        let addresses = match host {
            Host::Ipv4(ip) => vec![IpAddr::V4(ip)],
            Host::Ipv6(ip) => vec![IpAddr::V6(ip)],
            Host::Domain(name) => {
                let found = timeout(LOOKUP_WITHIN, SystemResolver.resolve(name)).await;
                found.ok().and_then(Result::ok).unwrap_or_default()
            }
        };
        let public = &self.public;
        let is_public_name = public.check_host(name, port).is_ok();
        let may_disclose = |ip: &IpAddr| {
            let address = SocketAddr::new(*ip, port);
            let is_public = is_public_name && public.check_address(name, address).is_ok();
            self.named.allows(name, address) || (is_public && !self.allowed.allows(name, address))
        };
        !addresses.is_empty() && addresses.iter().all(may_disclose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discreet(named: &[&str], allowed: &[&str]) -> Discreet {
        discreet_denying(named, allowed, &[])
    }

    fn discreet_denying(named: &[&str], allowed: &[&str], denied: &[&str]) -> Discreet {
        let targets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Discreet {
            named: Guard::new(targets(named)).denying(targets(denied)),
            allowed: Guard::new(targets(allowed)),
            public: Guard::public_only().denying(targets(denied)),
        }
    }

    async fn check(discreet: &Discreet, url: &str, expected: bool) {
        let url = Url::parse(url).unwrap();
        assert_eq!(discreet.may_disclose(&url).await, expected, "{url}");
    }

    #[tokio::test]
    async fn only_public_hosts_are_named() {
        let discreet = discreet(&[], &["93.184.215.0/24"]);
        check(&discreet, "https://8.8.8.8/", true).await;
        check(&discreet, "https://[2606:4700::1111]/", true).await;
        for private in [
            "http://127.0.0.1/",
            "http://10.1.2.3/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://localhost/",
            "http://nothing.localhost/",
            "http://2130706433/",
        ] {
            check(&discreet, private, false).await;
        }
        // Public, and yet only the operator let it be visited.
        check(&discreet, "https://93.184.215.14/", false).await;
    }

    #[tokio::test]
    async fn what_the_operator_wants_to_be_asked_about_is_named() {
        let discreet = discreet(&["127.0.0.1", "10.0.0.0/8"], &["127.0.0.1", "10.0.0.0/8"]);
        check(&discreet, "http://127.0.0.1:8080/", true).await;
        check(&discreet, "http://10.1.2.3/", true).await;
        check(&discreet, "http://192.168.1.1/", false).await;
    }

    #[tokio::test]
    async fn what_is_denied_is_not_named() {
        let denied = ["93.184.215.0/24", "10.1.2.3", "secret.example.com"];
        let discreet = discreet_denying(&["10.0.0.0/8"], &[], &denied);
        check(&discreet, "https://93.184.215.14/", false).await;
        check(&discreet, "https://93.184.216.14/", true).await;
        check(&discreet, "http://10.1.2.3/", false).await;
        check(&discreet, "http://10.1.2.4/", true).await;
    }
}
