use plumbline_model::check::{Cell, Findings, Row, Unit};

use crate::checks::{Outcome, accessibility, check, count};
use crate::facts::{Axe, AxeRule, Facts, Missing};

check! {
    /// # What
    /// The accessibility tree has names, roles and relations that an agent can rely on.
    ///
    /// # Why
    /// Agents read the accessibility tree to learn what a page offers and which element does what.
    /// They cannot operate a control without a name or with a wrong role.
    ///
    /// # Scored
    /// Fails when axe-core finds a violation of one of 33 rules about names, labels, ARIA roles and
    /// attributes, tables and lists. The first element of each violated rule is listed.
    ///
    /// # Fix
    /// Correct the listed elements. The accessibility category has all elements of each rule.
    ///
    /// # Source
    /// Lighthouse 13.5, `agentic/agent-accessibility-tree`.
    id: "agent-accessibility-tree",
    pass: "The accessibility tree is well-formed",
    fail: "The accessibility tree is not well-formed",
    learn: "https://developer.chrome.com/docs/lighthouse/agentic-browsing/accessibility-for-agents",
    run: run,
}

/// The rules of axe-core that matter to agents.
const RULES: [&str; 33] = [
    "button-name",
    "input-button-name",
    "input-image-alt",
    "label",
    "link-name",
    "select-name",
    "document-title",
    "aria-allowed-attr",
    "aria-allowed-role",
    "aria-command-name",
    "aria-conditional-attr",
    "aria-dialog-name",
    "aria-hidden-body",
    "aria-hidden-focus",
    "aria-input-field-name",
    "aria-prohibited-attr",
    "aria-required-attr",
    "aria-required-children",
    "aria-required-parent",
    "aria-roles",
    "aria-text",
    "aria-toggle-field-name",
    "aria-tooltip-name",
    "aria-treeitem-name",
    "aria-valid-attr",
    "aria-valid-attr-value",
    "duplicate-id-aria",
    "definition-list",
    "table-duplicate-name",
    "tabindex",
    "autocomplete-valid",
    "presentation-role-conflict",
    "svg-img-alt",
];

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let axe = facts.get::<Axe>()?;
    let is_relevant = |rule: &&AxeRule| RULES.contains(&rule.id.as_str());
    let violations: Vec<&AxeRule> = axe.violations.iter().filter(is_relevant).collect();
    if violations.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(violations.len(), "rule is violated", "rules are violated");
    let columns = [
        ("description", "Violation", Unit::Text),
        ("node", "First element", Unit::Element),
    ];
    let rows = violations.into_iter().map(|rule| {
        let element = rule.nodes.first().map(|first| Cell::element(&first.node));
        Row::new([
            Cell::text(title(&rule.id)),
            element.unwrap_or(Cell::Nothing),
        ])
    });
    Ok(Outcome::fail(summary).with(Findings::new(columns).rows(rows).into()))
}

/// Returns the title with which the accessibility category reports a violation of the rule.
fn title(id: &str) -> &str {
    let rule = accessibility::RULES.iter().find(|rule| rule.check.id == id);
    rule.map_or(id, |rule| rule.check.title_fail)
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::*;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    #[test]
    fn a_violation_of_a_relevant_rule_fails_with_its_first_element() {
        let axe = r#"{"violations": [
            {"id": "link-name", "nodes": [{"node": {"selector": "a"}}, {"node": {"selector": "b"}}]},
            {"id": "color-contrast", "nodes": [{"node": {"selector": "p"}}]},
            {"id": "svg-img-alt", "nodes": []}]}"#;
        let outcome = Visit::new().with("axe", axe).judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(outcome.summary.as_deref(), Some("2 rules are violated"));
        assert_eq!(outcome.details.map(|details| details.len()), Some(2));
    }

    #[test]
    fn other_violations_do_not_matter() {
        let axe = r#"{"violations": [{"id": "color-contrast"}, {"id": "image-alt"}],
            "incomplete": [{"id": "link-name"}]}"#;
        let verdict = Visit::new().with("axe", axe).verdict(CHECK);
        assert_eq!(verdict, Verdict::Pass);
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }

    #[test]
    fn every_rule_is_one_of_the_accessibility_category() {
        for id in RULES {
            assert_ne!(title(id), id);
        }
    }
}
