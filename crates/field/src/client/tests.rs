use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use plumbline_model::field::RecordScope;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::*;
use crate::HttpResponse;

type PostResult = Result<HttpResponse, TransportError>;

/// A transport that responds as each test needs and records the requests.
struct MockTransport {
    requests: Mutex<Vec<(String, Value)>>,
    respond: Box<dyn Fn(&Value) -> PostResult + Send + Sync>,
    /// Permits for responses.
    permits: Semaphore,
}

#[async_trait]
impl HttpTransport for MockTransport {
    async fn post(&self, url: &Url, body: String) -> PostResult {
        let body: Value = serde_json::from_str(&body).unwrap();
        self.requests.lock().push((url.to_string(), body.clone()));
        self.permits.acquire().await.unwrap().forget();
        (self.respond)(&body)
    }
}

struct AllowAllButSecret;

#[async_trait]
impl PrivacyPolicy for AllowAllButSecret {
    async fn may_disclose(&self, url: &Url) -> bool {
        url.host_str() != Some("secret.example")
    }
}

/// A shared quota with a number of permits, which asks to retry after five seconds without one.
struct LimitedQuota {
    permits: Semaphore,
    attempts: AtomicI64,
}

#[async_trait]
impl Quota for LimitedQuota {
    async fn take(&self) -> Result<(), Duration> {
        self.attempts.fetch_add(1, Ordering::SeqCst);
        let permits = self.permits.try_acquire();
        permits
            .map(|one| one.forget())
            .map_err(|_| Duration::from_secs(5))
    }
}

struct Rig {
    dataset: CruxClient,
    transport: Arc<MockTransport>,
    quota: Arc<LimitedQuota>,
    now_ms: Arc<AtomicI64>,
}

/// 15 Nov 2026, 12:00 UTC.
const NOON_MS: i64 = 1_794_744_000_000;
const AMPLE_QUOTA: usize = 10_000;

fn rig(respond: impl Fn(&Value) -> PostResult + Send + Sync + 'static) -> Rig {
    rig_with(AMPLE_QUOTA, respond)
}

fn rig_with(permits: usize, respond: impl Fn(&Value) -> PostResult + Send + Sync + 'static) -> Rig {
    let transport = Arc::new(MockTransport {
        requests: Mutex::default(),
        respond: Box::new(respond),
        permits: Semaphore::new(permits),
    });
    let quota = Arc::new(LimitedQuota {
        permits: Semaphore::new(AMPLE_QUOTA),
        attempts: AtomicI64::new(0),
    });
    let now_ms = Arc::new(AtomicI64::new(NOON_MS));
    let clock = Arc::clone(&now_ms);
    let dataset = CruxClient::new(
        Url::parse("https://double.example/below/").unwrap(),
        ApiKey::new("k+y/1").unwrap(),
        transport.clone(),
        Arc::new(AllowAllButSecret),
        quota.clone(),
        Arc::new(move || clock.load(Ordering::SeqCst)),
    );
    Rig {
        dataset,
        transport,
        quota,
        now_ms,
    }
}

impl Rig {
    async fn query(&self, url: &str) -> Result<FieldData, FieldReason> {
        let mut query = self.dataset.begin(url, FormFactor::Phone);
        query.wait().await;
        query.current_result()
    }

    fn bodies(&self) -> Vec<Value> {
        let requests = self.transport.requests.lock();
        requests.iter().map(|(_, body)| body.clone()).collect()
    }

    fn count(&self, outcome: &str) -> u64 {
        let counts = self.dataset.counts();
        counts
            .iter()
            .find(|(name, _)| *name == outcome)
            .map_or(0, |(_, count)| *count)
    }
}

fn respond(status: u16, body: &Value) -> PostResult {
    Ok(HttpResponse {
        status,
        retry_after: None,
        body: body.to_string().into_bytes(),
    })
}

fn page_record(body: &Value) -> PostResult {
    let mut key = body.clone();
    key.as_object_mut().unwrap().remove("formFactor");
    let metrics = json!({ "largest_contentful_paint": { "percentiles": { "p75": 2100 } } });
    respond(
        200,
        &json!({ "record": { "key": key, "metrics": metrics } }),
    )
}

fn missing() -> PostResult {
    respond(
        404,
        &json!({ "error": { "code": 404, "message": "", "status": "NOT_FOUND" } }),
    )
}

fn only_origins(body: &Value) -> PostResult {
    if body["origin"].is_string() {
        page_record(body)
    } else {
        missing()
    }
}

#[tokio::test]
async fn the_page_is_queried_first_and_with_the_key() {
    let rig = rig(page_record);
    let data = rig.query("https://example.com/a?b#c").await.unwrap();
    assert_eq!(
        (data.record, data.subject.as_str()),
        (RecordScope::Url, "https://example.com/a")
    );
    assert_eq!(data.metrics.lcp.unwrap().p75, 2100.0);
    let requests = rig.transport.requests.lock();
    assert_eq!(
        *requests,
        [(
            "https://double.example/below/v1/records:queryRecord?key=k%2By%2F1".to_owned(),
            json!({ "url": "https://example.com/a", "formFactor": "PHONE" })
        )]
    );
}

