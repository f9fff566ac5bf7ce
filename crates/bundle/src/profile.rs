use serde::{Deserialize, Serialize};

use crate::Record;

/// The functions that a load spent its time in, from a further visit with a sampling profiler, an
/// artifact. The profiler slows scripts down, so that times differ from those of the report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfileRecords {
    /// The longest tasks of at least 50 ms on the main thread, in the order of their start.
    #[serde(default)]
    pub tasks: Vec<ProfiledTask>,
    /// The number of tasks of at least 50 ms, of which there may be more than are listed.
    #[serde(default)]
    pub task_count: u32,
    /// The places in scripts that forced styles and layout, the most expensive first.
    #[serde(default)]
    pub reflows: Vec<ProfiledReflow>,
    /// The functions of the whole load with the most time of their own, the most expensive first.
    #[serde(default)]
    pub functions: Vec<FunctionTime>,
    /// The time that scripts ran on the main thread, in milliseconds.
    #[serde(default)]
    pub script_ms: f64,
    /// The time of the last sample, in milliseconds since the start of the navigation.
    #[serde(default)]
    pub end_ms: f64,
    /// The reason why there is no profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A long task of the profiled load. Times are in milliseconds since the start of the navigation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfiledTask {
    pub start_ms: f64,
    pub duration_ms: f64,
    /// The functions with the most time of their own in the task.
    pub functions: Vec<FunctionTime>,
    /// The calls that each took at least half of the task's script time, from the outside to the
    /// inside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<FunctionTime>,
}

/// The time of a function in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionTime {
    pub function: CodePlace,
    /// Time in the function itself and in functions of the browser that it called.
    pub self_ms: f64,
    /// Time in the function and in everything that it called.
    pub total_ms: f64,
    /// The place in the function that took most of its own time, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hottest: Option<CodePlace>,
}

/// A place in a script that forced styles and layout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProfiledReflow {
    pub place: CodePlace,
    /// Number of style recalculations and layouts.
    pub count: u32,
    pub total_ms: f64,
}

/// A function, or a place in one. Lines and columns are zero-based.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodePlace {
    /// Name of the function in the script that was loaded; empty for one without a name.
    pub function: String,
    pub url: String,
    pub line: u32,
    pub column: u32,
    /// The place in the source that the script was built from, if it has a source map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<OriginalPlace>,
    /// The script's id in the browser, as long as that runs.
    #[serde(skip)]
    pub script_id: String,
    /// The line and column of the function, from which its original name is read.
    #[serde(skip)]
    pub function_at: Option<(u32, u32)>,
}

/// A place in a source that a script was built from. Lines and columns are zero-based.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OriginalPlace {
    /// Name of the function in the source, if the source map has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Name of the source in the source map.
    pub source: String,
    pub line: u32,
    pub column: u32,
}

impl CodePlace {
    /// Returns the function's name in the source if it is known, otherwise that in the script;
    /// empty for a function without a name.
    pub fn function_name(&self) -> &str {
        let original = self.original.as_ref();
        let name = original.and_then(|original| original.function.as_deref());
        name.unwrap_or(&self.function)
    }

    /// Returns the name of the source or the URL of the script, with the zero-based line and column
    /// in it.
    pub fn position(&self) -> (&str, u32, u32) {
        match &self.original {
            Some(original) => (&original.source, original.line, original.column),
            None => (&self.url, self.line, self.column),
        }
    }
}

impl Record for ProfileRecords {
    const ARTIFACT: &'static str = "profile";
}

impl ProfileRecords {
    /// Creates the records of a page that could not be profiled.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self {
            error: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Returns all places in scripts.
    pub fn places_mut(&mut self) -> impl Iterator<Item = &mut CodePlace> {
        let in_tasks = self
            .tasks
            .iter_mut()
            .flat_map(|task| task.functions.iter_mut().chain(&mut task.path));
        let functions = in_tasks.chain(&mut self.functions);
        let of_functions =
            functions.flat_map(|time| std::iter::once(&mut time.function).chain(&mut time.hottest));
        of_functions.chain(self.reflows.iter_mut().map(|reflow| &mut reflow.place))
    }
}
