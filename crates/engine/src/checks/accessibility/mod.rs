//! The accessibility checks: axe-core's rules.
//!
//! axe-core runs in the page; here its results become outcomes. Each rule is a row of [`RULES`].

mod rules;

use plumbline_model::category::Group;
use plumbline_model::check::{Details, ElementDetail};

pub use rules::RULES;

use super::{Check, Outcome, count};
use crate::facts::{Axe, AxeRule, Facts, Missing};

/// A rule of axe-core with its weight and group in the category.
pub struct RuleCheck {
    pub check: Check,
    pub weight: f64,
    pub group: Group,
}

/// The way in which a result of axe-core is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleMode {
    Scored,
    /// A person has to decide: undecided results of axe-core are listed too, and nothing is scored.
    Informative,
}

/// Returns the rule with this id. In a constant, an unknown id is a compile error.
pub const fn rule(id: &str) -> &'static Check {
    let mut at = 0;
    while at < RULES.len() {
        if is_same(RULES[at].check.id.as_bytes(), id.as_bytes()) {
            return &RULES[at].check;
        }
        at += 1;
    }
    panic!("there is no such axe rule");
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    one.len() == other.len()
}

fn judge(facts: &Facts, id: &str, mode: RuleMode) -> Result<Outcome, Missing> {
    let axe = facts.get::<Axe>()?;
    let find = |rules: &'_ [AxeRule]| rules.iter().find(|rule| rule.id == id).cloned();
    if axe.not_applicable.iter().any(|rule| rule == id) {
        return Ok(Outcome::not_applicable());
    }
    let undecided = find(&axe.incomplete);
    if let Some(error) = undecided.as_ref().and_then(|rule| rule.error.as_deref()) {
        return Err(Missing(format!("axe-core's rule `{id}` failed: {error}")));
    }
    let violation = find(&axe.violations);
    Ok(match mode {
        RuleMode::Scored => violation.map_or_else(Outcome::pass, |rule| {
            Outcome::fail(element_count(&rule)).with(elements(&rule))
        }),
        RuleMode::Informative => violation
            .or(undecided)
            .map_or_else(Outcome::not_applicable, |rule| {
                Outcome::informative(element_count(&rule)).with(elements(&rule))
            }),
    })
}

fn element_count(rule: &AxeRule) -> String {
    let nodes = rule.node_count.unwrap_or(rule.nodes.len());
    count(nodes, "element", "elements")
}

fn elements(rule: &AxeRule) -> Details {
    Details::elements(rule.nodes.iter().map(|result| ElementDetail {
        node: result.node.clone(),
        note: Some(result.failure_summary.clone()).filter(|summary| !summary.is_empty()),
        related: result.related_nodes.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::*;
    use crate::checks::testing::Visit;

    const SCORED: &Check = rule("image-alt");
    const INFORMS: &Check = rule("video-caption");

    fn outcome(check: &Check, axe: &str) -> Outcome {
        Visit::new().with("axe", axe).judge(*check)
    }

    #[test]
    fn a_violation_fails_with_its_elements() {
        let axe = r#"{"violations": [{"id": "image-alt", "nodeCount": 30, "nodes": [
            {"node": {"selector": "img"}, "failureSummary": "Fix this", "relatedNodes": []}]}]}"#;
        let outcome = outcome(SCORED, axe);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(outcome.summary.as_deref(), Some("30 elements"));
        assert_eq!(outcome.details.map(|details| details.len()), Some(1));
    }

    #[test]
    fn a_rule_without_violations_passes() {
        assert_eq!(
            outcome(SCORED, r#"{"passes": ["image-alt"]}"#).verdict,
            Verdict::Pass
        );
        let unsure = r#"{"incomplete": [{"id": "image-alt", "nodes": []}]}"#;
        assert_eq!(outcome(SCORED, unsure).verdict, Verdict::Pass);
    }

    #[test]
    fn a_rule_without_matching_elements_is_not_applicable() {
        let axe = r#"{"notApplicable": ["image-alt", "video-caption"]}"#;
        assert_eq!(outcome(SCORED, axe).verdict, Verdict::NotApplicable);
        assert_eq!(outcome(INFORMS, axe).verdict, Verdict::NotApplicable);
    }

    #[test]
    fn a_rule_that_threw_cannot_be_measured() {
        let axe = r#"{"incomplete": [{"id": "image-alt", "error": "boom"}]}"#;
        assert_eq!(outcome(SCORED, axe).verdict, Verdict::CouldNotMeasure);
        assert_eq!(Visit::new().verdict(*SCORED), Verdict::CouldNotMeasure);
    }

    #[test]
    fn an_informative_rule_lists_undecided_results() {
        let unsure = r#"{"incomplete": [{"id": "video-caption", "nodes": [{}]}]}"#;
        assert_eq!(outcome(INFORMS, unsure).verdict, Verdict::Informative);
        assert_eq!(outcome(INFORMS, "{}").verdict, Verdict::NotApplicable);
    }
}