#[tokio::test]
async fn an_unknown_page_has_its_origins_record_and_the_record_says_so() {
    let rig = rig(only_origins);
    let data = rig.query("https://example.com/a").await.unwrap();
    assert_eq!(
        (data.record, data.subject.as_str()),
        (RecordScope::Origin, "https://example.com")
    );
    let again = rig.query("https://example.com/b").await.unwrap();
    assert_eq!(again.record, RecordScope::Origin);
    assert_eq!(rig.bodies().len(), 3, "the origin was queried only once");
}

#[tokio::test]
async fn a_missing_record_is_queried_once_a_day() {
    let rig = rig(|_| missing());
    for _ in 0..3 {
        assert_eq!(
            rig.query("https://example.com/").await,
            Err(FieldReason::NotInDataset)
        );
    }
    assert_eq!(rig.bodies().len(), 2, "page and origin");
    assert_eq!((rig.count("NOT_IN_DATASET"), rig.count("cached")), (2, 4));
    rig.now_ms.store(NOON_MS + 16 * 3_600_000, Ordering::SeqCst);
    let _ = rig.query("https://example.com/").await;
    assert_eq!(rig.bodies().len(), 4, "the dataset was updated at four");
}

#[tokio::test]
async fn nothing_is_sent_about_a_page_that_may_not_be_disclosed() {
    let rig = rig(page_record);
    for url in ["https://secret.example/", "about:blank", "nonsense"] {
        assert_eq!(rig.query(url).await, Err(FieldReason::NotPublic), "{url}");
    }
    assert_eq!(rig.bodies(), Vec::<Value>::new());
}

#[tokio::test]
async fn simultaneous_equal_queries_are_sent_once() {
    let rig = rig_with(0, page_record);
    let mut queries: Vec<_> = (0..20)
        .map(|_| rig.dataset.begin("https://example.com/", FormFactor::Phone))
        .collect();
    while rig.bodies().is_empty() || rig.count("shared") < 19 {
        tokio::task::yield_now().await;
    }
    rig.transport.permits.add_permits(1);
    for query in &mut queries {
        query.wait().await;
        assert!(query.current_result().is_ok());
    }
    assert_eq!(rig.bodies().len(), 1);
}

