use plumbline_bundle::{CodePlace, FunctionTime, ProfileRecords};

use super::*;

/// A part of the trace of `fixtures/pages/slow-functions.html`, recorded with the profiler of
/// Chromium 156, with every fifth sample of long tasks and few others.
const RECORDED: &[u8] = include_bytes!("slow-functions.json");

fn recorded() -> ProfileRecords {
    profile(RECORDED).unwrap()
}

fn named<'a>(times: &'a [FunctionTime], name: &str) -> &'a FunctionTime {
    let time = times.iter().find(|time| time.function.function == name);
    time.unwrap_or_else(|| panic!("{name} is not in {times:#?}"))
}

fn at(place: &CodePlace) -> (&str, u32, u32) {
    let file = place.url.rsplit('/').next().unwrap();
    (file, place.line, place.column)
}

#[test]
fn a_long_task_names_the_function_that_computed() {
    let records = recorded();
    assert_eq!(records.error, None);
    assert_eq!(records.task_count, 4);
    let task = &records.tasks[2];
    assert!((200.0..204.0).contains(&task.duration_ms), "{task:#?}");
    let compute = &task.functions[0];
    // The parameters of `function t(e)`, which the names of the source are not part of.
    assert_eq!(compute.function.function, "t");
    assert_eq!(at(&compute.function), ("slow-functions.min.js", 0, 58));
    assert_eq!(compute.function.function_at, Some((0, 58)));
    assert!(compute.self_ms > 190.0, "{task:#?}");
    assert!(compute.total_ms >= compute.self_ms);
    let hottest = compute.hottest.as_ref().unwrap();
    assert!((90..150).contains(&hottest.column), "{hottest:?}");
    let path: Vec<_> = task.path.iter().map(|call| call.function.column).collect();
    assert_eq!(path, [321, 58]);
}

#[test]
fn times_in_what_a_function_called_are_part_of_its_total_only() {
    let records = recorded();
    let task = &records.tasks[3];
    let (align, read) = (named(&task.functions, "n"), named(&task.functions, "o"));
    // The browser lays out in the getter that the inner function reads.
    assert!(read.self_ms > 100.0, "{task:#?}");
    assert!(align.total_ms >= read.total_ms + align.self_ms - 0.2);
    assert!(align.self_ms < 30.0);
    assert!(task.duration_ms >= align.total_ms - 0.2);
}

#[test]
fn forced_reflows_are_those_of_the_place_that_reads_the_layout() {
    let records = recorded();
    let [reflow] = &records.reflows[..] else {
        panic!("{:#?}", records.reflows);
    };
    assert_eq!(reflow.place.function, "o");
    assert_eq!(at(&reflow.place), ("slow-functions.min.js", 0, 297));
    // The function that contains the place, by whose position its name is found.
    assert_eq!(reflow.place.function_at, Some((0, 284)));
    assert_eq!(reflow.count, 38);
    assert!(reflow.total_ms > 100.0, "{reflow:?}");
}

#[test]
fn the_functions_of_the_whole_load_come_in_the_order_of_their_own_time() {
    let records = recorded();
    let names: Vec<_> = records
        .functions
        .iter()
        .map(|time| time.function.function.as_str())
        .collect();
    assert_eq!(names[..2], ["t", "o"]);
    let sorted = |times: &[FunctionTime]| times.is_sorted_by(|a, b| a.self_ms >= b.self_ms);
    assert!(sorted(&records.functions));
    assert!(records.tasks.iter().all(|task| sorted(&task.functions)));
    assert!(
        records.script_ms > 340.0 && records.end_ms > 900.0,
        "{records:#?}"
    );
    assert!(records.tasks.is_sorted_by(|a, b| a.start_ms <= b.start_ms));
}

#[test]
fn a_trace_without_a_profile_is_no_profiled_load() {
    let text = std::str::from_utf8(RECORDED).unwrap();
    let without = text.replace(r#""Profile""#, r#""Other""#);
    let records = profile(without.as_bytes()).unwrap();
    assert_eq!(
        records.error.as_deref(),
        Some("The browser wrote no profile.")
    );
    assert!(profile(b"{}").is_err());
}

/// Functions, by the indices of their callers, and samples of them, one each millisecond.
fn times_of(calls: &[(Option<usize>, &str)], samples: &[usize]) -> Vec<(String, f64, f64)> {
    use plumbline_trace::{Profile, ProfileNode, ProfileSample, Thread};

    let nodes = calls.iter().map(|(parent, name)| ProfileNode {
        parent: *parent,
        function: CodeLocation {
            script_id: "1".to_owned(),
            // Names in brackets are those of the browser.
            url: if name.starts_with('(') { "" } else { "a.js" }.to_owned(),
            function: (*name).to_owned(),
            line: i64::from(name.as_bytes()[0]),
            column: 0,
        },
    });
    let samples = samples.iter().enumerate();
    let profiles = [Profile {
        thread: Thread {
            process_id: 1,
            thread_id: 1,
        },
        nodes: nodes.collect(),
        samples: samples
            .map(|(at, node)| ProfileSample {
                at_us: at as f64 * 1000.0,
                node: *node,
                position: None,
            })
            .collect(),
    }];
    let tree = CallTree::of(&profiles);
    let times = tree.times(vec![(0.0, 1e9)]);
    let functions = times.functions.iter();
    functions
        .map(|time| {
            let (own, total) = (time.self_us / 1000.0, time.total_us / 1000.0);
            (time.function.function.clone(), own, total)
        })
        .collect()
}

#[test]
fn a_function_that_calls_itself_is_counted_once() {
    let calls = [
        (None, "(root)"),
        (Some(0), "f"),
        (Some(1), "g"),
        (Some(2), "f"),
        (Some(3), "(get offsetWidth)"),
        (Some(0), "(program)"),
    ];
    let times = times_of(&calls, &[1, 2, 3, 4, 4, 5, 5, 0]);
    // The time in the getter is that of the function that called it.
    let expected = [("f".to_owned(), 4.0, 5.0), ("g".to_owned(), 1.0, 4.0)];
    assert_eq!(times, expected);
}
