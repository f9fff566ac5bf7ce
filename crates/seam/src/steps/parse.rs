//! Reads and checks steps. The reason of an error never contains a value that is filled in.

use serde_json::{Map, Value};

use super::{
    Action, Assertion, Condition, KeyDefinition, KeyPress, Selectors, Step, Steps, Viewport,
};
use crate::{Expectation, InvalidOption, Secret, read_json};

/// The name of the member with the steps before a visit.
const FIELD: &str = "steps";
/// The name of the member with the steps that are measured.
const FLOW: &str = "flow";

/// The largest number of steps. Recordings of logins have 5 to 20.
pub const MAX_STEPS: usize = 50;
/// The largest size of all steps together as JSON. A batch stores them once for each of its audits.
const MAX_STEPS_BYTES: usize = 48 * 1024;
const MAX_ALTERNATIVES: usize = 16;
/// The largest depth of nested shadow roots or frames.
const MAX_DEPTH: usize = 8;
const MAX_SELECTOR_BYTES: usize = 1024;
const MAX_URL_BYTES: usize = 2048;
const MAX_VALUE_BYTES: usize = 4096;
const MAX_EXPRESSION_BYTES: usize = 8192;
/// The longest time limit of a step.
const MAX_TIMEOUT_MS: u32 = 60_000;
/// The largest width and height of a window.
const MAX_WINDOW_PX: u32 = 10_000;

/// All supported types of steps, with the names of the Recorder.
const TYPES: [&str; 20] = [
    "goto",
    "navigate",
    "click",
    "doubleClick",
    "fill",
    "change",
    "select",
    "press",
    "keyDown",
    "keyUp",
    "hover",
    "scroll",
    "waitFor",
    "waitForElement",
    "waitForExpression",
    "assert",
    "setViewport",
    "emulateNetworkConditions",
    "close",
    // Named here so that its own message is used.
    "customStep",
];

impl Steps {
    /// Reads a list of steps, or a recording of the Recorder. The error names the first step that
    /// cannot be performed.
    pub fn parse(value: Value) -> Result<Self, InvalidOption> {
        let (steps, timeout) = match value {
            Value::Array(steps) => (steps, None),
            Value::Object(mut recording) => match recording.remove("steps") {
                Some(Value::Array(steps)) => {
                    check_recording(&recording)?;
                    (steps, recording.remove("timeout"))
                }
                _ => return Err(invalid("A recording has a member `steps` that is a list.")),
            },
            _ => return Err(invalid("It must be a list of steps, or a recording.")),
        };
        if steps.len() > MAX_STEPS {
            return Err(invalid(format!("There are more than {MAX_STEPS} steps.")));
        }
        let last = steps.len().saturating_sub(1);
        let mut parsed = Vec::with_capacity(steps.len());
        for (index, mut step) in steps.into_iter().enumerate() {
            if let (Value::Object(members), Some(timeout)) = (&mut step, &timeout) {
                members.entry("timeout").or_insert_with(|| timeout.clone());
            }
            let step = parse_step(step)
                .and_then(|step| check(&step, index == last).map(|()| step))
                .map_err(|reason| invalid(reason).at(index))?;
            parsed.push(step);
        }
        let steps = Self(parsed);
        steps.check_values()?;
        Ok(steps)
    }

    /// Reads steps that are measured, like [`Steps::parse`].
    pub fn parse_flow(value: Value) -> Result<Self, InvalidOption> {
        let steps = Self::parse(value).map_err(|error| error.of(FLOW))?;
        if !steps.is_empty() && !steps.0.iter().any(Step::is_action) {
            let reason = "No step of the flow does anything on the page.";
            return Err(InvalidOption::new(FLOW, reason));
        }
        Ok(steps)
    }

    /// Checks the sizes of the values, which may have replaced placeholders.
    pub(crate) fn check_values(&self) -> Result<(), InvalidOption> {
        for (index, step) in self.0.iter().enumerate() {
            let value = step.value().map_or("", Secret::expose);
            check_size("`value`", value, MAX_VALUE_BYTES)
                .map_err(|reason| invalid(reason).at(index))?;
        }
        self.check_size()
    }

    fn check_size(&self) -> Result<(), InvalidOption> {
        let bytes = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_STEPS_BYTES {
            let kib = MAX_STEPS_BYTES / 1024;
            return Err(invalid(format!(
                "All steps together have more than {kib} KiB."
            )));
        }
        Ok(())
    }
}

/// Checks the members of a recording besides its steps.
fn check_recording(recording: &Map<String, Value>) -> Result<(), InvalidOption> {
    if recording
        .get("title")
        .is_some_and(|title| !title.is_string())
    {
        return Err(invalid("The `title` of a recording is a text."));
    }
    let limits = 1..=u64::from(MAX_TIMEOUT_MS);
    let is_valid = |timeout: &Value| timeout.as_u64().is_some_and(|ms| limits.contains(&ms));
    if recording
        .get("timeout")
        .is_some_and(|timeout| !is_valid(timeout))
    {
        return Err(invalid(format!(
            "`timeout` is between 1 and {MAX_TIMEOUT_MS} ms."
        )));
    }
    Ok(())
}

fn invalid(reason: impl Into<String>) -> InvalidOption {
    InvalidOption::new(FIELD, reason)
}

fn parse_step(step: Value) -> Result<Step, String> {
    let kind = step.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind == "customStep" {
        let name = step.get("name").and_then(Value::as_str).unwrap_or_default();
        return Err(format!(
            "Steps of the type `customStep` ({}) are not supported.",
            quotable(name)
        ));
    }
    if !TYPES.contains(&kind) {
        let supported = TYPES[..TYPES.len() - 1].join(", ");
        return Err(format!(
            "The type `{}` is not supported. Supported types: {supported}.",
            quotable(kind)
        ));
    }
    read_json(&step)
}

