//! Records console messages, exceptions and issues while the page loads.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::protocol::ProtocolEvent;

const MAX_ENTRIES: usize = 5_000;
const MAX_CHARS: usize = 10_240;
const MAX_ISSUES: usize = 2_000;

/// A recorder of console entries and issues. It is stopped before our own scripts run.
#[derive(Default)]
pub(crate) struct Console {
    entries: Vec<ConsoleEntry>,
    issues: Vec<Box<RawValue>>,
    is_stopped: bool,
}

/// A console entry with zero-based line and column.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ConsoleEntry {
    source: String,
    level: String,
    text: String,
    url: Option<String>,
    line: Option<i64>,
    column: Option<i64>,
}

impl Console {
    /// Records an event and returns how many bytes of it are kept.
    pub(super) fn record(&mut self, event: &ProtocolEvent) -> usize {
        if self.is_stopped {
            return 0;
        }
        let entry = match event.method.as_str() {
            "Log.entryAdded" => event.read().map(|EntryAdded { entry }| entry.into()),
            "Runtime.consoleAPICalled" => event.read().and_then(ApiCalled::into_entry),
            "Runtime.exceptionThrown" => event.read().and_then(ExceptionThrown::into_entry),
            "Audits.issueAdded" => return self.record_issue(event),
            _ => None,
        };
        match entry {
            Some(mut entry) if self.entries.len() < MAX_ENTRIES => {
                if let Some((end, _)) = entry.text.char_indices().nth(MAX_CHARS) {
                    entry.text.truncate(end);
                    entry.text.shrink_to_fit();
                }
                let bytes = entry.text.len() + entry.url.as_ref().map_or(0, String::len);
                self.entries.push(entry);
                bytes + size_of::<ConsoleEntry>()
            }
            _ => 0,
        }
    }

    fn record_issue(&mut self, event: &ProtocolEvent) -> usize {
        match event.read() {
            Some(IssueAdded { issue }) if self.issues.len() < MAX_ISSUES => {
                let bytes = issue.get().len();
                self.issues.push(issue);
                bytes
            }
            _ => 0,
        }
    }

    /// Stops recording and returns the recorded entries and issues.
    pub(super) fn stop(&mut self) -> (Vec<ConsoleEntry>, Vec<Box<RawValue>>) {
        self.is_stopped = true;
        (
            std::mem::take(&mut self.entries),
            std::mem::take(&mut self.issues),
        )
    }
}

#[derive(Deserialize)]
struct IssueAdded {
    issue: Box<RawValue>,
}

#[derive(Deserialize)]
struct EntryAdded {
    entry: LogEntry,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogEntry {
    source: String,
    level: String,
    #[serde(flatten)]
    message: Message,
    #[serde(default)]
    stack_trace: Option<StackTrace>,
}

/// The text and the position that log entries and exceptions have in common.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(default)]
    text: String,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    line_number: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StackTrace {
    #[serde(default)]
    call_frames: Vec<CallFrame>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame {
    #[serde(default)]
    url: String,
    #[serde(default)]
    line_number: Option<i64>,
    #[serde(default)]
    column_number: Option<i64>,
}

fn top_frame(stack: Option<StackTrace>) -> Option<CallFrame> {
    stack?.call_frames.into_iter().next()
}

impl From<LogEntry> for ConsoleEntry {
    fn from(entry: LogEntry) -> Self {
        Self {
            source: entry.source,
            level: entry.level,
            text: entry.message.text,
            url: entry.message.url,
            line: entry.message.line_number,
            column: top_frame(entry.stack_trace).and_then(|frame| frame.column_number),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiCalled {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    args: Vec<Argument>,
    #[serde(default)]
    stack_trace: Option<StackTrace>,
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

impl ApiCalled {
    fn into_entry(self) -> Option<ConsoleEntry> {
        let source = match self.kind.as_str() {
            "warning" => "console.warn",
            "error" => "console.error",
            _ => return None,
        };
        let words: Vec<String> = self.args.into_iter().map(Argument::text).collect();
        let (text, frame) = (words.join(" "), top_frame(self.stack_trace));
        if text.is_empty() && frame.is_none() {
            return None;
        }
        let frame = frame.as_ref();
        Some(ConsoleEntry {
            source: source.to_owned(),
            level: self.kind,
            text,
            url: frame.map(|frame| frame.url.clone()),
            line: frame.and_then(|frame| frame.line_number),
            column: frame.and_then(|frame| frame.column_number),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExceptionThrown {
    exception_details: ExceptionDetails,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExceptionDetails {
    #[serde(flatten)]
    message: Message,
    #[serde(default)]
    column_number: Option<i64>,
    #[serde(default)]
    exception: Option<Argument>,
}

impl ExceptionThrown {
    fn into_entry(self) -> Option<ConsoleEntry> {
        let details = self.exception_details;
        let description = details
            .exception
            .and_then(|exception| exception.description);
        let text = description.unwrap_or(details.message.text);
        (!text.is_empty()).then(|| ConsoleEntry {
            source: "exception".to_owned(),
            level: "error".to_owned(),
            text,
            url: details.message.url,
            line: details.message.line_number,
            column: details.column_number,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(events: &[(&str, Value)]) -> Vec<ConsoleEntry> {
        let mut console = Console::default();
        for (method, params) in events {
            console.record(&ProtocolEvent::for_test(method, params));
        }
        console.stop().0
    }

    #[test]
    fn only_warnings_and_errors_are_recorded_with_their_position() {
        let call = |kind: &str| {
            json!({"type": kind, "args": [{"type": "string", "value": "a"}, {"type": "number", "value": 1}],
                "stackTrace": {"callFrames": [{"url": "u", "lineNumber": 3, "columnNumber": 7}]}})
        };
        let entries = record(&[
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
    fn an_exception_has_the_text_of_its_description() {
        let thrown = json!({"exceptionDetails": {"text": "Uncaught", "url": "u", "lineNumber": 0,
            "exception": {"type": "object", "description": "Error: no"}}});
        assert_eq!(
            record(&[("Runtime.exceptionThrown", thrown)])[0].text,
            "Error: no"
        );
    }

    #[test]
    fn events_after_the_stop_are_not_recorded() {
        let mut console = Console::default();
        console.stop();
        let params = json!({"entry": {"source": "network", "level": "error", "text": "x"}});
        let bytes = console.record(&ProtocolEvent::for_test("Log.entryAdded", &params));
        assert_eq!(bytes, 0);
        assert!(console.stop().0.is_empty());
    }

    #[test]
    fn the_text_of_an_entry_is_limited_and_counted() {
        let mut console = Console::default();
        let text = "x".repeat(10 * MAX_CHARS);
        let params = json!({"entry": {"source": "network", "level": "error", "text": text,
            "url": "data:,".to_owned() + &text}});
        let bytes = console.record(&ProtocolEvent::for_test("Log.entryAdded", &params));
        assert!(bytes >= 11 * MAX_CHARS, "{bytes}");
        assert_eq!(console.stop().0[0].text.len(), MAX_CHARS);
    }
}
