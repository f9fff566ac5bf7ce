use plumbline_model::check::{Cell, Findings, Row, Savings, Unit};
use plumbline_trace::{Animation, Trace};

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, TraceElements};

check! {
    /// # What
    /// Animations that cannot run on the compositor, and the reasons.
    ///
    /// # Why
    /// They stutter when the main thread is busy, and may shift the layout.
    ///
    /// # Scored
    /// Informative. Lists elements with such an animation where the reason can be fixed. Not
    /// applicable without any.
    ///
    /// # Fix
    /// Animate `transform` and `opacity` instead of sizes, positions and colours.
    ///
    /// # Source
    /// Lighthouse 13.5, `non-composited-animations`; Chromium, compositor_animations.h.
    id: "non-composited-animations",
    pass: "Non-composited animations",
    fail: "Non-composited animations",
    learn: "https://developer.chrome.com/docs/lighthouse/performance/non-composited-animations/",
    run: run,
}

const UNSUPPORTED_PROPERTY: i64 = 1 << 13;

/// Chromium's failure reasons that an author can fix, without the one about properties.
const REASONS: [(i64, &str); 5] = [
    (1 << 11, "The transform depends on the size of the box"),
    (1 << 12, "The filter may move pixels"),
    (
        1 << 4,
        "The effect has a composite mode other than `replace`",
    ),
    (
        1 << 6,
        "The element has another animation that is incompatible",
    ),
    (
        1 << 3,
        "The effect has timing that the compositor does not support",
    ),
];

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let trace = facts.get::<Trace>()?;
    let elements = facts.get::<TraceElements>()?;
    let mut order: Vec<i64> = Vec::new();
    for animation in &trace.animations {
        if !order.contains(&animation.node_id) {
            order.push(animation.node_id);
        }
    }
    let rows: Vec<Row> = order
        .into_iter()
        .filter_map(|node_id| {
            let element = elements
                .0
                .iter()
                .find(|element| element.node_id == node_id)?;
            let of_node = |animation: &&Animation| animation.node_id == node_id;
            let rows = failures(trace.animations.iter().filter(of_node));
            (!rows.is_empty()).then(|| {
                let node = Cell::element(&element.node);
                Row::new([node, Cell::Nothing]).with(rows)
            })
        })
        .collect();
    if rows.is_empty() {
        return Ok(Outcome::not_applicable());
    }
    let summary = count(rows.len(), "animated element", "animated elements");
    let table = Findings::new([
        ("node", "Element", Unit::Element),
        ("animation", "Animation", Unit::Text),
    ])
    .rows(rows);
    Ok(Outcome::informative(format!("{summary} found."))
        .with(table.into())
        .with_savings(Savings {
            cls: Some(0.0),
            ..Savings::default()
        }))
}

/// Returns a row for each distinct pair of animation name and reason.
fn failures<'a>(animations: impl Iterator<Item = &'a Animation>) -> Vec<Row> {
    let mut by_name: Vec<(&str, Vec<String>)> = Vec::new();
    for animation in animations {
        for reason in reasons(animation) {
            let at = by_name.iter().position(|(name, _)| *name == animation.name);
            let at = at.unwrap_or_else(|| {
                by_name.push((&animation.name, Vec::new()));
                by_name.len() - 1
            });
            let reasons = &mut by_name[at].1;
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    let row = |name: &str, reason: String| {
        let name = match name {
            "" => Cell::Nothing,
            name => Cell::text(name),
        };
        Row::new([Cell::Text(reason), name])
    };
    by_name
        .into_iter()
        .flat_map(|(name, reasons)| reasons.into_iter().map(move |reason| row(name, reason)))
        .collect()
}

fn reasons(animation: &Animation) -> Vec<String> {
    let mut reasons = Vec::new();
    if animation.failure_mask & UNSUPPORTED_PROPERTY != 0 {
        let mut properties: Vec<&str> = Vec::new();
        for property in &animation.unsupported_properties {
            if !properties.contains(&property.as_str()) {
                properties.push(property);
            }
        }
        let (custom, plain): (Vec<&str>, Vec<&str>) = properties
            .into_iter()
            .partition(|property| property.starts_with("--"));
        if !plain.is_empty() {
            reasons.push(format!("Unsupported properties: {}", plain.join(", ")));
        }
        if !custom.is_empty() {
            reasons.push(format!("Custom properties: {}", custom.join(", ")));
        }
    }
    let others = REASONS
        .iter()
        .filter(|(bit, _)| animation.failure_mask & bit != 0);
    reasons.extend(others.map(|(_, reason)| (*reason).to_owned()));
    reasons
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::CHECK;
    use crate::checks::performance::page_load::PageLoad;
    use crate::checks::testing::verdict_without_evidence;

    #[test]
    fn an_animation_of_an_unsupported_property_is_listed() {
        let outcome = PageLoad::new()
            .animation(4, "grow", 1 << 13, &["width", "--size"])
            .element(4, "body > div")
            .judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Informative);
        let text = serde_json::to_string(&outcome.details.unwrap()).unwrap();
        for expected in ["body > div", "grow", "width", "--size"] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn reasons_that_an_author_cannot_fix_are_not_listed() {
        let no_reason = PageLoad::new()
            .animation(4, "grow", 1 << 5, &[])
            .element(4, "body > div");
        assert_eq!(no_reason.judge(CHECK).verdict, Verdict::NotApplicable);
        let composited = PageLoad::new().animation(4, "fade", 0, &[]).element(4, "p");
        assert_eq!(composited.judge(CHECK).verdict, Verdict::NotApplicable);
        let no_elements = PageLoad::new().animation(4, "grow", 1 << 13, &["width"]);
        assert_eq!(no_elements.judge(CHECK).verdict, Verdict::CouldNotMeasure);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
