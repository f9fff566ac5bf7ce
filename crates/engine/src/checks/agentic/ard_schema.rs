use plumbline_model::check::Details;

use super::catalog_rules::{self, Problem, Severity};
use crate::checks::{Outcome, check, count};
use crate::facts::{AiCatalog, AiCatalogReference, Facts, Missing};

check! {
    /// # What
    /// The site's ai-catalog.json, if any, follows the specification of Agentic Resource Discovery.
    ///
    /// # Why
    /// Agents and registries read the catalog to find the tools and agents that a site offers. They
    /// reject a catalog that does not follow the specification.
    ///
    /// # Scored
    /// The catalog is found by an `Agentmap` line of robots.txt, a link element or a `Link` header
    /// with the relation `ai-catalog`, or at `/.well-known/ai-catalog.json`. Fails when the site
    /// refers to a catalog that cannot be fetched, or when it is not JSON or violates the schema.
    /// Passes with a score of 0.9 when an entry has no representative queries or an unusual media
    /// type. Not applicable without a catalog.
    ///
    /// # Fix
    /// Correct the listed members. The specification is at agenticresourcediscovery.org.
    ///
    /// # Source
    /// Lighthouse 13.5, `agentic/ard-schema`; schema `ai-catalog` of ards-project/ard-spec.
    id: "ard-schema",
    pass: "ai-catalog.json is valid",
    fail: "ai-catalog.json is not valid",
    learn: "https://agenticresourcediscovery.org/spec/",
    run: run,
}

/// The score of a catalog with warnings only.
const WARNING_SCORE: f64 = 0.9;

/// The maximum number of listed problems; more of the same adds no information.
const MAX_LISTED: usize = 100;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let catalog = facts.get::<AiCatalog>()?;
    let file = &catalog.file;
    let is_referred_to = catalog.found_by != AiCatalogReference::WellKnown;
    if !is_referred_to && file.status != Some(200) {
        return Ok(Outcome::not_applicable());
    }
    let content = file.content.as_deref().unwrap_or_default();
    if file.status != Some(200) || content.is_empty() {
        let reason = match (&file.error, file.status) {
            (Some(error), _) => error.clone(),
            (None, Some(200)) => "it is empty".to_owned(),
            (None, Some(status)) => format!("status {status}"),
            (None, None) => "no response".to_owned(),
        };
        return Ok(Outcome::fail(format!(
            "The catalog at {} could not be fetched: {reason}.",
            file.url
        )));
    }
    let problems = catalog_rules::problems(content);
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .count();
    let outcome = match (errors, problems.len()) {
        (0, 0) => return Ok(Outcome::pass()),
        (0, warnings) => Outcome::pass()
            .with_summary(count(warnings, "warning", "warnings"))
            .with_score(WARNING_SCORE),
        (errors, _) => Outcome::fail(count(errors, "error", "errors")),
    };
    let rows = problems.into_iter().take(MAX_LISTED).map(row);
    Ok(outcome.with(Details::table(["Member", "Problem", "Severity"], rows)))
}

fn row(problem: Problem) -> [String; 3] {
    let severity = match problem.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
    };
    [problem.member, problem.text, severity.to_owned()]
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::{Value, json};

    use super::*;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn judge(artifact: &Value) -> Outcome {
        let visit = Visit::new().with("ai-catalog", &artifact.to_string());
        visit.judge(CHECK)
    }

    fn judge_catalog(catalog: &Value) -> Outcome {
        judge(&json!({"foundBy": "wellKnown", "status": 200, "content": catalog.to_string()}))
    }

    fn catalog() -> Value {
        json!({"specVersion": "1.0", "entries": [{
            "identifier": "urn:air:example.test:search",
            "displayName": "Search",
            "type": "application/mcp-server-card+json",
            "url": "https://example.test/mcp.json",
            "representativeQueries": ["find shoes", "find shirts"],
        }]})
    }

    #[test]
    fn a_valid_catalog_passes() {
        let outcome = judge_catalog(&catalog());
        assert_eq!((outcome.verdict, outcome.score), (Verdict::Pass, None));
    }

    #[test]
    fn a_catalog_with_warnings_passes_with_a_lower_score() {
        let mut catalog = catalog();
        catalog["entries"][0]["type"] = json!("application/json");
        let outcome = judge_catalog(&catalog);
        assert_eq!((outcome.verdict, outcome.score), (Verdict::Pass, Some(0.9)));
        assert_eq!(outcome.details.map(|details| details.len()), Some(1));
    }

    #[test]
    fn a_catalog_with_errors_fails() {
        let mut catalog = catalog();
        catalog["collections"] = json!([]);
        assert_eq!(judge_catalog(&catalog).verdict, Verdict::Fail);
        let page = json!({"status": 200, "content": "<!doctype html>"});
        assert_eq!(judge(&page).verdict, Verdict::Fail);
    }

    #[test]
    fn a_catalog_that_is_referred_to_has_to_exist() {
        for found_by in ["robotsTxt", "linkElement", "linkHeader"] {
            for file in [
                json!({"status": 404}),
                json!({"error": "timed out"}),
                json!({}),
            ] {
                let mut artifact = file;
                artifact["foundBy"] = json!(found_by);
                assert_eq!(judge(&artifact).verdict, Verdict::Fail, "{artifact}");
            }
        }
        let empty = json!({"foundBy": "wellKnown", "status": 200, "content": ""});
        assert_eq!(judge(&empty).verdict, Verdict::Fail);
    }

    #[test]
    fn a_site_without_a_catalog_is_not_applicable() {
        for artifact in [
            json!({"status": 404}),
            json!({"status": 204}),
            json!({"error": "x"}),
        ] {
            assert_eq!(judge(&artifact).verdict, Verdict::NotApplicable);
        }
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
