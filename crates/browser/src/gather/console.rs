//! Console messages, exceptions and warnings while the page loaded.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::protocol::Event;

const MAX_LINES: usize = 5_000;
const MAX_CHARS: usize = 10_240;
const MAX_ISSUES: usize = 2_000;

/// Records until stopped, so that messages caused by our own scripts are excluded.
#[derive(Default)]
pub(crate) struct Console {
    lines: Vec<Line>,
    issues: Vec<Box<RawValue>>,
    stopped: bool,
}

/// A console entry with zero-based line and column.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Line {
    source: String,
    level: String,
    text: String,
    url: Option<String>,
    line: Option<i64>,
    column: Option<i64>,
}

impl Console {
    /// Returns how many bytes of it are kept.
    pub(crate) fn take(&mut self, event: &Event) -> usize {
        if self.stopped {
            return 0;
        }
        let line = match event.method.as_str() {
            "Log.entryAdded" => event.read().map(|Added { entry }| entry.into()),
            "Runtime.consoleAPICalled" => event.read().and_then(Called::into_line),
            "Runtime.exceptionThrown" => event.read().and_then(Thrown::into_line),
            "Audits.issueAdded" => return self.take_issue(event),
            _ => None,
        };
        match line {
            Some(mut line) if self.lines.len() < MAX_LINES => {
                if let Some((end, _)) = line.text.char_indices().nth(MAX_CHARS) {
                    line.text.truncate(end);
                    line.text.shrink_to_fit();
                }
                let bytes = line.text.len() + line.url.as_ref().map_or(0, String::len);
                self.lines.push(line);
                bytes + size_of::<Line>()
            }
            _ => 0,
        }
    }

    fn take_issue(&mut self, event: &Event) -> usize {
        match event.read() {
            Some(Issue { issue }) if self.issues.len() < MAX_ISSUES => {
                let bytes = issue.get().len();
                self.issues.push(issue);
                bytes
            }
            _ => 0,
        }
    }

    pub(crate) fn stop(&mut self) -> (Vec<Line>, Vec<Box<RawValue>>) {
        self.stopped = true;
        (
            std::mem::take(&mut self.lines),
            std::mem::take(&mut self.issues),
        )
    }
}

#[derive(Deserialize)]
struct Issue {
    issue: Box<RawValue>,
}

#[derive(Deserialize)]
struct Added {
    entry: Entry,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    source: String,
    level: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    line_number: Option<i64>,
    #[serde(default)]
    stack_trace: Option<Stack>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stack {
    #[serde(default)]
    call_frames: Vec<Call>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call {
    #[serde(default)]
    url: String,
    #[serde(default)]
    line_number: Option<i64>,
    #[serde(default)]
    column_number: Option<i64>,
}

fn top(stack: Option<Stack>) -> Option<Call> {
    stack?.call_frames.into_iter().next()
}

impl From<Entry> for Line {
    fn from(entry: Entry) -> Self {
        Self {
            source: entry.source,
            level: entry.level,
            text: entry.text,
            url: entry.url,
            line: entry.line_number,
            column: top(entry.stack_trace).and_then(|call| call.column_number),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Called {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    args: Vec<Argument>,
    #[serde(default)]
    stack_trace: Option<Stack>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    subtype: Option<String>,
    #[serde(default)]
    class_name: Option<String>,
    #[serde(default)]
    value: Option<Value>,
    #[serde(default)]
    description: Option<String>,
}

impl Argument {
    fn text(self) -> String {
        match (self.value, self.description) {
            (Some(Value::String(text)), _) => text,
            (Some(value), _) if !value.is_null() => value.to_string(),
            (_, Some(description)) if self.class_name.as_ref() != Some(&description) => description,
            _ => {
                let kind = self.subtype.unwrap_or(self.kind);
                format!("[{kind} {}]", self.class_name.unwrap_or_default())
            }
        }
    }
}

impl Called {
    fn into_line(self) -> Option<Line> {
        let source = match self.kind.as_str() {
            "warning" => "console.warn",
            "error" => "console.error",
            _ => return None,
        };
        let words: Vec<String> = self.args.into_iter().map(Argument::text).collect();
        let (text, call) = (words.join(" "), top(self.stack_trace));
        if text.is_empty() && call.is_none() {
            return None;
        }
        let call = call.as_ref();
        Some(Line {
            source: source.to_owned(),
            level: self.kind,
            text,
            url: call.map(|call| call.url.clone()),
            line: call.and_then(|call| call.line_number),
            column: call.and_then(|call| call.column_number),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thrown {
    exception_details: Exception,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Exception {
    #[serde(default)]
    text: String,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    line_number: Option<i64>,
    #[serde(default)]
    column_number: Option<i64>,
    #[serde(default)]
    exception: Option<Argument>,
}

impl Thrown {
    fn into_line(self) -> Option<Line> {
        let details = self.exception_details;
        let described = details.exception.and_then(|thrown| thrown.description);
        let text = described.unwrap_or(details.text);
        (!text.is_empty()).then(|| Line {
            source: "exception".to_owned(),
            level: "error".to_owned(),
            text,
            url: details.url,
            line: details.line_number,
            column: details.column_number,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(events: &[(&str, Value)]) -> Vec<Line> {
        let mut console = Console::default();
        for (method, params) in events {
            console.take(&Event::made(method, params));
        }
        console.stop().0
    }

    #[test]
    fn warnings_and_errors_are_kept_with_their_place_and_other_calls_are_not() {
        let call = |kind: &str| {
            json!({"type": kind, "args": [{"type": "string", "value": "a"}, {"type": "number", "value": 1}],
                "stackTrace": {"callFrames": [{"url": "u", "lineNumber": 3, "columnNumber": 7}]}})
        };
        let entries = lines(&[
            ("Runtime.consoleAPICalled", call("log")),
            ("Runtime.consoleAPICalled", call("error")),
        ]);
        assert_eq!(entries.len(), 1);
        assert_eq!(
            (entries[0].text.as_str(), entries[0].line),
            ("a 1", Some(3))
        );
        assert_eq!(entries[0].source, "console.error");
    }

    #[test]
    fn an_exception_is_told_by_its_description() {
        let thrown = json!({"exceptionDetails": {"text": "Uncaught", "url": "u", "lineNumber": 0,
            "exception": {"type": "object", "description": "Error: no"}}});
        assert_eq!(
            lines(&[("Runtime.exceptionThrown", thrown)])[0].text,
            "Error: no"
        );
    }

    #[test]
    fn what_comes_after_the_stop_is_not_the_pages() {
        let mut console = Console::default();
        console.stop();
        let params = json!({"entry": {"source": "network", "level": "error", "text": "x"}});
        let kept = console.take(&Event::made("Log.entryAdded", &params));
        assert_eq!(kept, 0);
        assert!(console.stop().0.is_empty());
    }

    #[test]
    fn what_is_kept_of_a_line_is_bounded_and_counted() {
        let mut console = Console::default();
        let text = "x".repeat(10 * MAX_CHARS);
        let params = json!({"entry": {"source": "network", "level": "error", "text": text,
            "url": "data:,".to_owned() + &text}});
        let kept = console.take(&Event::made("Log.entryAdded", &params));
        assert!(kept >= 11 * MAX_CHARS, "{kept}");
        assert_eq!(console.stop().0[0].text.len(), MAX_CHARS);
    }
}
