//! Style recalculations and layouts that a script forced while it ran.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::TraceEvent;
use crate::navigation::Thread;

/// Minimum total per task; shorter ones are imperceptible (trace_engine,
/// handlers/WarningsHandler.js).
const MIN_TOTAL_US: f64 = 30_000.0;

/// A position in a script, with zero-based line and column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeLocation {
    pub script_id: String,
    pub url: String,
    pub function: String,
    pub line: i64,
    pub column: i64,
}

/// One forced style recalculation or layout, in a task that spent at least 30 ms on them.
#[derive(Debug, Clone, PartialEq)]
pub struct ForcedReflow {
    pub thread: Thread,
    pub start_us: f64,
    pub dur_us: f64,
    /// CPU time of the thread; unknown if the platform has no such clock.
    pub cpu_us: Option<f64>,
    /// Task number; reflows of one task share it.
    pub task: usize,
    pub frame: Option<String>,
    /// Position in the script that forced the reflow; `None` if no script is named.
    pub place: Option<CodeLocation>,
    /// The function that the browser had called, directly around the reflow.
    pub called: Option<CodeLocation>,
}

/// Events of forced reflows, tracked per thread. DevTools tracks all threads at once and considers
/// any layout forced that overlaps with the parsing of a script on another thread
/// (`v8.parseOnBackground`). On a slow network that is most of the load.
#[derive(Debug, Default)]
pub(crate) struct ReflowEvents<'a> {
    threads: HashMap<Thread, Nesting<'a>>,
    tasks: usize,
    reflows: Vec<Reflow<'a>>,
}

/// Events in progress on a thread, with their start and duration.
#[derive(Debug, Default)]
struct Nesting<'a> {
    open: Vec<(f64, f64)>,
    scripts: Vec<(f64, f64)>,
    in_task: Vec<Reflow<'a>>,
}

#[derive(Debug)]
struct Reflow<'a> {
    thread: Thread,
    start_us: f64,
    dur_us: f64,
    cpu_us: Option<f64>,
    task: usize,
    args: Option<&'a RawValue>,
}

fn close_before(ts_us: f64, stack: &mut Vec<(f64, f64)>) {
    while let Some((start_us, dur_us)) = stack.last()
        && ts_us > start_us + dur_us
    {
        stack.pop();
    }
}

impl<'a> ReflowEvents<'a> {
    pub(crate) fn record(&mut self, event: &TraceEvent<'a>) {
        let nesting = self.threads.entry(event.thread()).or_default();
        if nesting.record(event) {
            let reflows = nesting.in_task.drain(..);
            let total_us: f64 = reflows.as_slice().iter().map(|reflow| reflow.dur_us).sum();
            if total_us >= MIN_TOTAL_US {
                let task = self.tasks;
                self.reflows.extend(reflows.map(|of| Reflow { task, ..of }));
            }
            self.tasks += 1;
        }
    }

    /// Returns the reflows in trace order. Like DevTools, it omits the last task if no other
    /// follows.
    pub(crate) fn all(self) -> Vec<ForcedReflow> {
        self.reflows.into_iter().map(ForcedReflow::from).collect()
    }
}

impl<'a> Nesting<'a> {
    /// Updates the nesting; returns true if the event shows that the previous task is over.
    fn record(&mut self, event: &TraceEvent<'a>) -> bool {
        let span = (event.ts_us, event.dur_us.unwrap_or(0.0));
        close_before(event.ts_us, &mut self.open);
        self.open.push(span);
        close_before(event.ts_us, &mut self.scripts);
        if event.kind.runs_script {
            self.scripts.push(span);
        }
        if !self.scripts.is_empty() && event.kind.is_reflow {
            self.in_task.push(Reflow {
                thread: event.thread(),
                start_us: event.ts_us,
                dur_us: span.1,
                cpu_us: event.thread_dur_us,
                task: 0,
                args: event.args,
            });
            return false;
        }
        self.open.len() == 1
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args<'a> {
    #[serde(borrow)]
    begin_data: Option<Data<'a>>,
    #[serde(borrow)]
    data: Option<Data<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow)]
    frame: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stack_trace: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call<'a> {
    #[serde(default, borrow)]
    function_name: Cow<'a, str>,
    #[serde(default)]
    script_id: ScriptId,
    #[serde(default, borrow)]
    url: Cow<'a, str>,
    line_number: i64,
    column_number: i64,
}

