//! Tests the back/forward cache by navigating away and back. Nothing can be gathered after this.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Gathered, error_text, to_artifact};
use crate::protocol::Event;
use crate::visit::Page;

const DEADLINE: Duration = Duration::from_secs(5);
/// Time that Lighthouse waits for the reasons (core/gather/gatherers/bf-cache-failures.js). It also
/// pauses before it goes back; here there is no need, because the browser has decided what to cache
/// when the other page loaded.
const REASONS_DEADLINE: Duration = Duration::from_millis(500);
/// Page to navigate to. Not an empty page, which may share the page's group and then prevents
/// caching (github.com/GoogleChrome/lighthouse/issues/14665).
const OTHER_PAGE: &str = "chrome://terms";

/// Events of the navigation there and back.
#[derive(Default)]
pub(crate) struct Departure {
    has_loaded: bool,
    /// Navigation type of the main frame's last document.
    arrival: Option<String>,
    explanations: Option<NotUsed>,
}

#[derive(Deserialize)]
struct Navigated {
    frame: Frame,
    #[serde(default, rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    parent_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotUsed {
    #[serde(default)]
    not_restored_explanations: Vec<Explanation>,
    not_restored_explanations_tree: Option<Tree>,
}

#[derive(Deserialize)]
struct Tree {
    #[serde(default)]
    url: String,
    #[serde(default)]
    explanations: Vec<Explanation>,
    #[serde(default)]
    children: Vec<Tree>,
}

#[derive(Deserialize)]
struct Explanation {
    #[serde(rename = "type")]
    kind: String,
    reason: String,
}

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

impl Departure {
    pub(crate) fn take(&mut self, event: &Event, method_name: &str) {
        match method_name {
            "loadEventFired" => self.has_loaded = true,
            "frameNavigated" => {
                if let Some(Navigated { frame, kind }) = event.read()
                    && frame.parent_id.is_none()
                {
                    self.arrival = Some(kind);
                }
            }
            "backForwardCacheNotUsed" => self.explanations = event.read(),
            _ => {}
        }
    }
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

    page.depart();
    let away = json!({"url": OTHER_PAGE});
    page.call_within::<Value>(DEADLINE, "Page.navigate", away)
        .await
        .map_err(|error| error_text(&error))?;
    wait_until(page, deadline, |departure| departure.has_loaded).await?;

    page.depart();
    let back = json!({"entryId": entry});
    page.call_within::<Value>(DEADLINE, "Page.navigateToHistoryEntry", back)
        .await
        .map_err(|error| error_text(&error))?;
    wait_until(page, deadline, |departure| departure.arrival.is_some()).await?;
    let was_restored =
        |departure: &Departure| departure.arrival.as_deref() == Some("BackForwardCacheRestore");
    if !page.departure().is_some_and(was_restored) {
        let deadline = Instant::now() + REASONS_DEADLINE;
        wait_until(page, deadline, |departure| departure.explanations.is_some()).await?;
    }
    let departure = page.departure();
    to_artifact(&BackForward {
        was_restored: departure.is_some_and(was_restored),
        reasons: departure
            .and_then(|departure| departure.explanations.as_ref())
            .map_or_else(Vec::new, reasons),
    })
}

async fn wait_until(
    page: &mut Page<'_>,
    deadline: Instant,
    is_done: impl Fn(&Departure) -> bool,
) -> Result<(), String> {
    while !page.departure().is_some_and(&is_done) {
        match page.next_event(deadline).await {
            Ok(true) => {}
            Ok(false) => return Err("navigating away and back timed out".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

fn reasons(not_used: &NotUsed) -> Vec<NotRestored> {
    fn collect_reasons(tree: &Tree, reasons: &mut Vec<NotRestored>) {
        let here = tree.explanations.iter();
        reasons.extend(here.map(|explanation| not_restored(explanation, Some(&tree.url))));
        for child in &tree.children {
            collect_reasons(child, reasons);
        }
    }
    fn not_restored(explanation: &Explanation, url: Option<&String>) -> NotRestored {
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
    fn reasons_are_told_by_frame_where_the_browser_knows_it() {
        let flat = json!([{"type": "Circumstantial", "reason": "WebSocket"}]);
        let tree = json!({"url": "https://a.test/", "explanations": flat, "children": [
            {"url": "https://b.test/", "explanations": flat, "children": []}]});
        let urls = |not_used: Value| -> Vec<Option<String>> {
            let not_used: NotUsed = serde_json::from_value(not_used).unwrap();
            reasons(&not_used)
                .into_iter()
                .map(|why| why.frame_url)
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
