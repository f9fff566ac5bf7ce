use plumbline_model::check::{Details, ElementDetail};

use super::without_web_mcp;
use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, WebMcp};

check! {
    /// # What
    /// Forms are annotated as WebMCP tools.
    ///
    /// # Why
    /// An agent can call an annotated form like a function, instead of guessing what its fields
    /// mean.
    ///
    /// # Scored
    /// Passes when every form has a `toolname` or a `tooldescription`; otherwise the forms without
    /// either are listed and nothing is scored. Not applicable without forms, or when the browser
    /// does not have WebMCP.
    ///
    /// # Fix
    /// Add `toolname` and `tooldescription` to the listed forms if agents should be able to use
    /// them.
    ///
    /// # Source
    /// Lighthouse 13.5, `webmcp-form-coverage`.
    id: "webmcp-form-coverage",
    pass: "WebMCP annotations of forms",
    fail: "WebMCP annotations of forms",
    learn: "https://developer.chrome.com/docs/ai/webmcp",
    run: run,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let web_mcp = facts.get::<WebMcp>()?;
    if !web_mcp.is_supported {
        return Ok(without_web_mcp());
    }
    if web_mcp.forms.is_empty() {
        return Ok(Outcome::not_applicable());
    }
    let without: Vec<ElementDetail> = web_mcp
        .forms
        .iter()
        .filter(|form| form.tool_name.is_empty() && form.tool_description.is_empty())
        .map(|form| ElementDetail::from(&form.node))
        .collect();
    if without.is_empty() {
        return Ok(Outcome::pass());
    }
    let summary = count(
        without.len(),
        "form without annotations",
        "forms without annotations",
    );
    Ok(Outcome::informative(summary).with(Details::elements(without)))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;

    use super::*;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn judge(web_mcp: &str) -> Outcome {
        Visit::new().with("web-mcp", web_mcp).judge(CHECK)
    }

    #[test]
    fn forms_with_a_name_or_a_description_pass() {
        let forms = r#"{"isSupported": true, "forms": [{"toolName": "search", "toolDescription": null},
            {"toolName": "", "toolDescription": "Searches"}]}"#;
        assert_eq!(judge(forms).verdict, Verdict::Pass);
    }

    #[test]
    fn forms_with_neither_are_listed() {
        let forms = r#"{"isSupported": true, "forms": [{"toolName": "search"},
            {"toolName": "", "node": {"selector": "form"}}]}"#;
        let outcome = judge(forms);
        assert_eq!(outcome.verdict, Verdict::Informative);
        assert_eq!(
            outcome.summary.as_deref(),
            Some("1 form without annotations")
        );
        assert_eq!(outcome.details.map(|details| details.len()), Some(1));
    }

    #[test]
    fn without_forms_or_web_mcp_it_is_not_applicable() {
        for web_mcp in [
            r#"{"isSupported": true}"#,
            r#"{"isSupported": false, "forms": [{}]}"#,
        ] {
            assert_eq!(judge(web_mcp).verdict, Verdict::NotApplicable);
        }
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
