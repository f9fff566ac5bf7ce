//! Content security policies, which could forbid what a change inserts.

use super::Effect;
use super::editor::Editor;
use crate::html::{self, Edit, Tag};
use crate::{RecordedExchange, RecordedResponse};

/// The directives that decide how requests are made rather than which ones. Without the first, a
/// page would make requests over HTTP that it made over HTTPS when it was recorded.
const KEPT_DIRECTIVES: [&str; 2] = ["upgrade-insecure-requests", "block-all-mixed-content"];

const HEADER: &str = "content-security-policy";

impl Editor {
    /// Removes the content security policies of documents, and notes it.
    pub fn without_policies(&mut self, documents: &[usize], mut effect: Effect) -> Effect {
        for index in documents {
            let exchange = &mut self.recording.exchanges[*index];
            if remove_policy(exchange) {
                effect.note(format!(
                    "The content security policy of {} is not applied.",
                    exchange.url()
                ));
            }
        }
        effect
    }
}

/// Removes the policies in headers and in the markup, and returns whether there were some.
fn remove_policy(exchange: &mut RecordedExchange) -> bool {
    let Some(response) = &mut exchange.response else {
        return false;
    };
    let in_headers = reduce_headers(response);
    let Ok(content) = response.decoded_body() else {
        return in_headers;
    };
    let edits = html::tags(&content).filter_map(|tag| reduced(&tag));
    let Ok(Some(content)) = html::apply(&content, edits) else {
        return in_headers;
    };
    response.set_decoded_body(&content).is_ok() || in_headers
}

/// Reduces the policies in headers to the kept directives, and returns whether that changed them.
fn reduce_headers(response: &mut RecordedResponse) -> bool {
    let before = response.headers.clone();
    for (name, value) in &mut response.headers {
        if name == HEADER {
            *value = kept_directives(value);
        }
    }
    let is_empty = |(name, value): &(String, String)| name == HEADER && value.is_empty();
    response.headers.retain(|header| !is_empty(header));
    response.headers != before
}

/// Returns the edit that reduces the policy of a `meta` element.
fn reduced(tag: &Tag) -> Option<Edit> {
    let kind = tag.value("http-equiv").filter(|_| tag.name == "meta")?;
    if !kind.eq_ignore_ascii_case(HEADER) {
        return None;
    }
    let content = tag.attribute("content")?;
    let kept = kept_directives(&content.value);
    let text = format!("content=\"{kept}\"");
    (kept != content.value).then(|| Edit {
        span: content.span.clone(),
        text,
    })
}

fn kept_directives(policy: &str) -> String {
    let directives = policy.split([';', ',']).map(str::trim);
    let kept = directives.filter(|it| KEPT_DIRECTIVES.contains(&it.to_ascii_lowercase().as_str()));
    kept.collect::<Vec<_>>().join("; ")
}
