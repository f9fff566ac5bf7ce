use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use plumbline_catalog::FormFactor;
use plumbline_model::field::{FieldData, FieldHistory, FieldReason};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use url::Url;

use crate::cache::Cache;
use crate::interfaces::{Clock, HttpTransport, PrivacyPolicy, Quota, TransportError};
use crate::query::{Query, QueryKind};
use crate::rate_limiter::{Admission, RateLimiter};
use crate::response::{FieldRecord, Interpretation, QueryResult, interpret, retry_after};

/// Timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a query including waits and retries. It is longer than most visits and than the
/// quota's minute: a result that is too late for one audit is cached for the next.
const QUERY_TIMEOUT: Duration = Duration::from_secs(90);
const ATTEMPTS: u32 = 3;
/// Maximum number of queries in flight: the quota of one minute.
const MAX_IN_FLIGHT: usize = crate::rate_limiter::QUOTA;

/// The operator's API key. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

#[derive(Debug, thiserror::Error)]
#[error("an API key is one word of visible ASCII characters")]
pub struct KeyError;

impl ApiKey {
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let is_word = (1..=512).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        is_word.then(|| Self(text.to_owned())).ok_or(KeyError)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// Client of the Chrome UX Report API. Clones share one state.
#[derive(Clone)]
pub struct CruxClient(Arc<Inner>);

struct Inner {
    base: Url,
    key: ApiKey,
    transport: Arc<dyn HttpTransport>,
    privacy_policy: Arc<dyn PrivacyPolicy>,
    quota: Arc<dyn Quota>,
    /// Serializes requests for admission: the result of the first applies to those behind it.
    admission_lock: tokio::sync::Mutex<()>,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cache: Cache,
    rate_limiter: RateLimiter,
    /// Queries in flight; equal queries share one result.
    in_flight: HashMap<Query, watch::Receiver<QueryProgress>>,
    counts: BTreeMap<&'static str, u64>,
}

/// Progress of a query.
#[derive(Debug, Clone)]
enum QueryProgress {
    /// The query is in progress; the reason of a delay, if there is one.
    Pending(Option<FieldReason>),
    Done(QueryResult),
}

/// A query that was started.
pub struct PendingQuery {
    progress: watch::Receiver<QueryProgress>,
    /// Query for the page's record; `None` if the URL is not a web address.
    page: Option<Query>,
}

impl PendingQuery {
    /// Returns the current result without waiting.
    pub fn current_result(&self) -> Result<FieldData, FieldReason> {
        match current_result(&self.progress)? {
            FieldRecord::Data(data) => Ok((*data).clone()),
            FieldRecord::History(_) => Err(FieldReason::BadAnswer),
        }
    }

    /// Returns true if a query for `url` would be the same one.
    pub fn matches_url(&self, url: &str) -> bool {
        let same = |page: &Query| {
            let url = Url::parse(url).ok()?;
            let [other, _] = Query::both(page.kind, &url, page.form_factor)?;
            Some(other == *page)
        };
        self.page.as_ref().and_then(same).unwrap_or(false)
    }

    /// Waits until the query is done.
    pub async fn wait(&mut self) {
        // A closed channel has delivered its last value.
        let _ = self
            .progress
            .wait_for(|p| matches!(p, QueryProgress::Done(_)))
            .await;
    }
}

fn current_result(progress: &watch::Receiver<QueryProgress>) -> QueryResult {
    match &*progress.borrow() {
        QueryProgress::Done(result) => result.clone(),
        QueryProgress::Pending(delay) => Err(delay.unwrap_or(FieldReason::TimedOut)),
    }
}

impl CruxClient {
    /// Creates a client. `base` is the URL that contains `v1/…`.
    pub fn new(
        base: Url,
        key: ApiKey,
        transport: Arc<dyn HttpTransport>,
        privacy_policy: Arc<dyn PrivacyPolicy>,
        quota: Arc<dyn Quota>,
        clock: Clock,
    ) -> Self {
        Self(Arc::new(Inner {
            base,
            key,
            transport,
            privacy_policy,
            quota,
            admission_lock: tokio::sync::Mutex::default(),
            clock,
            state: Mutex::default(),
        }))
    }

    /// Starts a query for the page's record, or else its origin's, without waiting. A late result
    /// is cached for the next query.
    pub fn begin(&self, url: &str, form_factor: FormFactor) -> PendingQuery {
        self.look_up(QueryKind::Current, url, form_factor)
    }