impl Args<'_> {
    /// Returns the frame, and the first position on the stack that is in a script.
    fn frame_and_place(self) -> (Option<String>, Option<CodeLocation>) {
        let begin = self.begin_data.unwrap_or_default();
        let data = self.data.unwrap_or_default();
        let stack = data.stack_trace.or(begin.stack_trace).unwrap_or_default();
        let mut in_scripts = stack.into_iter().filter(|call| !call.is_native());
        let place = in_scripts.next().map(Call::place);
        (begin.frame.or(data.frame).map(Cow::into_owned), place)
    }
}

/// Returns the position in a script that forced the work of an event, and the duration of this work
/// in microseconds; `None` for an event of other work, or without a script.
pub fn forced_work(event: &str) -> Option<(CodeLocation, f64)> {
    // Few events have a stack, and searching is cheaper than parsing.
    if !event.contains(r#""stackTrace""#) {
        return None;
    }
    let event: TraceEvent = serde_json::from_str(event).ok()?;
    if !event.kind.is_reflow {
        return None;
    }
    let args: Args = serde_json::from_str(event.args?.get()).ok()?;
    let (_, place) = args.frame_and_place();
    Some((place?, event.dur_us.unwrap_or(0.0)))
}

/// A script id, which is a number in some events and text in others.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum ScriptId {
    Number(i64),
    Text(String),
}

impl Default for ScriptId {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl ScriptId {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

impl Call<'_> {
    fn is_native(&self) -> bool {
        self.line_number == -1 && self.column_number == -1 && self.url.is_empty()
    }

    /// Returns the position counted from zero; the event counts from one.
    fn place(self) -> CodeLocation {
        CodeLocation {
            script_id: self.script_id.text(),
            url: self.url.into_owned(),
            function: self.function_name.into_owned(),
            line: (self.line_number - 1).max(0),
            column: (self.column_number - 1).max(0),
        }
    }
}

impl From<Reflow<'_>> for ForcedReflow {
    fn from(reflow: Reflow<'_>) -> Self {
        let args: Args = reflow
            .args
            .and_then(|args| serde_json::from_str(args.get()).ok())
            .unwrap_or_default();
        let (frame, place) = args.frame_and_place();
        Self {
            thread: reflow.thread,
            start_us: reflow.start_us,
            dur_us: reflow.dur_us,
            cpu_us: reflow.cpu_us,
            task: reflow.task,
            frame,
            place,
            called: None,
        }
    }
}

