//! The state that all handlers share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::{
    app::App, capacity::Capacity, metrics::MetricsCache, peer::FailedKeyLimiter, rate::RateLimiter,
    render_pool::RenderPool, routes::ExtraTimes,
};

/// The number of files that are exported from evidence concurrently: each may hold a whole bundle
/// in memory, packed and unpacked. A request that waits longer than the deadline gets a 503.
const CONCURRENT_EXPORTS: usize = 1;

/// Requests without a session that one address may make in a minute, at most. A shared report and
/// all of its pictures are about fifty.
const GUESTS_PER_MINUTE: u32 = 1200;

/// The state of the service that all handlers share.
pub(crate) struct ServiceState {
    pub(crate) app: App,
    /// Limits starts, by key.
    pub(crate) starts: RateLimiter,
    /// Limits other requests, by key.
    pub(crate) requests: RateLimiter,
    /// Limits page requests without a session, by address.
    pub(crate) guests: RateLimiter,
    /// Limits wrong keys, by address.
    pub(crate) failed_keys: FailedKeyLimiter,
    /// Permits for exports that read evidence.
    pub(crate) exports: Arc<Semaphore>,
    pub(crate) capacity: Capacity,
    pub(crate) render_pool: RenderPool,
    pub(crate) metrics_cache: MetricsCache,
    pub(crate) api_description: ApiDescription,
    pub(crate) extra_times: ExtraTimes,
}

/// The description of the API in both of its formats, rendered once.
pub(crate) struct ApiDescription {
    /// The OpenAPI document.
    pub(crate) json: String,
    /// The HTML page.
    pub(crate) page: String,
}

pub(crate) type SharedState = Arc<ServiceState>;

impl ServiceState {
    pub(crate) fn new(app: App, api_description: ApiDescription, extra_times: ExtraTimes) -> Self {
        let limits = app.limits;
        let limiter = |name, per_minute| RateLimiter::new(name, per_minute, &app.store);
        // As many as a key may make where that is fewer; 0 means no limit.
        let guests_per_minute = limits.requests_per_minute.min(GUESTS_PER_MINUTE);
        Self {
            starts: limiter("starts", limits.starts_per_minute),
            requests: limiter("requests", limits.requests_per_minute),
            guests: limiter("guests", guests_per_minute),
            failed_keys: FailedKeyLimiter::new(limiter(
                "wrong keys",
                limits.failed_keys_per_minute,
            )),
            exports: Arc::new(Semaphore::new(CONCURRENT_EXPORTS)),
            capacity: Capacity::new(limits.connections),
            render_pool: RenderPool::default(),
            metrics_cache: MetricsCache::default(),
            api_description,
            extra_times,
            app,
        }
    }
}
