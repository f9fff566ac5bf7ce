//! Waits until the network and the main thread of a page are idle.

use std::time::{Duration, Instant};

use plumbline_bundle::{Failure, FailureCode};
use plumbline_clock::PageTime;
use serde_json::{Value, json};

use crate::page::{Page, VisitError};
use crate::plan::VisitPlan;
use crate::protocol::{CALL_DEADLINE, CallError};

/// Maximum response time of the main thread at the deadline, after which it counts as hung.
const HUNG_AFTER: Duration = Duration::from_secs(3);

/// Minimum time between two queries of the main thread, for queries that fail, for example between
/// two documents.
const QUERY_INTERVAL: Duration = Duration::from_millis(100);

/// The end of the time for loading.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadDeadline {
    /// The page must be loaded by this page time to be measured completely.
    pub(super) page: PageTime,
    /// A bound on the real time, for pages whose clock is slow. Time in which the browser was
    /// stopped is added to it.
    pub(super) real: Instant,
}

/// Waits until the page is loaded, painted and idle, or until the deadline, which adds a warning if
/// there is something to measure. Calls `document_loaded` with the URL of each document.
pub(super) async fn until_idle(
    page: &mut Page<'_>,
    plan: &VisitPlan,
    deadline: LoadDeadline,
    document_loaded: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), VisitError> {
    let mut documents = 0;
    // The earliest time at which the main thread can have been idle for long enough.
    let mut not_before = page.clock.now();
    loop {
        if let Some(failure) = page.loading.failure() {
            return Err(failure.clone().into());
        }
        if page.loading.documents() > documents {
            documents = page.loading.documents();
            document_loaded(page.loading.final_url());
        }
        let window = if page.loading.is_painted() {
            plan.idle
        } else {
            plan.blank
        };
        let idle_at = page.loading.idle_at(window).map(|at| at.max(not_before));
        let now = page.clock.now();
        let real_deadline = deadline.real + page.clock.total_frozen();
        if now >= deadline.page || Instant::now() >= real_deadline {
            return check_at_deadline(page).await;
        }
        match idle_at {
            Some(at) if now >= at => {
                let idle_time = time_since_long_task(page, real_deadline).await?;
                if idle_time >= window {
                    return check_idle_page(page);
                }
                not_before = page.clock.now() + (window - idle_time).max(QUERY_INTERVAL);
            }
            _ => {
                if page.later_frames.due().is_some_and(|due| now >= due) {
                    page.collect_later_frames();
                }
                let times = [idle_at, page.later_frames.due()];
                let wakeup = times.into_iter().flatten().fold(deadline.page, Ord::min);
                page.next_event_until(wakeup, real_deadline).await?;
            }
        }
    }
}

/// Checks that an idle page has not failed and is painted.
fn check_idle_page(page: &mut Page<'_>) -> Result<(), VisitError> {
    // A failure may have been reported while the main thread was queried.
    if let Some(failure) = page.loading.failure() {
        return Err(failure.clone().into());
    }
    if page.loading.is_painted() {
        return Ok(());
    }
    let message = if page.loading.shows_only_frames() {
        "The page itself shows nothing, only its frames, which can be audited by their own URLs."
    } else {
        "The page loaded but showed nothing."
    };
    Err(Failure::new(FailureCode::NoPaint, message).into())
}

/// Returns the time since the last task of more than 50 ms on the main thread; zero if it does not
/// respond.
pub(crate) async fn time_since_long_task(
    page: &mut Page<'_>,
    deadline: Instant,
) -> Result<Duration, VisitError> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    let timeout = remaining.min(CALL_DEADLINE);
    let result = page
        .evaluate::<f64>(timeout, include_str!("long-tasks.js"))
        .await;
    match result {
        Ok(ms) => Ok(Duration::from_secs_f64(ms.max(0.0) / 1000.0)),
        // The main thread is busy, or the page is navigating. Events or the deadline follow.
        Err(
            CallError::TimedOut { .. }
            | CallError::Refused { .. }
            | CallError::InvalidResponse { .. },
        ) => Ok(Duration::ZERO),
        Err(error) => Err(error.into()),
    }
}

async fn check_at_deadline(page: &mut Page<'_>) -> Result<(), VisitError> {
    if page.loading.is_navigating() {
        // Chromium holds calls back while it waits for the next document.
        match page.call::<Value>("Page.stopLoading", json!({})).await {
            // The page is busy or about to be replaced; the next call shows whether it responds.
            Ok(_) | Err(CallError::Refused { .. } | CallError::TimedOut { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if page.loading.has_document() {
        match page.evaluate::<f64>(HUNG_AFTER, "0").await {
            Err(CallError::TimedOut { .. }) => {
                return Err(Failure::new(
                    FailureCode::PageHung,
                    "The page's scripts did not end in time.",
                )
                .into());
            }
            Err(error @ (CallError::Crashed | CallError::Ended | CallError::TooLarge(_))) => {
                return Err(error.into());
            }
            _ => {}
        }
    }
    if page.loading.is_painted() {
        page.warn(
            "The page was not idle within the time limit; what it did until then was measured.",
        );
        return Ok(());
    }
    Err(Failure::new(
        FailureCode::Timeout,
        "The page showed nothing within the time limit.",
    )
    .into())
}
