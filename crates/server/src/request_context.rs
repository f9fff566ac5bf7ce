//! Values that a handler learns about its request and the middleware needs: the state of the rate
//! limit, and the audit that the request concerns.

use std::sync::Arc;

use axum::http::request::Parts;
use parking_lot::Mutex;

use crate::rate::RateStatus;

/// An extension of the request, of which the middleware has a copy.
#[derive(Clone, Default)]
pub(crate) struct RequestContext(Arc<Mutex<RequestDetails>>);

#[derive(Default)]
pub(crate) struct RequestDetails {
    pub(crate) rate_status: Option<RateStatus>,
    /// The tracking, audit or batch id, which is known to exist.
    pub(crate) audit: Option<String>,
}

impl RequestContext {
    /// Returns the context of a request, or an unused one if there is no middleware.
    pub(crate) fn of(parts: &Parts) -> Self {
        parts.extensions.get().cloned().unwrap_or_default()
    }

    /// Sets the rate limit that the response's headers describe.
    pub(crate) fn set_rate_status(&self, status: Option<RateStatus>) {
        self.0.lock().rate_status = status;
    }

    /// Sets the audit that the log names.
    pub(crate) fn set_audit(&self, id: &str) {
        self.0.lock().audit = Some(id.to_owned());
    }

    /// Returns the details, and clears them.
    pub(crate) fn take(&self) -> RequestDetails {
        std::mem::take(&mut *self.0.lock())
    }
}