/// Returns the function that a `FunctionCall` event names. Its lines and columns are counted from
/// one, as those of stack traces are; DevTools reads them as zero-based.
pub(crate) fn function_called(args: Option<&RawValue>) -> Option<CodeLocation> {
    #[derive(Deserialize)]
    struct CallArgs<'a> {
        #[serde(borrow)]
        data: Call<'a>,
    }
    let args: CallArgs = serde_json::from_str(args?.get()).ok()?;
    Some(args.data.place())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reflows_in(events: &str) -> Vec<ForcedReflow> {
        let events: Vec<TraceEvent> = serde_json::from_str(events).unwrap();
        let mut reflows = ReflowEvents::default();
        events.iter().for_each(|event| reflows.record(event));
        reflows.all()
    }

    const LAYOUT: &str = r#"{"name":"Layout","ph":"X","ts":20,"dur":30000,"pid":1,"tid":1,"args":{"beginData":
        {"frame":"F","stackTrace":[{"url":"a.js","scriptId":"7","functionName":"f","lineNumber":3,
        "columnNumber":9}]}}}"#;
    const SCRIPT: &str =
        r#"{"name":"EvaluateScript","ph":"X","ts":10,"dur":50000,"pid":1,"tid":1}"#;
    const NEXT: &str = r#"{"name":"RunTask","ph":"X","ts":99000,"dur":10,"pid":1,"tid":1}"#;

    #[test]
    fn the_work_of_a_single_event_has_the_first_position_in_a_script() {
        let native = r#""stackTrace":[{"url":"","lineNumber":-1,"columnNumber":-1},"#;
        let layout = LAYOUT.replace(r#""stackTrace":["#, native);
        let (place, us) = forced_work(&layout).unwrap();
        assert_eq!(
            (place.url.as_str(), place.line, place.column),
            ("a.js", 2, 8)
        );
        assert_eq!(us, 30_000.0);
        assert!(forced_work(&layout.replace("Layout", "UpdateLayoutTree")).is_some());
        let other = layout.replace("Layout", "TimerInstall");
        for event in [SCRIPT, &other, "{}", r#"{"stackTrace""#] {
            assert_eq!(forced_work(event), None, "{event}");
        }
    }

    #[test]
    fn layout_within_a_script_is_forced() {
        let reflows = reflows_in(&format!("[{SCRIPT},{LAYOUT},{NEXT}]"));
        assert_eq!(reflows.len(), 1);
        let place = reflows[0].place.as_ref().unwrap();
        assert_eq!(
            (place.url.as_str(), place.line, place.column),
            ("a.js", 2, 8)
        );
        assert_eq!(reflows[0].frame.as_deref(), Some("F"));
    }

    #[test]
    fn layout_after_a_script_is_not_forced() {
        let run = SCRIPT.replace("50000", "2");
        assert!(reflows_in(&format!("[{run},{LAYOUT},{NEXT}]")).is_empty());
    }

    #[test]
    fn layout_while_another_thread_parses_a_script_is_not_forced() {
        let parsed = SCRIPT
            .replace("EvaluateScript", "v8.parseOnBackground")
            .replace(r#""tid":1"#, r#""tid":4"#);
        assert!(reflows_in(&format!("[{parsed},{LAYOUT},{NEXT}]")).is_empty());
    }

    #[test]
    fn a_busy_thread_does_not_join_two_tasks_of_another() {
        let raster = r#"{"name":"RasterTask","ph":"X","ts":1,"dur":300000,"pid":1,"tid":4}"#;
        let task = |at: u32| {
            let run = SCRIPT.replace(r#""ts":10"#, &format!(r#""ts":{at}"#));
            let layout = LAYOUT.replace(r#""ts":20"#, &format!(r#""ts":{}"#, at + 10));
            format!("{run},{}", layout.replace("30000", "20000"))
        };
        let (first, second) = (task(10), task(60_010));
        let end = NEXT.replace("99000", "200000");
        assert!(reflows_in(&format!("[{raster},{first},{second},{end}]")).is_empty());
    }

    #[test]
    fn reflows_of_one_task_have_its_number_regardless_of_other_threads() {
        let other =
            |at: u32| format!(r#"{{"name":"RunTask","ph":"X","ts":{at},"dur":1,"pid":1,"tid":4}}"#);
        let again = LAYOUT.replace(r#""ts":20"#, r#""ts":30050"#);
        let script = SCRIPT.replace("50000", "90000");
        let events = format!(
            "[{script},{LAYOUT},{},{},{again},{NEXT}]",
            other(30),
            other(40)
        );
        let reflows = reflows_in(&events.replace("99000", "199000"));
        assert_eq!(reflows.len(), 2);
        assert_eq!(reflows[0].task, reflows[1].task);
    }

    #[test]
    fn a_short_reflow_is_not_reported() {
        let short = LAYOUT.replace("30000", "29999");
        assert!(reflows_in(&format!("[{SCRIPT},{short},{NEXT}]")).is_empty());
    }
}
