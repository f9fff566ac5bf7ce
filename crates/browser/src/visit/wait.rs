//! Waiting until a page is quiet, driven by what it reports.

use std::time::{Duration, Instant};

use plumbline_bundle::{Failure, FailureCode};

use super::failure::VisitError;
use super::page::Page;
use super::plan::VisitPlan;
use crate::protocol::{CALL_DEADLINE, CallError};

/// A main thread that answers nothing for so long at the deadline is not going to.
const HUNG: Duration = Duration::from_secs(3);

/// When the question came at the wrong moment, e.g. between two documents.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Returns when the page is loaded, painted and quiet, or at the deadline with a warning if there is
/// something to measure. Tells where each document stands as soon as it is there.
pub(super) async fn until_quiet(
    page: &mut Page<'_>,
    plan: &VisitPlan,
    deadline: Instant,
    arrived: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), VisitError> {
    let mut documents = 0;
    // The main thread has been asked, and could not be quiet for long enough before this.
    let mut not_before = Instant::now();
    loop {
        if let Some(failure) = page.loading.failure() {
            return Err(failure.clone().into());
        }
        if page.loading.documents() > documents {
            documents = page.loading.documents();
            arrived(page.loading.final_url());
        }
        let window = if page.loading.is_painted() {
            plan.quiet
        } else {
            plan.blank
        };
        let quiet_at = page.loading.quiet_at(window).map(|at| at.max(not_before));
        let now = Instant::now();
        if now >= deadline {
            return at_the_deadline(page).await;
        }
        match quiet_at {
            Some(at) if now >= at => {
                let since_work = since_long_task(page, deadline).await?;
                if since_work >= window {
                    return quiet(page);
                }
                not_before = Instant::now() + (window - since_work).max(ASK_AGAIN);
            }
            _ => {
                let wake = quiet_at.map_or(deadline, |at| at.min(deadline));
                page.next_event(wake).await?;
            }
        }
    }
}

fn quiet(page: &mut Page<'_>) -> Result<(), VisitError> {
    // What was reported while the main thread was asked.
    if let Some(failure) = page.loading.failure() {
        return Err(failure.clone().into());
    }
    if page.loading.is_painted() {
        return Ok(());
    }
    let message = if page.loading.shows_only_frames() {
        "The page itself shows nothing: what is seen are its frames, which can be audited by their own addresses."
    } else {
        "The page loaded but showed nothing."
    };
    Err(Failure::new(FailureCode::NoPaint, message).into())
}

/// How long the main thread has had no task of more than 50 ms. Zero if it does not say.
async fn since_long_task(page: &mut Page<'_>, deadline: Instant) -> Result<Duration, VisitError> {
    let left = deadline.saturating_duration_since(Instant::now());
    let answer = page
        .evaluate::<f64>(left.min(CALL_DEADLINE), include_str!("long-tasks.js"))
        .await;
    match answer {
        Ok(ms) => Ok(Duration::from_secs_f64(ms.max(0.0) / 1000.0)),
        // Busy, or on its way to another document: both are told by events or the deadline.
        Err(
            CallError::Late { .. } | CallError::Refused { .. } | CallError::Misunderstood { .. },
        ) => Ok(Duration::ZERO),
        Err(error) => Err(error.into()),
    }
}

async fn at_the_deadline(page: &mut Page<'_>) -> Result<(), VisitError> {
    if page.loading.has_document() {
        match page.evaluate::<f64>(HUNG, "0").await {
            Err(CallError::Late { .. }) => {
                return Err(Failure::new(
                    FailureCode::PageHung,
                    "The page's scripts never came to an end.",
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
        page.warn("The page was not quiet when its time was over; what it had done until then was measured.");
        return Ok(());
    }
    Err(Failure::new(
        FailureCode::Timeout,
        "The page showed nothing in the time it had.",
    )
    .into())
}
