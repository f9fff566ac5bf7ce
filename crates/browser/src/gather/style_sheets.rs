//! The style sheets of the page: their length, minified length and usage.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::time::Duration;
use std::vec::IntoIter;

use plumbline_source::sheet_token_units;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout_at;

use super::scripted::IsolatedWorld;
use super::{Gathered, error_text, to_artifact};
use crate::page::{Caller, StyleSheetHeader, StyleSheets};
use crate::protocol::CallError;

/// Timeout of each call. They are queued behind earlier calls to the page's thread: on a document
/// of 25,000 elements and a busy host that alone took longer than five seconds. Lighthouse gives
/// each call thirty.
const DEADLINE: Duration = Duration::from_secs(20);
const TEXTS_DEADLINE: Duration = Duration::from_secs(5);
/// Maximum total size of the texts in bytes.
const MAX_TEXT_BYTES: usize = 64_000_000;
/// The longest text that is read, in UTF-16 units: escaped, it fits into a message of the browser.
const MAX_SHEET_UNITS: f64 = 16_000_000.0;
/// Maximum size of texts that are requested ahead, in UTF-16 units; a single one may be larger.
const AHEAD_UNITS: f64 = 8_000_000.0;
const PREVIEW_CHARS: usize = 100;

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

/// A style sheet, with lengths in UTF-16 units.
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

/// Length of the used rules by style sheet, in UTF-16 units. As in Lighthouse
/// (core/gather/gatherers/css-usage.js), rules that need a pointer or another width count as
/// unused.
type UsageResult = Result<HashMap<String, f64>, String>;

/// Enables the inspection of style sheets immediately: Chromium then reports them all.
pub(super) fn enable(page: &Caller) -> impl Future<Output = Result<Value, CallError>> + use<> {
    page.send("DOM.enable", json!({}));
    page.call_within(DEADLINE, "CSS.enable", json!({}))
}

/// Measures usage, starting immediately. [`enable`] must have been answered: Chromium executes
/// later calls while it still enables. It executes these in order, so that later calls do not
/// count.
fn measure_usage(
    page: &Caller,
    world: &IsolatedWorld,
) -> impl Future<Output = UsageResult> + use<> {
    let usage_calls = world.clone().map(|context| {
        page.send("CSS.startRuleUsageTracking", json!({}));
        let recompute = "String(document.body && getComputedStyle(document.body).color)";
        let recomputing = page.evaluate::<String>(Some(context), DEADLINE, recompute);
        let measuring = page.call_within::<Usage>(DEADLINE, "CSS.stopRuleUsageTracking", json!({}));
        (recomputing, measuring)
    });
    async move {
        let (recomputing, measuring) = usage_calls?;
        recomputing.await.map_err(|error| error_text(&error))?;
        let rules = measuring
            .await
            .map_err(|error| error_text(&error))?
            .rule_usage;
        let mut used_lengths: HashMap<String, f64> = HashMap::new();
        for rule in rules.into_iter().filter(|rule| rule.used) {
            *used_lengths.entry(rule.style_sheet_id).or_default() +=
                rule.end_offset - rule.start_offset;
        }
        Ok(used_lengths)
    }
}

/// Returns the reported sheets with their usage. Everything is requested at once, and no other
/// evidence waits for it.
pub(super) fn gather(
    page: &Caller,
    world: &IsolatedWorld,
    reported: StyleSheets,
) -> impl Future<Output = Gathered> + use<> {
    let measuring = measure_usage(page, world);
    let mut texts = Texts::new(page, reported);
    texts.request();
    let reading = tokio::spawn(async move { to_artifact(&texts.read(&measuring.await?).await) });
    async move { reading.await.unwrap_or_else(|error| Err(error.to_string())) }
}

#[derive(Deserialize)]
struct Read {
    text: String,
}

type Reading = Pin<Box<dyn Future<Output = Result<Read, CallError>> + Send>>;

/// Texts of all sheets, requested some ahead of the one that is awaited. Ends the inspection as
/// soon as the last is requested, or when dropped.
struct Texts {
    page: Caller,
    waiting: IntoIter<StyleSheetHeader>,
    in_flight: VecDeque<(StyleSheetHeader, Reading)>,
    ahead_units: f64,
    is_ended: bool,
}

impl Texts {
    fn new(page: &Caller, reported: StyleSheets) -> Self {
        let mut headers = reported.into_vec();
        headers.retain(|header| header.length > 0.0 && header.length <= MAX_SHEET_UNITS);
        Self {
            page: page.clone(),
            waiting: headers.into_iter(),
            in_flight: VecDeque::new(),
            ahead_units: 0.0,
            is_ended: false,
        }
    }

    fn request(&mut self) {
        while self.ahead_units < AHEAD_UNITS {
            let Some(header) = self.waiting.next() else {
                // Answered after the texts: calls are answered in order.
                return self.end();
            };
            let params = json!({"styleSheetId": header.style_sheet_id});
            let method = "CSS.getStyleSheetText";
            let reading = self.page.call_within(DEADLINE, method, params);
            self.ahead_units += header.length;
            self.in_flight.push_back((header, Box::pin(reading)));
        }
    }

    async fn read(mut self, used_lengths: &HashMap<String, f64>) -> Vec<Sheet> {
        let deadline = tokio::time::Instant::now() + TEXTS_DEADLINE;
        let mut remaining_bytes = MAX_TEXT_BYTES;
        let mut sheets = Sheets::default();
        while let Some((header, reading)) = self.in_flight.pop_front() {
            let Ok(response) = timeout_at(deadline, reading).await else {
                break;
            };
            self.ahead_units -= header.length;
            self.request();
            let Ok(Read { text }) = response else {
                continue;
            };
            if text.len() > remaining_bytes {
                break;
            }
            remaining_bytes -= text.len();
            let used_length = used_lengths
                .get(&header.style_sheet_id)
                .copied()
                .unwrap_or(0.0);
            sheets.add(header, text, used_length as u64);
        }
        sheets.listed
    }

    fn end(&mut self) {
        if !self.is_ended {
            self.is_ended = true;
            for method in ["CSS.disable", "DOM.disable"] {
                self.page.send(method, json!({}));
            }
        }
    }
}

impl Drop for Texts {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sheets without duplicates: of equal texts the later one counts, as in Lighthouse.
#[derive(Default)]
struct Sheets {
    listed: Vec<Sheet>,
    /// Index of a sheet by its length and a hash of its text with a key of this process, because
    /// texts may be large.
    by_text: HashMap<(u64, usize), usize>,
    hasher: RandomState,
}

impl Sheets {
    fn add(&mut self, header: StyleSheetHeader, text: String, used_length: u64) {
        let has_url = !header.is_inline && !header.source_url.is_empty();
        let sheet = Sheet {
            is_inline: header.is_inline,
            length: text.encode_utf16().count(),
            token_length: sheet_token_units(&text),
            used_length,
            preview: if has_url {
                String::new()
            } else {
                text.chars().take(PREVIEW_CHARS).collect()
            },
            url: header.source_url,
        };
        let key = (self.hasher.hash_one(&text), text.len());
        match self.by_text.get(&key) {
            Some(&at) => self.listed[at] = sheet,
            None => {
                self.by_text.insert(key, self.listed.len());
                self.listed.push(sheet);
            }
        }
    }
}
