//! The style sheets of the page: how long they are, how much of that are tokens, and how much is used.

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
/// The longest text that is read, in UTF-16 units: escaped, it fits into a message of the browser.
const MAX_SHEET_UNITS: f64 = 16_000_000.0;
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
    /// Returns how many bytes of it are kept.
    pub(crate) fn take(&mut self, event: &Event) -> usize {
        match event.read() {
            Some(Added { header }) if self.0.len() < MAX_SHEETS => {
                let texts = header.source_url.len();
                self.0.push(header);
                texts + size_of::<Header>()
            }
            _ => 0,
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
type Used = Result<HashMap<String, f64>, String>;

/// Turns the inspection of style sheets on, at once: Chromium then reports them all.
pub(super) fn ask(page: &Caller) -> impl Future<Output = Result<Value, CallError>> + use<> {
    page.send("DOM.enable", json!({}));
    page.call_within(DEADLINE, "CSS.enable", json!({}))
}

/// Looks at what is used, from now on. [`ask`] must have been answered: Chromium goes on with later calls while it still
/// enables. These it does in order, so that what is sent after them does not count.
fn used(page: &Caller, ours: &OurWorld) -> impl Future<Output = Used> + use<> {
    let asked = ours.clone().map(|context| {
        page.send("CSS.startRuleUsageTracking", json!({}));
        let recompute = "String(document.body && getComputedStyle(document.body).color)";
        let recomputed = page.evaluate::<String>(Some(context), DEADLINE, recompute);
        let usage = page.call_within::<Usage>(DEADLINE, "CSS.stopRuleUsageTracking", json!({}));
        (recomputed, usage)
    });
    async move {
        let (recomputed, usage) = asked?;
        recomputed.await.map_err(|error| missing(&error))?;
        let rules = usage.await.map_err(|error| missing(&error))?.rule_usage;
        let mut used: HashMap<String, f64> = HashMap::new();
        for rule in rules.into_iter().filter(|rule| rule.used) {
            *used.entry(rule.style_sheet_id).or_default() += rule.end_offset - rule.start_offset;
        }
        Ok(used)
    }
}

/// Those that were reported, with what is used of them. Everything is on its way at once, and nobody else waits for it.
pub(super) fn gather(
    page: &Caller,
    ours: &OurWorld,
    reported: StyleSheets,
) -> impl Future<Output = Gathered> + use<> {
    let used = used(page, ours);
    let mut texts = Texts::new(page, reported);
    texts.ask();
    let reading = tokio::spawn(async move { gathered(&texts.read(&used.await?).await) });
    async move { reading.await.unwrap_or_else(|error| Err(error.to_string())) }
}

#[derive(Deserialize)]
struct Read {
    text: String,
}

type Reading = Pin<Box<dyn Future<Output = Result<Read, CallError>> + Send>>;

/// The texts of all sheets, asked for some ahead of the one that is waited for. Ends the inspection as soon as the last is
/// asked for, or nobody wants to know any more.
struct Texts {
    page: Caller,
    waiting: IntoIter<Header>,
    on_their_way: VecDeque<(Header, Reading)>,
    ahead_units: f64,
    is_over: bool,
}

impl Texts {
    fn new(page: &Caller, reported: StyleSheets) -> Self {
        let mut headers = reported.0;
        headers.retain(|header| header.length > 0.0 && header.length <= MAX_SHEET_UNITS);
        Self {
            page: page.clone(),
            waiting: headers.into_iter(),
            on_their_way: VecDeque::new(),
            ahead_units: 0.0,
            is_over: false,
        }
    }

    fn ask(&mut self) {
        while self.ahead_units < AHEAD_UNITS {
            let Some(header) = self.waiting.next() else {
                // Answered after the texts: calls are answered in order.
                return self.end();
            };
            let params = json!({"styleSheetId": header.style_sheet_id});
            let method = "CSS.getStyleSheetText";
            let reading = self.page.call_within(DEADLINE, method, params);
            self.ahead_units += header.length;
            self.on_their_way.push_back((header, Box::pin(reading)));
        }
    }

    async fn read(mut self, used: &HashMap<String, f64>) -> Vec<Sheet> {
        let given_up = tokio::time::Instant::now() + TEXTS_DEADLINE;
        let mut left_bytes = MAX_TEXT_BYTES;
        let mut sheets = Sheets::default();
        while let Some((header, reading)) = self.on_their_way.pop_front() {
            let Ok(read) = timeout_at(given_up, reading).await else {
                break;
            };
            self.ahead_units -= header.length;
            self.ask();
            let Ok(Read { text }) = read else {
                continue;
            };
            if text.len() > left_bytes {
                break;
            }
            left_bytes -= text.len();
            let used_length = used.get(&header.style_sheet_id).copied().unwrap_or(0.0);
            sheets.add(header, text, used_length as u64);
        }
        sheets.listed
    }

    fn end(&mut self) {
        if !self.is_over {
            self.is_over = true;
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

/// The same text twice is one sheet, and the later one's: that is how Lighthouse counts.
#[derive(Default)]
struct Sheets {
    listed: Vec<Sheet>,
    /// By a hash of the text with a key of this process, and its length: texts themselves may be large.
    by_text: HashMap<(u64, usize), usize>,
    hasher: RandomState,
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
