//! Tests the back/forward cache by navigating away and back. Nothing can be gathered after this.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Gathered, error_text, to_artifact};
use crate::page::{CacheNotUsed, NotRestoredExplanation, NotRestoredFrame, Page, RoundTrip};

const DEADLINE: Duration = Duration::from_secs(5);
/// Time that Lighthouse waits for the reasons (core/gather/gatherers/bf-cache-failures.js). It also
/// pauses before it goes back; here there is no need, because the browser has decided what to cache
/// when the other page loaded.
const REASONS_DEADLINE: Duration = Duration::from_millis(500);
/// Page to navigate to. Not an empty page, which may share the page's group and then prevents
/// caching (github.com/GoogleChrome/lighthouse/issues/14665).
const OTHER_PAGE: &str = "chrome://terms";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BackForward {
    was_restored: bool,
    reasons: Vec<NotRestored>,
}

#[derive(Serialize, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
struct NotRestored {
    reason: String,
    kind: String,
    frame_url: Option<String>,
}

pub(super) async fn gather(page: &mut Page<'_>) -> Gathered {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct History {
        current_index: usize,
        entries: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        id: i64,
    }
    let deadline = Instant::now() + DEADLINE;
    let history: History = page
        .call_within(DEADLINE, "Page.getNavigationHistory", json!({}))
        .await
        .map_err(|error| error_text(&error))?;
    let entry = history.entries.get(history.current_index);
    let entry = entry
        .ok_or("the browser reports no current history entry")?
        .id;

    page.start_round_trip();
    let away = json!({"url": OTHER_PAGE});
    page.call_within::<Value>(DEADLINE, "Page.navigate", away)
        .await
        .map_err(|error| error_text(&error))?;
    wait_until(page, deadline, |trip| trip.has_loaded).await?;

    page.start_round_trip();
    let back = json!({"entryId": entry});
    page.call_within::<Value>(DEADLINE, "Page.navigateToHistoryEntry", back)
        .await
        .map_err(|error| error_text(&error))?;
    wait_until(page, deadline, |trip| trip.navigation_type.is_some()).await?;
    let was_restored =
        |trip: &RoundTrip| trip.navigation_type.as_deref() == Some("BackForwardCacheRestore");
    if !page.round_trip().is_some_and(was_restored) {
        let deadline = Instant::now() + REASONS_DEADLINE;
        wait_until(page, deadline, |trip| trip.cache_not_used.is_some()).await?;
    }
    let round_trip = page.round_trip();
    to_artifact(&BackForward {
        was_restored: round_trip.is_some_and(was_restored),
        reasons: round_trip
            .and_then(|trip| trip.cache_not_used.as_ref())
            .map_or_else(Vec::new, reasons),
    })
}

async fn wait_until(
    page: &mut Page<'_>,
    deadline: Instant,
    is_done: impl Fn(&RoundTrip) -> bool,
) -> Result<(), String> {
    while !page.round_trip().is_some_and(&is_done) {
        match page.next_event(deadline).await {
            Ok(true) => {}
            Ok(false) => return Err("navigating away and back timed out".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

fn reasons(not_used: &CacheNotUsed) -> Vec<NotRestored> {
    fn collect_reasons(tree: &NotRestoredFrame, reasons: &mut Vec<NotRestored>) {
        let here = tree.explanations.iter();
        reasons.extend(here.map(|explanation| not_restored(explanation, Some(&tree.url))));
        for child in &tree.children {
            collect_reasons(child, reasons);
        }
    }
    fn not_restored(explanation: &NotRestoredExplanation, url: Option<&String>) -> NotRestored {
        NotRestored {
            reason: explanation.reason.clone(),
            kind: explanation.kind.clone(),
            frame_url: url.cloned(),
        }
    }
    let Some(tree) = &not_used.not_restored_explanations_tree else {
        let all = not_used.not_restored_explanations.iter();
        return all
            .map(|explanation| not_restored(explanation, None))
            .collect();
    };
    let mut reasons = Vec::new();
    collect_reasons(tree, &mut reasons);
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_the_frame_if_the_browser_reports_it() {
        let flat = json!([{"type": "Circumstantial", "reason": "WebSocket"}]);
        let tree = json!({"url": "https://a.test/", "explanations": flat, "children": [
            {"url": "https://b.test/", "explanations": flat, "children": []}]});
        let urls = |not_used: Value| -> Vec<Option<String>> {
            let not_used: CacheNotUsed = serde_json::from_value(not_used).unwrap();
            reasons(&not_used)
                .into_iter()
                .map(|not_restored| not_restored.frame_url)
                .collect()
        };
        assert_eq!(urls(json!({"notRestoredExplanations": flat})), [None]);
        let both =
            urls(json!({"notRestoredExplanations": flat, "notRestoredExplanationsTree": tree}));
        assert_eq!(
            both,
            [
                Some("https://a.test/".to_owned()),
                Some("https://b.test/".to_owned())
            ]
        );
    }
}