/// Returns a name for a message, which is not longer than names are.
fn quotable(name: &str) -> String {
    name.chars().take(40).collect()
}

fn check(step: &Step, is_last: bool) -> Result<(), String> {
    if step
        .target
        .as_deref()
        .is_some_and(|target| target != "main")
    {
        return Err("Steps in other windows (`target`) are not supported.".to_owned());
    }
    if step
        .timeout_ms
        .is_some_and(|ms| ms == 0 || ms > MAX_TIMEOUT_MS)
    {
        return Err(format!("`timeout` is between 1 and {MAX_TIMEOUT_MS} ms."));
    }
    if step.frame.len() > MAX_DEPTH {
        return Err(format!("`frame` has more than {MAX_DEPTH} levels."));
    }
    let expression = match &step.action {
        Action::WaitFor(condition) => &condition.expression,
        Action::Assert(assertion) => &assertion.expression,
        _ => &None,
    };
    if expression.is_some() && !step.frame.is_empty() {
        return Err("Expressions in frames (`frame`) are not supported.".to_owned());
    }
    match &step.action {
        Action::SetViewport(viewport) => check_viewport(viewport),
        Action::Goto { url } => check_url(url),
        Action::Click(click) | Action::DoubleClick(click) => check_selectors(&click.selectors),
        Action::Fill(entry) | Action::Select(entry) => check_selectors(&entry.selectors),
        Action::Press { key } => check_key(key, KeyPress::of(key).is_some()),
        Action::KeyDown { key } | Action::KeyUp { key } => {
            check_key(key, KeyDefinition::of(key).is_some())
        }
        Action::Hover { selectors } => check_selectors(selectors),
        Action::Scroll(scroll) => scroll.selectors.as_ref().map_or(Ok(()), check_selectors),
        Action::WaitFor(condition) => check_condition(condition),
        Action::Assert(assertion) => check_assertion(assertion),
        Action::EmulateNetworkConditions(_) => Ok(()),
        Action::Close if is_last => Ok(()),
        Action::Close => Err("The page can only be closed in the last step.".to_owned()),
    }
}

fn check_viewport(viewport: &Viewport) -> Result<(), String> {
    let is_valid = |px: u32| (1..=MAX_WINDOW_PX).contains(&px);
    let scale = viewport.device_scale_factor.value();
    if is_valid(viewport.width) && is_valid(viewport.height) && (0.1..=10.0).contains(&scale) {
        Ok(())
    } else {
        Err(format!(
            "`width` and `height` are between 1 and {MAX_WINDOW_PX}, `deviceScaleFactor` between \
             0.1 and 10."
        ))
    }
}

fn check_url(url: &str) -> Result<(), String> {
    check_size("`url`", url, MAX_URL_BYTES)?;
    let is_path = url.starts_with('/') && !url.starts_with("//");
    if is_path || crate::state::origin_of(url).is_some() {
        Ok(())
    } else {
        Err("`url` must be an http or https URL, or a path that begins with /.".to_owned())
    }
}

fn check_selectors(selectors: &Selectors) -> Result<(), String> {
    let Selectors(alternatives) = selectors;
    let is_empty = alternatives.is_empty()
        || alternatives
            .iter()
            .any(|path| path.is_empty() || path.iter().any(String::is_empty));
    if is_empty {
        return Err("A selector is empty.".to_owned());
    }
    if alternatives.len() > MAX_ALTERNATIVES || alternatives.iter().any(|p| p.len() > MAX_DEPTH) {
        return Err(format!(
            "There are more than {MAX_ALTERNATIVES} alternatives, or one has more than \
             {MAX_DEPTH} parts."
        ));
    }
    let mut parts = alternatives.iter().flatten();
    parts.try_for_each(|part| check_size("A selector", part, MAX_SELECTOR_BYTES))
}

fn check_key(key: &str, is_known: bool) -> Result<(), String> {
    if is_known {
        Ok(())
    } else {
        Err(format!(
            "The key `{}` is not known. Keys are characters, or names such as Enter, Tab or \
             ArrowDown.",
            quotable(key)
        ))
    }
}

fn check_condition(condition: &Condition) -> Result<(), String> {
    let conditions = [
        condition.selectors.is_some(),
        condition.url.is_some(),
        condition.idle,
        condition.expression.is_some(),
    ];
    if conditions.into_iter().filter(|is_set| *is_set).count() != 1 {
        return Err(
            "Exactly one of `selector`, `url`, `idle` and `expression` must be set.".to_owned(),
        );
    }
    if let Some(selectors) = &condition.selectors {
        check_selectors(selectors)?;
    }
    if let Some(url) = &condition.url {
        check_size("`url`", url, MAX_URL_BYTES)?;
    }
    check_expression(condition.expression.as_deref())
}

fn check_assertion(assertion: &Assertion) -> Result<(), String> {
    if assertion.expression.is_none() && assertion.expect == Expectation::default() {
        return Err(
            "One of `selector`, `text`, `url`, `cookie` and `expression` must be set.".to_owned(),
        );
    }
    crate::validate::check_expectation(&assertion.expect).map_err(|error| error.reason)?;
    check_expression(assertion.expression.as_deref())
}

fn check_expression(expression: Option<&str>) -> Result<(), String> {
    match expression {
        Some("") => Err("`expression` is empty.".to_owned()),
        Some(expression) => check_size("`expression`", expression, MAX_EXPRESSION_BYTES),
        None => Ok(()),
    }
}

fn check_size(name: &str, text: &str, max_bytes: usize) -> Result<(), String> {
    if text.len() > max_bytes {
        return Err(format!("{name} has more than {max_bytes} bytes."));
    }
    Ok(())
}
