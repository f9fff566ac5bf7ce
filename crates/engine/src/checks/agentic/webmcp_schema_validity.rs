use std::collections::BTreeSet;

use plumbline_model::check::{Details, ElementDetail, Node};

use super::without_web_mcp;
use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, GenericIssue, Issues, Missing, WebMcp};

check! {
    /// # What
    /// Forms that are WebMCP tools have names and descriptions, and so have their fields.
    ///
    /// # Why
    /// The browser derives the schema of such a tool from the form. An agent cannot call a tool
    /// without a name, nor set a field without one.
    ///
    /// # Scored
    /// Fails when Chromium reports a form without a tool name or description or a required field
    /// without a name (score 0), or another field without a name or description (score 0.5). Not
    /// applicable without tools and reports, or when the browser does not have WebMCP.
    ///
    /// # Fix
    /// Add the missing attributes to the listed elements.
    ///
    /// # Source
    /// Lighthouse 13.5, `webmcp-schema-validity`.
    id: "webmcp-schema-validity",
    pass: "WebMCP schemas are valid",
    fail: "WebMCP schemas are not valid",
    learn: "https://developer.chrome.com/docs/ai/webmcp",
    run: run,
}

/// The types of issues with their severity and a note.
const ISSUES: [(&str, Severity, &str); 5] = [
    (
        "FormModelContextMissingToolName",
        Severity::Error,
        "The form has no `toolname`.",
    ),
    (
        "FormModelContextMissingToolDescription",
        Severity::Error,
        "The form has no `tooldescription`.",
    ),
    (
        "FormModelContextRequiredParameterMissingName",
        Severity::Error,
        "A required field has no `name`.",
    ),
    (
        "FormModelContextParameterMissingTitleAndDescription",
        Severity::Warning,
        "The field has no description.",
    ),
    (
        "FormModelContextParameterMissingName",
        Severity::Warning,
        "An optional field has no `name`.",
    ),
];

/// The score of a page with warnings only.
const WARNING_SCORE: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Error,
    Warning,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let web_mcp = facts.get::<WebMcp>()?;
    if !web_mcp.is_supported {
        return Ok(without_web_mcp());
    }
    let issues = facts.get::<Issues>()?;
    let mut problems = problems(&issues.generic);
    if problems.is_empty() {
        return Ok(if web_mcp.tools.is_empty() {
            Outcome::not_applicable()
        } else {
            Outcome::pass()
        });
    }
    problems.sort_by_key(|problem| problem.severity);
    let has_errors = problems[0].severity == Severity::Error;
    let node_of = |id: Option<i64>| {
        let element = web_mcp
            .elements
            .iter()
            .find(|element| Some(element.node_id) == id);
        element.map_or_else(Node::default, |element| element.node.clone())
    };
    let items = problems
        .iter()
        .map(|problem| ElementDetail::with_note(&node_of(problem.node_id), problem.note));
    let summary = count(problems.len(), "problem", "problems");
    let outcome = Outcome::fail(summary).with(Details::elements(items));
    Ok(if has_errors {
        outcome
    } else {
        outcome.with_score(WARNING_SCORE)
    })
}

struct Problem {
    severity: Severity,
    note: &'static str,
    node_id: Option<i64>,
}

/// Returns the problems in the order of their first report. Chromium reports each several times.
fn problems(issues: &[GenericIssue]) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for issue in issues {
        let kind = ISSUES.iter().find(|(kind, ..)| *kind == issue.error_type);
        if let Some((kind, severity, note)) = kind
            && seen.insert((*kind, issue.violating_node_id))
        {
            problems.push(Problem {
                severity: *severity,
                note,
                node_id: issue.violating_node_id,
            });
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::json;

    use super::*;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    const TOOL: &str = r#"{"isSupported": true, "tools": [{"name": "search"}],
        "elements": [{"nodeId": 7, "node": {"selector": "input"}}]}"#;

    fn judge(web_mcp: &str, issues: &[(&str, i64)]) -> Outcome {
        let issues: Vec<serde_json::Value> = issues
            .iter()
            .map(|(kind, node)| {
                json!({"code": "GenericIssue", "details": {"genericIssueDetails":
                    {"errorType": kind, "violatingNodeId": node}}})
            })
            .collect();
        Visit::new()
            .with("web-mcp", web_mcp)
            .with("issues", &json!(issues).to_string())
            .judge(CHECK)
    }

    #[test]
    fn tools_without_issues_pass() {
        let outcome = judge(TOOL, &[("FormLabelForNameError", 7)]);
        assert_eq!((outcome.verdict, outcome.score), (Verdict::Pass, None));
    }

    #[test]
    fn errors_fail_and_are_listed_once_and_first() {
        let outcome = judge(
            r#"{"isSupported": true}"#,
            &[
                ("FormModelContextParameterMissingName", 7),
                ("FormModelContextMissingToolName", 8),
                ("FormModelContextMissingToolName", 8),
            ],
        );
        assert_eq!((outcome.verdict, outcome.score), (Verdict::Fail, None));
        let Some(Details::Elements { items }) = outcome.details else {
            panic!("elements");
        };
        assert_eq!(items.len(), 2);
        assert_eq!(
            items[0].note.as_deref(),
            Some("The form has no `toolname`.")
        );
    }

    #[test]
    fn warnings_alone_are_half_a_failure() {
        let kind = "FormModelContextParameterMissingTitleAndDescription";
        let outcome = judge(TOOL, &[(kind, 7)]);
        assert_eq!((outcome.verdict, outcome.score), (Verdict::Fail, Some(0.5)));
        let Some(Details::Elements { items }) = outcome.details else {
            panic!("elements");
        };
        assert_eq!(items[0].node.selector, "input");
    }

    #[test]
    fn without_tools_and_issues_it_is_not_applicable() {
        let without = judge(r#"{"isSupported": true}"#, &[]);
        assert_eq!(without.verdict, Verdict::NotApplicable);
        let unsupported = judge("{}", &[("FormModelContextMissingToolName", 1)]);
        assert_eq!(unsupported.verdict, Verdict::NotApplicable);
    }

    #[test]
    fn without_the_evidence_it_cannot_be_measured() {
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
        let verdict = Visit::new().with("web-mcp", TOOL).verdict(CHECK);
        assert_eq!(verdict, Verdict::CouldNotMeasure);
    }
}
