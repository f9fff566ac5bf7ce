//! The critical path to the largest content.

use plumbline_model::media::{PathStep, PathStepKind, PathTotal};

use super::charts;
use super::figures::ms;
use super::load::{WorkView, last_part};

/// The steps that the largest content waited for.
pub(super) struct PathView {
    /// The strip as SVG.
    pub(super) strip: String,
    /// The class, name and total time of each kind of step.
    pub(super) totals: Vec<WorkView>,
    pub(super) steps: Vec<StepView>,
    /// Whether the totals contain steps that are listed as a part of another one.
    pub(super) has_merged_steps: bool,
    pub(super) end: String,
}

pub(super) struct StepView {
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) start: String,
    pub(super) duration: String,
    pub(super) file: String,
    pub(super) url: String,
}

/// The kinds of steps with their classes and names.
const STEP_KINDS: [(PathStepKind, &str, &str); 8] = [
    (PathStepKind::Queued, "d", "Queued"),
    (PathStepKind::Connection, "c", "Connection"),
    (PathStepKind::Server, "w", "Server"),
    (PathStepKind::Download, "r", "Download"),
    (PathStepKind::Evaluation, "script", "Script evaluation"),
    (PathStepKind::Rendering, "paint", "Rendering"),
    (PathStepKind::Other, "other", "Other work"),
    (PathStepKind::Waiting, "q", "Waiting"),
];

fn class_and_name(kind: PathStepKind) -> (&'static str, &'static str) {
    let found = STEP_KINDS.iter().find(|(other, ..)| *other == kind);
    found.map_or(("q", "Waiting"), |(_, class, name)| (class, name))
}

fn length_ms(step: &PathStep) -> f64 {
    step.end_ms - step.start_ms
}

/// Returns the time of all listed steps of a kind.
fn listed_ms(steps: &[PathStep], kind: PathStepKind) -> f64 {
    let of_kind = steps.iter().filter(|step| step.kind == kind);
    of_kind.map(length_ms).sum()
}

/// Returns the steps that the largest content waited for, or `None` if they are unknown. Media of
/// earlier versions have no `totals`.
pub(super) fn critical_path(steps: &[PathStep], totals: &[PathTotal]) -> Option<PathView> {
    /// Less is not visible in the totals.
    const MIN_MERGED_MS: f64 = 1.0;
    let end_ms = steps.last()?.end_ms;
    let has_merged_steps = totals
        .iter()
        .any(|total| (total.ms - listed_ms(steps, total.kind)).abs() >= MIN_MERGED_MS);
    let totals = STEP_KINDS.iter().filter_map(|(kind, class, name)| {
        let total_ms = if totals.is_empty() {
            listed_ms(steps, *kind)
        } else {
            let of_kind = totals.iter().filter(|total| total.kind == *kind);
            of_kind.map(|total| total.ms).sum()
        };
        (total_ms >= 0.5).then(|| WorkView {
            class,
            name,
            ms: ms(total_ms),
        })
    });
    let totals: Vec<WorkView> = totals.collect();
    let texts = totals
        .iter()
        .map(|total| format!("{} {}", total.name, total.ms));
    let aria_label = texts.collect::<Vec<_>>().join(", ");
    let parts = steps.iter().map(|step| {
        let (class, _) = class_and_name(step.kind);
        (class, step.start_ms, step.end_ms)
    });
    Some(PathView {
        strip: charts::strip(parts, end_ms, &aria_label),
        totals,
        steps: steps
            .iter()
            .map(|step| {
                let (class, name) = class_and_name(step.kind);
                let is_of_worker = step.kind == PathStepKind::Waiting && !step.url.is_empty();
                StepView {
                    class,
                    name: if is_of_worker {
                        "Waiting for a worker"
                    } else {
                        name
                    },
                    start: ms(step.start_ms),
                    duration: ms(length_ms(step)),
                    file: if step.url.is_empty() {
                        String::new()
                    } else {
                        shortened(last_part(&step.url))
                    },
                    url: step.url.clone(),
                }
            })
            .collect(),
        has_merged_steps,
        end: ms(end_ms),
    })
}

/// Leaves out the middle of a long name, whose end tells the type of file.
fn shortened(name: String) -> String {
    const MAX_CHARS: usize = 60;
    const PART_CHARS: usize = 28;
    let length = name.chars().count();
    if length <= MAX_CHARS {
        return name;
    }
    let start: String = name.chars().take(PART_CHARS).collect();
    let end: String = name.chars().skip(length - PART_CHARS).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queueing_and_connections_are_shown_as_different_steps() {
        let step = |kind, start_ms: f64, end_ms: f64| PathStep {
            kind,
            start_ms,
            end_ms,
            url: format!("https://a.test/{}.js", "name-".repeat(20)),
        };
        let steps = [
            step(PathStepKind::Queued, 0.0, 40.0),
            step(PathStepKind::Connection, 40.0, 100.0),
            step(PathStepKind::Other, 100.0, 130.0),
        ];
        let path = critical_path(&steps, &[]).unwrap();
        assert!(!path.has_merged_steps);
        let names: Vec<_> = path.totals.iter().map(|total| total.name).collect();
        assert_eq!(names, ["Queued", "Connection", "Other work"]);
        let file = &path.steps[0].file;
        assert!(
            file.starts_with("name-") && file.ends_with("-name-.js"),
            "{file}"
        );
        assert_eq!(file.chars().count(), 57);
        assert_eq!(shortened("app.js".to_owned()), "app.js");
    }

    #[test]
    fn totals_include_steps_that_are_not_listed() {
        let step = PathStep {
            kind: PathStepKind::Evaluation,
            end_ms: 2_300.0,
            ..PathStep::default()
        };
        let total = |kind, ms| PathTotal { kind, ms };
        let stored = [
            total(PathStepKind::Rendering, 1_100.0),
            total(PathStepKind::Evaluation, 1_200.0),
        ];
        let totals = |stored: &[PathTotal]| {
            let path = critical_path(std::slice::from_ref(&step), stored).unwrap();
            let texts = path.totals.iter().map(|total| {
                let ms = total.ms.replace('\u{a0}', " ");
                format!("{} {ms}", total.name)
            });
            (texts.collect::<Vec<_>>().join(", "), path.has_merged_steps)
        };
        assert_eq!(
            totals(&stored),
            (
                "Script evaluation 1.20 s, Rendering 1.10 s".to_owned(),
                true
            )
        );
        // Media of an earlier version.
        assert_eq!(totals(&[]), ("Script evaluation 2.30 s".to_owned(), false));
    }

    #[test]
    fn a_wait_with_a_url_is_one_for_a_worker() {
        let wait = |url: &str, start_ms: f64| PathStep {
            start_ms,
            end_ms: start_ms + 50.0,
            url: url.to_owned(),
            ..PathStep::default()
        };
        let steps = [wait("", 0.0), wait("https://a.test/worker.js", 50.0)];
        let path = critical_path(&steps, &[]).unwrap();
        let names: Vec<_> = path.steps.iter().map(|step| step.name).collect();
        assert_eq!(names, ["Waiting", "Waiting for a worker"]);
        assert_eq!(path.steps[1].file, "worker.js");
    }
}
