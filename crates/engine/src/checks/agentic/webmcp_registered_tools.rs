use plumbline_model::check::{Cell, Details, Findings, Row, SourceLocation, Unit};

use super::without_web_mcp;
use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, WebMcp, WebMcpTool};

check! {
    /// # What
    /// Lists the WebMCP tools that scripts have registered and forms have declared.
    ///
    /// # Why
    /// Agents see these names, descriptions and schemas. Tools that are missing here cannot be
    /// called.
    ///
    /// # Scored
    /// Never scored. There is a warning above 40 tools. Not applicable when the browser does not
    /// have WebMCP.
    ///
    /// # Fix
    /// Check that all tools are listed, and that their descriptions tell an agent when to use them.
    ///
    /// # Source
    /// Lighthouse 13.5, `webmcp-registered-tools`.
    id: "webmcp-registered-tools",
    pass: "WebMCP tools",
    fail: "WebMCP tools",
    learn: "https://developer.chrome.com/docs/ai/webmcp",
    run: run,
}

/// The number of tools above which Lighthouse warns.
const MAX_RECOMMENDED_TOOLS: usize = 40;

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let web_mcp = facts.get::<WebMcp>()?;
    if !web_mcp.is_supported {
        return Ok(without_web_mcp());
    }
    let tools = &web_mcp.tools;
    let (declared, registered): (Vec<&WebMcpTool>, Vec<&WebMcpTool>) =
        tools.iter().partition(|tool| tool.is_declared);
    let mut outcome = Outcome::informative(count(tools.len(), "tool", "tools"));
    let place = [
        ("source", "Source", Unit::Source),
        ("element", "Element", Unit::Element),
    ];
    let tables: Vec<Details> = [(registered, place[0]), (declared, place[1])]
        .into_iter()
        .filter(|(tools, _)| !tools.is_empty())
        .map(|(tools, place)| table(&tools, place))
        .collect();
    if !tables.is_empty() {
        outcome = outcome.with(Details::parts(tables));
    }
    if tools.len() > MAX_RECOMMENDED_TOOLS {
        outcome = outcome.warning(format!(
            "More than {MAX_RECOMMENDED_TOOLS} tools cost tokens and time, and an agent may choose \
             the wrong one."
        ));
    }
    Ok(outcome)
}

fn table(tools: &[&WebMcpTool], place: (&str, &str, Unit)) -> Details {
    let columns = [
        ("tool", "Tool", Unit::Text),
        ("description", "Description", Unit::Text),
        place,
        ("inputSchema", "Input schema", Unit::Text),
    ];
    let rows = tools.iter().map(|tool| {
        let schema = tool.input_schema.as_ref();
        Row::new([
            Cell::text(&tool.name),
            Cell::text(&tool.description),
            place_of(tool),
            schema.map_or(Cell::Nothing, |schema| Cell::text(schema.to_string())),
        ])
    });
    Findings::new(columns).rows(rows).into()
}

fn place_of(tool: &WebMcpTool) -> Cell {
    match (&tool.node, &tool.location) {
        (Some(node), _) => Cell::element(node),
        (None, Some(location)) if !tool.is_declared => Cell::Source(SourceLocation {
            url: location.url.clone(),
            line: location.line,
            column: location.column,
            ..SourceLocation::default()
        }),
        _ => Cell::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::Verdict;
    use serde_json::json;

    use super::*;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn judge(web_mcp: &serde_json::Value) -> Outcome {
        let visit = Visit::new().with("web-mcp", &web_mcp.to_string());
        visit.judge(CHECK)
    }

    #[test]
    fn registered_and_declared_tools_are_listed() {
        let outcome = judge(&json!({"isSupported": true, "tools": [
            {"name": "add", "description": "Adds", "inputSchema": {"type": "object"},
                "location": {"url": "https://example.test/a.js", "line": 1, "column": 2}},
            {"name": "search", "isDeclared": true, "node": {"selector": "form"}}]}));
        assert_eq!(outcome.verdict, Verdict::Informative);
        assert_eq!(outcome.summary.as_deref(), Some("2 tools"));
        assert_eq!(outcome.details.map(|details| details.len()), Some(2));
        assert!(outcome.warnings.is_empty());
    }

    #[test]
    fn a_page_without_tools_has_an_empty_list() {
        let outcome = judge(&json!({"isSupported": true}));
        assert_eq!(
            (outcome.verdict, outcome.details),
            (Verdict::Informative, None)
        );
    }

    #[test]
    fn more_than_forty_tools_are_warned_about() {
        let tools = |number: usize| json!({"isSupported": true, "tools": vec![json!({}); number]});
        assert!(judge(&tools(40)).warnings.is_empty());
        assert_eq!(judge(&tools(41)).warnings.len(), 1);
    }

    #[test]
    fn without_web_mcp_it_is_not_applicable() {
        let outcome = judge(&json!({}));
        assert_eq!(outcome.verdict, Verdict::NotApplicable);
        let reason = outcome.summary.unwrap();
        assert!(reason.contains("behind a flag"), "{reason}");
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
