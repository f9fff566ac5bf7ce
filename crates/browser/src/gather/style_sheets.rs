//! The style sheets of the page: how long they are, how much of that are tokens, and how much is used.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::time::{Duration, Instant};

use plumbline_source::sheet_token_units;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::scripted::OurWorld;
use super::{Gathered, gathered, missing};
use crate::protocol::{CallError, Event};
use crate::visit::Caller;

/// For each call. They stand behind what was sent to the page's thread before: on a document of 25,000 elements and a busy
/// host that alone took longer than five seconds. Lighthouse gives each call thirty.
const DEADLINE: Duration = Duration::from_secs(20);
const TEXTS_DEADLINE: Duration = Duration::from_secs(5);
const MAX_SHEETS: usize = 5_000;
/// Of all texts together, in bytes.
const MAX_TEXT_BYTES: usize = 64_000_000;
/// Of texts on their way, in UTF-16 units; one may be larger.
const AHEAD_UNITS: f64 = 8_000_000.0;
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

/// Which rules the page uses as it stands, as Lighthouse looks at them (core/gather/gatherers/css-usage.js): what only a
/// pointer or another width would bring counts as unused. By style sheet, in UTF-16 units.
pub(super) type Used = Result<HashMap<String, f64>, String>;

/// Turns the inspection of style sheets on, at once: Chromium then reports them all.
pub(super) fn ask(page: &Caller) -> impl Future<Output = Result<Value, CallError>> + use<> {
    page.send("DOM.enable", json!({}));
    page.call_within(DEADLINE, "CSS.enable", json!({}))
}

/// Chromium goes on with later calls while it still enables, so that is waited for. What follows it does in order.
pub(super) async fn used(
    page: &Caller,
    ours: OurWorld,
    enabled: impl Future<Output = Result<Value, CallError>>,
) -> Used {
    let context = ours?;
    let missing = |error: CallError| missing(&error);
    enabled.await.map_err(missing)?;
    page.send("CSS.startRuleUsageTracking", json!({}));
    let recompute = "String(document.body && getComputedStyle(document.body).color)";
    let recomputed = page.evaluate::<String>(Some(context), DEADLINE, recompute);
    let usage = page.call_within::<Usage>(DEADLINE, "CSS.stopRuleUsageTracking", json!({}));
    recomputed.await.map_err(missing)?;
    let mut used: HashMap<String, f64> = HashMap::new();
    let rules = usage.await.map_err(missing)?.rule_usage;
    for rule in rules.into_iter().filter(|rule| rule.used) {
        *used.entry(rule.style_sheet_id).or_default() += rule.end_offset - rule.start_offset;
    }
    Ok(used)
}

/// Those that were reported, with what is used of them. The texts are on their way at once, and nobody else waits for
/// them.
pub(super) fn gather(
    page: &Caller,
    reported: StyleSheets,
    used: Used,
) -> impl Future<Output = Gathered> + use<> {
    let page = page.clone();
    let reading = tokio::spawn(async move {
        match used {
            Ok(used) => gathered(&texts(&page, reported.0, &used).await),
            Err(reason) => {
                end(&page);
                Err(reason)
            }
        }
    });
    async move { reading.await.unwrap_or_else(|error| Err(error.to_string())) }
}

fn end(page: &Caller) {
    for method in ["CSS.disable", "DOM.disable"] {
        page.send(method, json!({}));
    }
}

async fn texts(page: &Caller, headers: Vec<Header>, used: &HashMap<String, f64>) -> Vec<Sheet> {
    #[derive(Deserialize)]
    struct Read {
        text: String,
    }
    let given_up = Instant::now() + TEXTS_DEADLINE;
    let (mut left_bytes, mut ahead_units) = (MAX_TEXT_BYTES, 0.0);
    let mut sheets = Sheets::default();
    let mut waiting = headers.into_iter().filter(|header| header.length > 0.0);
    let mut on_their_way = VecDeque::new();
    let mut is_over = false;
    loop {
        while !is_over && ahead_units < AHEAD_UNITS {
            let Some(header) = waiting.next() else {
                // Answered after the texts: calls are answered in order.
                end(page);
                is_over = true;
                break;
            };
            ahead_units += header.length;
            let left = given_up.saturating_duration_since(Instant::now());
            let params = json!({"styleSheetId": header.style_sheet_id});
            let read = page.call_within::<Read>(left, "CSS.getStyleSheetText", params);
            on_their_way.push_back((header, read));
        }
        let Some((header, read)) = on_their_way.pop_front() else {
            break;
        };
        ahead_units -= header.length;
        let Ok(Read { text }) = read.await else {
            continue;
        };
        if text.len() > left_bytes {
            break;
        }
        left_bytes -= text.len();
        let used_length = used.get(&header.style_sheet_id).copied().unwrap_or(0.0);
        sheets.add(header, text, used_length as u64);
    }
    if !is_over {
        end(page);
    }
    sheets.listed
}

/// The same text twice is one sheet, and the later one's: that is how Lighthouse counts.
#[derive(Default)]
struct Sheets {
    listed: Vec<Sheet>,
    by_text: HashMap<String, usize>,
}

impl Sheets {
    fn add(&mut self, header: Header, text: String, used_length: u64) {
        let has_address = !header.is_inline && !header.source_url.is_empty();
        let sheet = Sheet {
            is_inline: header.is_inline,
            length: text.encode_utf16().count(),
            token_length: sheet_token_units(&text),
            used_length,
            preview: match has_address {
                true => String::new(),
                false => text.chars().take(PREVIEW_CHARS).collect(),
            },
            url: header.source_url,
        };
        match self.by_text.get(&text) {
            Some(&at) => self.listed[at] = sheet,
            None => {
                self.by_text.insert(text, self.listed.len());
                self.listed.push(sheet);
            }
        }
    }
}