    /// Returns the page's history, or else its origin's, waiting no longer than `at_most`.
    pub fn history<'a>(
        &'a self,
        url: &'a str,
        form_factor: FormFactor,
        at_most: Duration,
    ) -> BoxFuture<'a, Result<FieldHistory, FieldReason>> {
        Box::pin(async move {
            let mut query = self.look_up(QueryKind::History, url, form_factor);
            let _ = tokio::time::timeout(at_most, query.wait()).await;
            match current_result(&query.progress)? {
                FieldRecord::History(history) => Ok((*history).clone()),
                FieldRecord::Data(_) => Err(FieldReason::BadAnswer),
            }
        })
    }

    /// Returns the number of queries since the start of the process, by outcome.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let state = self.0.state.lock();
        state
            .counts
            .iter()
            .map(|(outcome, count)| (*outcome, *count))
            .collect()
    }

    fn look_up(&self, kind: QueryKind, url: &str, form_factor: FormFactor) -> PendingQuery {
        let (sender, receiver) = watch::channel(QueryProgress::Pending(None));
        let queries = Url::parse(url)
            .ok()
            .and_then(|url| Some((Query::both(kind, &url, form_factor)?, url)));
        let page = queries.as_ref().map(|([page, _], _)| page.clone());
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let result = match queries {
                None => Err(FieldReason::NotPublic),
                Some((queries, url)) => inner.query_page_or_origin(queries, &url, &sender).await,
            };
            sender.send_replace(QueryProgress::Done(result));
        });
        PendingQuery {
            progress: receiver,
            page,
        }
    }
}

impl Inner {
    /// Queries the page; if it is not in the dataset, queries its origin.
    async fn query_page_or_origin(
        self: &Arc<Self>,
        queries: [Query; 2],
        url: &Url,
        progress_sender: &watch::Sender<QueryProgress>,
    ) -> QueryResult {
        let may_disclose =
            tokio::time::timeout(REQUEST_TIMEOUT, self.privacy_policy.may_disclose(url)).await;
        if !may_disclose.unwrap_or(false) {
            self.count("NOT_PUBLIC");
            return Err(FieldReason::NotPublic);
        }
        let [page, origin] = queries;
        match self.wait_for_result(page, progress_sender).await {
            Err(FieldReason::NotInDataset | FieldReason::Rejected) => {
                self.wait_for_result(origin, progress_sender).await
            }
            result => result,
        }
    }

    /// Waits for a query and forwards its progress.
    async fn wait_for_result(
        self: &Arc<Self>,
        query: Query,
        progress_sender: &watch::Sender<QueryProgress>,
    ) -> QueryResult {
        let mut progress = self.start_query(query);
        loop {
            let now = progress.borrow_and_update().clone();
            match now {
                QueryProgress::Done(result) => return result,
                pending => progress_sender.send_replace(pending),
            };
            if progress.changed().await.is_err() {
                // The querying task ended without a result, which is an internal error.
                return Err(FieldReason::Unavailable);
            }
        }
    }