#[tokio::test]
async fn reading_does_not_wait_and_a_late_result_is_cached_for_the_next_query() {
    let rig = rig_with(0, page_record);
    let mut query = rig.dataset.begin("https://example.com/", FormFactor::Phone);
    assert_eq!(query.current_result(), Err(FieldReason::TimedOut));
    while rig.bodies().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(query.current_result(), Err(FieldReason::TimedOut));
    rig.transport.permits.add_permits(1);
    query.wait().await;
    assert!(rig.query("https://example.com/").await.is_ok());
    assert_eq!(rig.bodies().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_query_without_a_response_ends_at_its_timeout() {
    let rig = rig_with(0, page_record);
    let start = Instant::now();
    let result = rig.query("https://example.com/").await;
    assert_eq!(result, Err(FieldReason::TimedOut));
    assert!(start.elapsed() <= QUERY_TIMEOUT);
    assert_eq!(rig.bodies().len(), ATTEMPTS as usize);
}

#[tokio::test(start_paused = true)]
async fn a_temporary_error_is_retried() {
    let times = Mutex::new(0);
    let rig = rig(move |body| {
        let mut times = times.lock();
        *times += 1;
        match *times {
            1 => respond(503, &json!({})),
            2 => Err(TransportError::Unreachable("gone".to_owned())),
            _ => page_record(body),
        }
    });
    assert!(rig.query("https://example.com/").await.is_ok());
    assert_eq!(rig.bodies().len(), 3);
    assert_eq!(rig.count("found"), 1);
}

#[tokio::test(start_paused = true)]
async fn repeated_failures_open_the_circuit() {
    let rig = rig(|_| respond(500, &json!({})));
    for number in 0..20 {
        let result = rig.query(&format!("https://example.com/{number}")).await;
        assert_eq!(result, Err(FieldReason::Unavailable));
    }
    assert_eq!(rig.bodies().len(), 5, "then the circuit is open");
    sleep(Duration::from_secs(31)).await;
    let _ = rig.query("https://example.com/").await;
    assert_eq!(rig.bodies().len(), 6, "one tries again");
}

#[tokio::test(start_paused = true)]
async fn a_requested_wait_delays_all_queries() {
    let rig = rig(|_| {
        Ok(HttpResponse {
            status: 429,
            retry_after: Some("3600".to_owned()),
            body: Vec::new(),
        })
    });
    for number in 0..5 {
        let result = rig.query(&format!("https://example.com/{number}")).await;
        assert_eq!(result, Err(FieldReason::Quota));
    }
    assert_eq!(rig.bodies().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pending_query_reports_an_exceeded_quota() {
    let rig = rig(|_| respond(429, &json!({})));
    let query = rig.dataset.begin("https://example.com/", FormFactor::Phone);
    while query.current_result() == Err(FieldReason::TimedOut) {
        tokio::task::yield_now().await;
    }
    assert_eq!(query.current_result(), Err(FieldReason::Quota));
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_quota_is_sent_in_a_minute() {
    let rig = rig(page_record);
    let start = Instant::now();
    for number in 0..200 {
        let result = rig.query(&format!("https://example.com/{number}")).await;
        assert!(result.is_ok());
        if number < 150 {
            assert_eq!(start.elapsed(), Duration::ZERO);
        }
    }
    assert!(start.elapsed() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_shared_quota_costs_no_attempt() {
    let rig = rig(page_record);
    rig.quota.permits.forget_permits(AMPLE_QUOTA);
    let start = Instant::now();
    let mut queries: Vec<_> = (0..20)
        .map(|number| {
            let url = format!("https://example.com/{number}");
            rig.dataset.begin(&url, FormFactor::Phone)
        })
        .collect();
    // More often than any query is retried.
    while start.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(rig.bodies(), Vec::<Value>::new());
    for query in &queries {
        assert_eq!(query.current_result(), Err(FieldReason::Quota));
    }
    let attempts = rig.quota.attempts.load(Ordering::SeqCst);
    assert!(attempts <= 7, "one asks for all, {attempts} times");
    rig.quota.permits.add_permits(AMPLE_QUOTA);
    for query in &mut queries {
        query.wait().await;
        assert!(query.current_result().is_ok());
    }
    assert_eq!(rig.bodies().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn queries_beyond_the_maximum_in_flight_are_rejected_at_once() {
    let rig = rig_with(0, page_record);
    let queries: Vec<_> = (0..400)
        .map(|number| {
            let url = format!("https://example.com/{number}");
            rig.dataset.begin(&url, FormFactor::Phone)
        })
        .collect();
    while rig.count("QUOTA") < 250 {
        tokio::task::yield_now().await;
    }
    let rejected = queries
        .iter()
        .filter(|query| query.current_result() == Err(FieldReason::Quota));
    assert_eq!(rejected.count(), 250);
}

#[tokio::test]
async fn a_rejected_key_is_reported_and_not_retried_with_every_audit() {
    let rig = rig(|_| {
        let details = json!([{ "reason": "API_KEY_INVALID" }]);
        respond(
            400,
            &json!({ "error": { "status": "INVALID_ARGUMENT", "details": details } }),
        )
    });
    for number in 0..5 {
        let result = rig.query(&format!("https://example.com/{number}")).await;
        assert_eq!(result, Err(FieldReason::KeyRefused));
    }
    assert_eq!(rig.bodies().len(), 1);
}

#[tokio::test]
async fn an_invalid_response_is_reported_and_not_cached() {
    let rig = rig(|body| match body["url"].as_str() {
        Some("https://example.com/large") => Err(TransportError::TooLarge),
        _ => respond(200, &json!("{")),
    });
    for path in ["large", "broken"] {
        let result = rig.query(&format!("https://example.com/{path}")).await;
        assert_eq!(result, Err(FieldReason::BadAnswer));
    }
    assert_eq!(rig.count("cached"), 0);
}

#[tokio::test]
async fn a_history_is_queried_in_the_same_way() {
    let rig = rig(|body| {
        let Some(origin) = body["origin"].as_str() else {
            return missing();
        };
        let day = json!({ "year": 2026, "month": 11, "day": 1 });
        respond(
            200,
            &json!({ "record": {
                "key": { "origin": origin },
                "metrics": { "interaction_to_next_paint": { "percentilesTimeseries": { "p75s": [180] } } },
                "collectionPeriods": [{ "firstDate": day, "lastDate": day }],
            } }),
        )
    });
    let long = Duration::from_secs(30);
    let url = "https://example.com/a";
    let result = rig.dataset.history(url, FormFactor::Desktop, long).await;
    let history = result.unwrap();
    assert_eq!(
        (history.record, history.form_factor),
        (RecordScope::Origin, FormFactor::Desktop)
    );
    let requests = rig.transport.requests.lock();
    assert!(requests[0].0.contains("/v1/records:queryHistoryRecord?"));
}

#[tokio::test(start_paused = true)]
async fn a_history_query_waits_no_longer_than_its_limit() {
    let rig = rig_with(0, page_record);
    let start = Instant::now();
    let soon = Duration::from_secs(2);
    let result = rig
        .dataset
        .history("https://example.com/", FormFactor::Phone, soon)
        .await;
    assert_eq!(result, Err(FieldReason::TimedOut));
    assert_eq!(start.elapsed(), soon);
}

#[test]
fn a_key_is_one_word_and_never_shown() {
    for text in ["", " ", "a b", "a\nb", "schlüssel"] {
        assert!(ApiKey::new(text).is_err(), "{text:?}");
    }
    let key = ApiKey::new(" secret\n").unwrap();
    assert_eq!(key.0, "secret");
    assert!(!format!("{key:?}").contains("secret"));
}
