//! Lighthouse's audits that a person has to perform. They are the same for every page.

use serde_json::{Value, json};

/// An audit that a person has to perform.
struct ManualAudit {
    category: &'static str,
    id: &'static str,
    title: &'static str,
    description: &'static str,
}

const fn accessibility(
    id: &'static str,
    title: &'static str,
    description: &'static str,
) -> ManualAudit {
    ManualAudit {
        category: "accessibility",
        id,
        title,
        description,
    }
}

const AUDITS: [ManualAudit; 11] = [
    accessibility(
        "focusable-controls",
        "Interactive controls can be reached with the keyboard",
        "Press Tab repeatedly: every control of your own must get the focus, and show it.",
    ),
    accessibility(
        "interactive-element-affordance",
        "Interactive elements look interactive",
        "Links, buttons and fields must be recognisable, and must differ from text.",
    ),
    accessibility(
        "logical-tab-order",
        "The tab order is logical",
        "Press Tab repeatedly: the focus must follow the visual order of the page.",
    ),
    accessibility(
        "visual-order-follows-dom",
        "The visual order follows the order of the document",
        "Compare both orders: assistive technology reads the document, not the layout.",
    ),
    accessibility(
        "focus-traps",
        "The focus does not get stuck",
        "The keyboard must lead into every part of the page and out of it again.",
    ),
    accessibility(
        "managed-focus",
        "The focus moves to new content",
        "When a dialog or other content appears, the focus must move to it.",
    ),
    accessibility(
        "use-landmarks",
        "Landmarks structure the page",
        "Elements such as `main` and `nav` let users of screen readers skip parts of the page.",
    ),
    accessibility(
        "offscreen-content-hidden",
        "Content that is not visible is hidden from assistive technology",
        "Hide it with `display: none` or `aria-hidden=\"true\"`.",
    ),
    accessibility(
        "custom-controls-labels",
        "Controls of your own have labels",
        "Give each an accessible name, for instance with `aria-label` or `aria-labelledby`.",
    ),
    accessibility(
        "custom-controls-roles",
        "Controls of your own have ARIA roles",
        "Give each the role of what it does, such as `button` or `slider`.",
    ),
    ManualAudit {
        category: "seo",
        id: "structured-data",
        title: "Structured data is valid",
        description: "Check it with a validator for structured data.",
    },
];

/// Returns whether a person has to perform the audit with this id.
pub(super) fn contains(id: &str) -> bool {
    AUDITS.iter().any(|audit| audit.id == id)
}

/// Returns the ids and the audits of a category.
pub(super) fn audits(category: &str) -> impl Iterator<Item = (&'static str, Value)> {
    let audits = AUDITS
        .iter()
        .filter(move |audit| audit.category == category);
    audits.map(|audit| {
        let json = json!({
            "id": audit.id,
            "title": audit.title,
            "description": audit.description,
            "score": null,
            "scoreDisplayMode": "manual",
        });
        (audit.id, json)
    })
}
