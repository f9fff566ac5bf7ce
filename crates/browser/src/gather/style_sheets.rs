//! The style sheets of the page: how long they are, how much of that are tokens, and how much is used.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use plumbline_source::sheet_token_units;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Gathered, gathered, missing};
use crate::protocol::{CallError, Event};
use crate::visit::Page;

/// For each call. They stand behind what was sent to the page's thread before: on a document of 25,000 elements and a busy
/// host that alone took longer than five seconds. Lighthouse gives each call thirty.
const DEADLINE: Duration = Duration::from_secs(20);
const TEXTS_DEADLINE: Duration = Duration::from_secs(5);
const MAX_SHEETS: usize = 5_000;
/// Of all texts together, in bytes.
const MAX_TEXT_BYTES: usize = 64_000_000;
/// Texts on their way: one may be large.
const AT_ONCE: usize = 8;
const PREVIEW_CHARS: usize = 100;

/// What the protocol reports while style sheets are looked at.
#[derive(Default)]
pub(crate) struct StyleSheets(Vec<Header>);

#[derive(Deserialize)]
struct Added {
    header: Header,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    style_sheet_id: String,
    #[serde(default, rename = "sourceURL")]
    source_url: String,
    #[serde(default)]
    is_inline: bool,
    #[serde(default)]
    length: f64,
}

impl StyleSheets {
    pub(crate) fn take(&mut self, event: &Event) {
        if self.0.len() < MAX_SHEETS
            && let Some(Added { header }) = event.read()
        {
            self.0.push(header);
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    rule_usage: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    style_sheet_id: String,
    start_offset: f64,
    end_offset: f64,
    used: bool,
}

/// Lengths in UTF-16 units.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sheet {
    url: String,
    is_inline: bool,
    length: usize,
    token_length: usize,
    used_length: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    preview: String,
}

/// Rules are looked at as the page stands, as Lighthouse does (core/gather/gatherers/css-usage.js): what only a
/// pointer or another width would bring counts as unused.
pub(super) async fn gather(page: &mut Page<'_>) -> Gathered {
    let sheets = look(page).await;
    for method in ["CSS.disable", "DOM.disable"] {
        page.caller().send(method, json!({}));
    }
    gathered(&sheets.map_err(|error| missing(&error))?)
}

async fn look(page: &mut Page<'_>) -> Result<Vec<Sheet>, CallError> {
    // One by one: Chromium goes on with later calls while it still enables.
    for method in ["DOM.enable", "CSS.enable", "CSS.startRuleUsageTracking"] {
        page.call_within::<Value>(DEADLINE, method, json!({}))
            .await?;
    }
    let recompute = "String(document.body && getComputedStyle(document.body).color)";
    page.evaluate::<String>(DEADLINE, recompute).await?;
    let usage: Usage = page
        .call_within(DEADLINE, "CSS.stopRuleUsageTracking", json!({}))
        .await?;
    let mut used: HashMap<String, f64> = HashMap::new();
    for rule in usage.rule_usage.into_iter().filter(|rule| rule.used) {
        *used.entry(rule.style_sheet_id).or_default() += rule.end_offset - rule.start_offset;
    }
    let headers = page.take_style_sheets().0;
    texts(page, headers, &used).await
}

async fn texts(
    page: &mut Page<'_>,
    headers: Vec<Header>,
    used: &HashMap<String, f64>,
) -> Result<Vec<Sheet>, CallError> {
    #[derive(Deserialize)]
    struct Read {
        text: String,
    }
    let given_up = Instant::now() + TEXTS_DEADLINE;
    let mut left_bytes = MAX_TEXT_BYTES;
    let mut sheets: Vec<Sheet> = Vec::new();
    // The same text twice is one sheet, and the later one's: that is how Lighthouse counts.
    let mut known: HashMap<String, usize> = HashMap::new();
    let caller = page.caller();
    let asked = |header: Header| {
        let left = given_up.saturating_duration_since(Instant::now());
        let params = json!({"styleSheetId": header.style_sheet_id});
        let read = caller.call_within::<Read>(left, "CSS.getStyleSheetText", params);
        (header, read)
    };
    let mut waiting = headers.into_iter().filter(|header| header.length > 0.0);
    let mut on_their_way: VecDeque<_> = waiting.by_ref().take(AT_ONCE).map(asked).collect();
    while let Some((header, read)) = on_their_way.pop_front() {
        let read = page.during(read).await;
        on_their_way.extend(waiting.next().map(asked));
        let Ok(Read { text }) = read else {
            continue;
        };
        if text.len() > left_bytes {
            break;
        }
        left_bytes -= text.len();
        let has_address = !header.is_inline && !header.source_url.is_empty();
        let sheet = Sheet {
            is_inline: header.is_inline,
            length: text.encode_utf16().count(),
            token_length: sheet_token_units(&text),
            used_length: used.get(&header.style_sheet_id).copied().unwrap_or(0.0) as u64,
            preview: match has_address {
                true => String::new(),
                false => text.chars().take(PREVIEW_CHARS).collect(),
            },
            url: header.source_url,
        };
        match known.get(&text) {
            Some(&at) => sheets[at] = sheet,
            None => {
                known.insert(text, sheets.len());
                sheets.push(sheet);
            }
        }
    }
    Ok(sheets)
}
