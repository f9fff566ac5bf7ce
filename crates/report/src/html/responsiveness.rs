//! Responsiveness in the lab: the inputs on controls of the page, with the parts of each.

use plumbline_bundle::{ControlKind, InputKind, InteractionRecord, InteractionTiming};
use plumbline_model::report::Report;
use plumbline_model::responsiveness::{GOOD_INP_MS, Rating, Responsiveness};

use super::charts;
use super::figures::{Grade, count, ms};
use super::links::Link;

/// Class and name of the three parts of an interaction.
pub(super) const PARTS: [(&str, &str); 3] = [
    ("w", "Input delay"),
    ("script", "Processing"),
    ("paint", "Presentation delay"),
];

/// The inputs of a report as a page shows them.
pub(super) struct ResponsivenessView {
    pub(super) inp: Option<String>,
    pub(super) class: &'static str,
    pub(super) grade: &'static str,
    /// The inputs that were made, as a sentence.
    pub(super) summary: String,
    pub(super) error: Option<String>,
    pub(super) interactions: Vec<InteractionView>,
}

pub(super) struct InteractionView {
    /// The name of the control, or its selector if it has none.
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) snippet: String,
    pub(super) is_worst: bool,
    pub(super) timing: Option<TimingView>,
    pub(super) not_measured: Option<String>,
}

pub(super) struct TimingView {
    pub(super) input: &'static str,
    pub(super) duration: String,
    pub(super) class: &'static str,
    pub(super) grade: &'static str,
    /// Trusted markup: the three parts side by side.
    pub(super) strip: String,
    /// Class, name and duration of each part.
    pub(super) parts: Vec<(&'static str, &'static str, String)>,
    pub(super) scripts: Vec<ScriptView>,
}

pub(super) struct ScriptView {
    pub(super) function: String,
    pub(super) link: Link,
    pub(super) duration: String,
    /// The time of forced layouts, if it matters.
    pub(super) forced_layout: Option<String>,
}

/// Returns the inputs of a report; `None` if none were requested.
pub(super) fn responsiveness(report: &Report, page_url: &str) -> Option<ResponsivenessView> {
    let responsiveness = report.responsiveness.as_deref()?;
    let worst = responsiveness.worst();
    let grade = responsiveness
        .rating
        .map_or(Grade::Unknown, grade_of_rating);
    // Short interactions of a page look short.
    let scale_ms = responsiveness.inp_ms.unwrap_or_default().max(GOOD_INP_MS);
    let records = &responsiveness.records;
    let interactions = records.interactions.iter().map(|it| InteractionView {
        name: if it.name.is_empty() {
            it.selector.clone()
        } else {
            it.name.clone()
        },
        kind: kind_name(it.kind),
        snippet: it.snippet.clone(),
        is_worst: worst.is_some_and(|worst| std::ptr::eq(worst, it)),
        timing: it
            .timing
            .as_ref()
            .map(|timing| timing_view(timing, scale_ms, page_url)),
        not_measured: it.not_measured.as_deref().map(sentence),
    });
    Some(ResponsivenessView {
        inp: responsiveness.inp_ms.map(ms),
        class: grade.class(),
        grade: grade.label(),
        summary: summary(responsiveness),
        error: records.error.clone(),
        interactions: interactions.collect(),
    })
}

/// Returns the grade of an interaction.
pub(crate) fn grade_of_rating(rating: Rating) -> Grade {
    match rating {
        Rating::Good => Grade::Good,
        Rating::NeedsImprovement => Grade::Middling,
        Rating::Poor => Grade::Poor,
    }
}

/// Returns the name of a control for a text, with its kind.
pub(crate) fn control_text(interaction: &InteractionRecord) -> String {
    let kind = kind_name(interaction.kind);
    if interaction.name.is_empty() {
        format!("{kind} {}", interaction.selector)
    } else {
        format!("{kind} “{}”", interaction.name)
    }
}

fn summary(responsiveness: &Responsiveness) -> String {
    let records = &responsiveness.records;
    if records.interactions.is_empty() {
        return match (records.controls, &records.error) {
            (0, None) => "The page has no visible control that stays on the page.".to_owned(),
            _ => "No input was made.".to_owned(),
        };
    }
    let measured = count(responsiveness.measured(), "input", "inputs");
    let controls = count(
        records.controls as usize,
        "visible control",
        "visible controls",
    );
    format!(
        "{measured} measured, on {controls}; each on a page that was loaded again. The longest time to the \
         next paint counts."
    )
}

pub(super) fn timing_view(timing: &InteractionTiming, scale_ms: f64, page_url: &str) -> TimingView {
    let durations = [
        timing.input_delay_ms,
        timing.processing_ms,
        timing.presentation_delay_ms,
    ];
    let mut start_ms = 0.0;
    let mut strip_parts = Vec::new();
    let mut parts = Vec::new();
    for ((class, name), duration_ms) in PARTS.into_iter().zip(durations) {
        strip_parts.push((class, start_ms, start_ms + duration_ms));
        parts.push((class, name, ms(duration_ms)));
        start_ms += duration_ms;
    }
    let texts: Vec<String> = parts
        .iter()
        .map(|(_, name, text)| format!("{name} {text}"))
        .collect();
    let grade = grade_of_rating(Rating::of_inp(timing.duration_ms));
    TimingView {
        input: input_name(timing.input),
        duration: ms(timing.duration_ms),
        class: grade.class(),
        grade: grade.label(),
        strip: charts::strip(strip_parts.into_iter(), scale_ms, &texts.join(", ")),
        parts,
        scripts: timing
            .scripts
            .iter()
            .map(|script| ScriptView {
                function: if script.function.is_empty() {
                    script.invoker.clone()
                } else {
                    script.function.clone()
                },
                link: match script.position {
                    Some(position) => {
                        Link::to_position(&script.url, &position.to_string(), page_url)
                    }
                    None => Link::new(&script.url, page_url),
                },
                duration: ms(script.duration_ms),
                forced_layout: (script.forced_layout_ms >= 1.0)
                    .then(|| ms(script.forced_layout_ms)),
            })
            .collect(),
    }
}

/// Returns a reason as a sentence.
fn sentence(reason: &str) -> String {
    let mut chars = reason.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}

fn kind_name(kind: ControlKind) -> &'static str {
    match kind {
        ControlKind::Consent => "Consent button",
        ControlKind::Menu => "Menu",
        ControlKind::Search => "Search field",
        ControlKind::Tab => "Tab",
        ControlKind::Accordion => "Accordion",
        ControlKind::Dialog => "Dialog button",
        ControlKind::Button => "Button",
        ControlKind::Select => "List",
        ControlKind::Toggle => "Checkbox",
        ControlKind::Field => "Text field",
        ControlKind::Anchor => "Link in the page",
    }
}

fn input_name(input: InputKind) -> &'static str {
    match input {
        InputKind::Click => "click",
        InputKind::Tap => "tap",
        InputKind::Key => "key press",
    }
}
