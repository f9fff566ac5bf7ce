//! The functions that a load with a profiler spent its time in.

use plumbline_bundle::{CodePlace, FunctionTime, ProfileRecords, ProfiledReflow, ProfiledTask};

use super::figures::{count, ms};
use super::links::Link;

/// The profile of a report as a page shows it.
pub(super) struct FunctionsView<'a> {
    pub(super) summary: String,
    pub(super) error: Option<&'a str>,
    pub(super) functions: Vec<FunctionRow>,
    pub(super) tasks: Vec<TaskView>,
    /// The number of long tasks, and how many are shown if not all.
    pub(super) task_count: String,
    pub(super) reflows: Vec<FunctionRow>,
}

/// A long task.
pub(super) struct TaskView {
    pub(super) duration: String,
    pub(super) start: String,
    /// The names of the calls that took most of the task, from the outside to the inside.
    pub(super) path: Option<String>,
    pub(super) functions: Vec<FunctionRow>,
}

/// A function, or a place that forced styles and layout, with two figures.
pub(super) struct FunctionRow {
    pub(super) name: String,
    pub(super) place: PlaceView,
    /// The place of most of the function's own time, if it is in another line.
    pub(super) hottest: Option<String>,
    pub(super) figures: [String; 2],
}

/// A place in a script or in the source that it was built from.
pub(super) struct PlaceView {
    /// The script; `None` unless a browser should open it.
    pub(super) href: Option<String>,
    pub(super) text: String,
    /// The position in the script, if the text is one in its source.
    pub(super) in_script: Option<String>,
}

/// Returns the profile of a report.
pub(super) fn functions_view<'a>(profile: &'a ProfileRecords, page_url: &str) -> FunctionsView<'a> {
    let row = |time: &FunctionTime| function_row(time, page_url);
    let tasks = profile.tasks.iter().map(|task| TaskView {
        duration: ms(task.duration_ms),
        start: ms(task.start_ms),
        path: path(task),
        functions: task.functions.iter().map(row).collect(),
    });
    let number = profile.task_count as usize;
    let listed = profile.tasks.len();
    FunctionsView {
        summary: format!(
            "Scripts ran for {} on the main thread in a further load with a profiler. It slows scripts down: \
             these times differ from those of the report, and have no part in any score.",
            ms(profile.script_ms)
        ),
        error: profile.error.as_deref(),
        functions: profile.functions.iter().map(row).collect(),
        tasks: tasks.collect(),
        task_count: if listed < number {
            format!("{number}, the longest {listed} are shown")
        } else {
            number.to_string()
        },
        reflows: profile
            .reflows
            .iter()
            .map(|reflow| reflow_row(reflow, page_url))
            .collect(),
    }
}

fn function_row(time: &FunctionTime, page_url: &str) -> FunctionRow {
    let (file, line, _) = time.function.position();
    let hottest = time.hottest.as_ref().map(CodePlace::position);
    let hottest = hottest.filter(|(other, hot_line, _)| *other == file && *hot_line != line);
    FunctionRow {
        name: name(&time.function).to_owned(),
        place: place(&time.function, page_url),
        hottest: hottest.map(|(_, line, _)| format!("mostly in line {}", line.saturating_add(1))),
        figures: [ms(time.self_ms), ms(time.total_ms)],
    }
}

fn reflow_row(reflow: &ProfiledReflow, page_url: &str) -> FunctionRow {
    FunctionRow {
        name: name(&reflow.place).to_owned(),
        place: place(&reflow.place, page_url),
        hottest: None,
        figures: [
            count(reflow.count as usize, "time", "times"),
            ms(reflow.total_ms),
        ],
    }
}

/// Returns the names of the calls that took most of a task, if one called another.
fn path(task: &ProfiledTask) -> Option<String> {
    let names: Vec<&str> = task.path.iter().map(|call| name(&call.function)).collect();
    (names.len() > 1).then(|| names.join(" › "))
}

/// Returns the name of a function for people.
pub(crate) fn name(place: &CodePlace) -> &str {
    match place.function_name() {
        "" => "(anonymous)",
        name => name,
    }
}

/// Returns the file and the line of a place, counted from 1 as in editors. Scripts without a source
/// map have the column as well, because all of a minified script is in one line.
pub(crate) fn file_and_line(place: &CodePlace, page_url: &str) -> String {
    let (file, line, column) = place.position();
    let line = line.saturating_add(1);
    let position = if place.original.is_some() {
        line.to_string()
    } else {
        format!("{line}:{}", column.saturating_add(1))
    };
    Link::to_position(file, &position, page_url).text
}

fn place(place: &CodePlace, page_url: &str) -> PlaceView {
    let in_script = CodePlace {
        original: None,
        ..place.clone()
    };
    PlaceView {
        href: Link::new(&place.url, page_url).href,
        text: file_and_line(place, page_url),
        in_script: place
            .original
            .as_ref()
            .map(|_| file_and_line(&in_script, page_url)),
    }
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::OriginalPlace;

    use super::*;

    const PAGE: &str = "https://a.test/blog/";

    fn minified(original: Option<(&str, u32)>) -> CodePlace {
        CodePlace {
            function: "t".to_owned(),
            url: "https://a.test/app.min.js".to_owned(),
            line: 0,
            column: 58,
            original: original.map(|(function, line)| OriginalPlace {
                function: Some(function.to_owned()),
                source: "src/app.js".to_owned(),
                line,
                column: 24,
            }),
            ..CodePlace::default()
        }
    }

    #[test]
    fn a_function_is_shown_with_its_name_and_line_in_the_source() {
        let time = FunctionTime {
            function: minified(Some(("compute", 2))),
            self_ms: 201.0,
            total_ms: 210.0,
            hottest: Some(minified(Some(("compute", 6)))),
        };
        let row = function_row(&time, PAGE);
        assert_eq!(row.name, "compute");
        assert_eq!(row.place.text, "src/app.js:3");
        assert_eq!(row.place.in_script.as_deref(), Some("/app.min.js:1:59"));
        let script = Some("https://a.test/app.min.js");
        assert_eq!(row.place.href.as_deref(), script);
        assert_eq!(row.hottest.as_deref(), Some("mostly in line 7"));
    }

    #[test]
    fn a_function_without_a_source_map_is_shown_with_its_column() {
        let time = FunctionTime {
            function: minified(None),
            hottest: Some(minified(None)),
            ..FunctionTime::default()
        };
        let row = function_row(&time, PAGE);
        assert_eq!(
            (row.name.as_str(), row.place.text.as_str()),
            ("t", "/app.min.js:1:59")
        );
        assert_eq!((row.hottest, row.place.in_script), (None, None));
        let anonymous = CodePlace {
            function: String::new(),
            url: "eval at <anonymous>".to_owned(),
            ..CodePlace::default()
        };
        assert_eq!(name(&anonymous), "(anonymous)");
        assert_eq!(place(&anonymous, PAGE).href, None);
    }

    #[test]
    fn a_path_needs_two_calls() {
        let call = |function| FunctionTime {
            function,
            ..FunctionTime::default()
        };
        let mut task = ProfiledTask {
            path: vec![call(minified(None))],
            ..ProfiledTask::default()
        };
        assert_eq!(path(&task), None);
        task.path.push(call(minified(Some(("compute", 2)))));
        assert_eq!(path(&task).as_deref(), Some("t › compute"));
    }
}