    /// Returns the cached result, joins an equal query in flight, or starts one.
    fn start_query(self: &Arc<Self>, query: Query) -> watch::Receiver<QueryProgress> {
        let now_ms = (self.clock)();
        let mut state = self.state.lock();
        if let Some(result) = state.cache.get(&query, now_ms) {
            state.count("cached");
            return watch::channel(QueryProgress::Done(result)).1;
        }
        if let Some(in_flight) = state.in_flight.get(&query).cloned() {
            state.count("shared");
            return in_flight;
        }
        if state.in_flight.len() >= MAX_IN_FLIGHT {
            state.count(FieldReason::Quota.as_str());
            return watch::channel(QueryProgress::Done(Err(FieldReason::Quota))).1;
        }
        let (sender, receiver) = watch::channel(QueryProgress::Pending(None));
        state.in_flight.insert(query.clone(), receiver.clone());
        drop(state);
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            let in_flight_guard = InFlightGuard {
                inner: &inner,
                query: &query,
            };
            let result = inner.send_with_retries(&query, &sender).await;
            inner.store_result(&query, &result);
            // The result is cached before the query leaves the map, so that no other query starts
            // in between.
            drop(in_flight_guard);
            sender.send_replace(QueryProgress::Done(result));
        });
        receiver
    }

    fn store_result(&self, query: &Query, result: &QueryResult) {
        let now_ms = (self.clock)();
        let mut state = self.state.lock();
        let outcome = result.as_ref().map_or_else(|r| r.as_str(), |_| "found");
        state.count(outcome);
        if matches!(
            result,
            Ok(_) | Err(FieldReason::NotInDataset | FieldReason::Rejected)
        ) {
            state.cache.insert(query.clone(), result.clone(), now_ms);
        }
    }

    /// Sends a query with retries until there is a final result or the timeout.
    async fn send_with_retries(
        &self,
        query: &Query,
        progress_sender: &watch::Sender<QueryProgress>,
    ) -> QueryResult {
        let deadline = Instant::now() + QUERY_TIMEOUT;
        let mut reason = FieldReason::TimedOut;
        for _ in 0..ATTEMPTS {
            self.wait_for_admission(deadline, progress_sender).await?;
            let by = deadline.min(Instant::now() + REQUEST_TIMEOUT);
            let sent = timeout_at(by, self.send(query)).await;
            reason = match sent.unwrap_or(Err(RequestError::TimedOut)) {
                Ok(result) => return result,
                Err(error) => self.record_failure(&error),
            };
            if matches!(reason, FieldReason::BadAnswer | FieldReason::KeyRefused) {
                break;
            }
            progress_sender.send_replace(QueryProgress::Pending(Some(reason)));
        }
        Err(reason)
    }

    async fn wait_for_admission(
        &self,
        deadline: Instant,
        progress_sender: &watch::Sender<QueryProgress>,
    ) -> Result<(), FieldReason> {
        loop {
            let admission = timeout_at(deadline, self.request_admission()).await;
            match admission.map_err(|_| FieldReason::Quota)? {
                Admission::Granted => return Ok(()),
                Admission::Refused(reason) => return Err(reason),
                Admission::Wait(until, reason) if until >= deadline => return Err(reason),
                Admission::Wait(until, reason) => {
                    progress_sender.send_replace(QueryProgress::Pending(Some(reason)));
                    sleep_until(until).await;
                }
            }
        }
    }

    /// Requests admission by this process' own rate limiter, and then by the shared quota.
    async fn request_admission(&self) -> Admission {
        let _first = self.admission_lock.lock().await;
        let admission = self.state.lock().rate_limiter.admit(Instant::now());
        if admission != Admission::Granted {
            return admission;
        }
        match self.quota.take().await {
            Ok(()) => Admission::Granted,
            Err(wait) => self
                .state
                .lock()
                .rate_limiter
                .withdraw(Instant::now(), wait),
        }
    }

    async fn send(&self, query: &Query) -> Result<QueryResult, RequestError> {
        let mut url = self.base.clone();
        let path = format!("{}/{}", url.path().trim_end_matches('/'), query.path());
        url.set_path(&path);
        url.query_pairs_mut()
            .clear()
            .append_pair("key", &self.key.0);
        let body = query.body().to_string();
        let response = self.transport.post(&url, body).await?;
        let wait = response.retry_after.as_deref();
        let wait = wait.and_then(|text| retry_after(text, (self.clock)()));
        match interpret(query, response.status, &response.body) {
            Interpretation::Final(result) => {
                self.state.lock().rate_limiter.record_success();
                Ok(result)
            }
            Interpretation::KeyRefused => Err(RequestError::KeyRefused),
            Interpretation::TooManyRequests => Err(RequestError::RateLimited(wait)),
            Interpretation::Failed => Err(RequestError::Failed(response.status, wait)),
            Interpretation::Invalid(reason) => Err(RequestError::Invalid(reason)),
        }
    }

    /// Updates the rate limiter after a failed request and returns the reason to report.
    fn record_failure(&self, error: &RequestError) -> FieldReason {
        tracing::warn!(%error, "field data request failed");
        let (now, mut state) = (Instant::now(), self.state.lock());
        let reason = match error {
            RequestError::TimedOut => FieldReason::TimedOut,
            RequestError::Failed(..) | RequestError::Unreachable(_) => FieldReason::Unavailable,
            RequestError::RateLimited(_) => FieldReason::Quota,
            RequestError::KeyRefused => FieldReason::KeyRefused,
            RequestError::Invalid(_) => FieldReason::BadAnswer,
        };
        match error {
            RequestError::RateLimited(wait) => state.rate_limiter.record_rate_limit(now, *wait),
            RequestError::KeyRefused => state.rate_limiter.record_rejected_key(now),
            RequestError::Failed(_, wait) => state.rate_limiter.record_failure(now, reason, *wait),
            _ => state.rate_limiter.record_failure(now, reason, None),
        }
        reason
    }

    fn count(&self, outcome: &'static str) {
        self.state.lock().count(outcome);
    }
}

impl State {
    fn count(&mut self, outcome: &'static str) {
        *self.counts.entry(outcome).or_default() += 1;
    }
}

/// Removes a query from those in flight when dropped, whatever its result.
struct InFlightGuard<'a> {
    inner: &'a Inner,
    query: &'a Query,
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.inner.state.lock().in_flight.remove(self.query);
    }
}

/// Error of one request.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("request timed out")]
    TimedOut,
    #[error("server unreachable: {0}")]
    Unreachable(String),
    #[error("server responded with status {0}")]
    Failed(u16, Option<Duration>),
    #[error("quota exceeded")]
    RateLimited(Option<Duration>),
    #[error("API key rejected")]
    KeyRefused,
    #[error("invalid response: {0}")]
    Invalid(&'static str),
}

impl From<TransportError> for RequestError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Unreachable(reason) => Self::Unreachable(reason),
            TransportError::TooLarge => Self::Invalid("response too large"),
        }
    }
}

#[cfg(test)]
mod tests;
