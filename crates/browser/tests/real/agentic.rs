//! Tests of the evidence for the agentic browsing checks.

use std::os::unix::fs::PermissionsExt;

use plumbline_browser::LaunchOptions;
use plumbline_bundle::{Artifact, Bundle};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::site::Site;
use crate::{TestBed, plan};

fn artifact(bundle: &Bundle, name: &str) -> Value {
    match &bundle.artifacts[name] {
        Artifact::Gathered(raw) => serde_json::from_str(raw.get()).unwrap(),
        Artifact::Missing(reason) => panic!("{name}: {reason}"),
    }
}

/// Writes a program that starts Chromium with WebMCP, which it has only with a flag.
fn chromium_with_web_mcp(directory: &TempDir) -> LaunchOptions {
    let everybody = |path: &std::path::Path| {
        let permissions = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, permissions).unwrap();
    };
    let chromium = TestBed::new().launcher.chromium().to_owned();
    let program = directory.path().join("chromium-with-web-mcp");
    let script = format!(
        "#!/bin/sh\nexec {} --enable-features=WebMCP \"$@\"\n",
        chromium.display()
    );
    std::fs::write(&program, script).unwrap();
    everybody(&program);
    everybody(directory.path());
    LaunchOptions {
        chromium: Some(program),
        ..LaunchOptions::default()
    }
}

#[tokio::test]
async fn tools_forms_and_their_problems_are_gathered() {
    let directory = tempfile::tempdir().unwrap();
    let bed = TestBed::with(chromium_with_web_mcp(&directory));
    let site = Site::start().await;
    let url = site.url("offers-tools-to-agents.html");
    let bundle = bed.measure(&plan(url.clone())).await;
    let web_mcp = artifact(&bundle, "web-mcp");
    assert_eq!(web_mcp["isSupported"], true);
    let forms: Vec<_> = web_mcp["forms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|form| (form["toolName"].as_str(), form["toolDescription"].as_str()))
        .collect();
    let expected = [
        (Some("search"), Some("Searches the shop")),
        (Some("half"), None),
        (None, None),
    ];
    assert_eq!(forms, expected);
    let tools = web_mcp["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name);
    let add = tool("add").unwrap();
    assert_eq!(add["isDeclared"], false);
    assert_eq!(add["location"]["url"], url);
    assert_eq!(add["inputSchema"]["properties"]["number"]["type"], "number");
    let search = tool("search").unwrap();
    assert_eq!(search["isDeclared"], true);
    assert_eq!(search["node"]["selector"], "body > form#search");
    assert_eq!(tool("remove"), None, "it was removed again");
    let issues = artifact(&bundle, "issues");
    let problem = |kind: &str| {
        let mut details = issues
            .as_array()
            .unwrap()
            .iter()
            .map(|issue| &issue["details"]["genericIssueDetails"]);
        let details = details.find(|details| details["errorType"] == kind);
        let id = &details.unwrap()["violatingNodeId"];
        let elements = web_mcp["elements"].as_array().unwrap();
        let element = elements.iter().find(|element| element["nodeId"] == *id);
        element.unwrap()["node"]["selector"].clone()
    };
    assert_eq!(
        problem("FormModelContextMissingToolDescription"),
        "body > form#half"
    );
    assert_eq!(
        problem("FormModelContextParameterMissingName"),
        "body > form#search > label > input#nameless"
    );
}

#[tokio::test]
async fn a_browser_without_web_mcp_gathers_no_forms() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let plan = plan(site.url("offers-tools-to-agents.html"));
    let web_mcp = artifact(&bed.measure(&plan).await, "web-mcp");
    let nothing = json!({"isSupported": false, "tools": [], "elements": []});
    assert_eq!(web_mcp, nothing);
}

#[tokio::test]
async fn a_site_without_files_for_agents_has_none() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("plain-text.html"))).await;
    let llms_txt = artifact(&bundle, "llms-txt");
    assert_eq!(
        (&llms_txt["status"], &llms_txt["content"]),
        (&json!(404), &Value::Null)
    );
    let catalog = artifact(&bundle, "ai-catalog");
    assert_eq!(catalog["foundBy"], "wellKnown");
    assert_eq!(catalog["url"], site.url(".well-known/ai-catalog.json"));
    assert_eq!(catalog["status"], 404);
}

#[tokio::test]
async fn the_catalog_is_found_by_the_first_reference() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let html = "<!doctype html><title>Shop</title><h1>Shop</h1>";
    let link = r#"<link rel="alternate AI-Catalog" href="linked.json">"#;
    let header = "content-type: text/html\r\nlink: <headed.json>; rel=ai-catalog\r\n";
    site.add_file("dir/page", header, &format!("{html}{link}"));
    site.add_file("dir/headed", header, html);
    site.add_file("llms.txt", "", "# Shop");
    for name in ["dir/linked.json", "dir/headed.json", "mapped.json"] {
        site.add_file(name, "content-type: application/json\r\n", name);
    }
    let found = async |page: &str| {
        let bundle = bed.measure(&plan(site.url(page))).await;
        let catalog = artifact(&bundle, "ai-catalog");
        assert_eq!(artifact(&bundle, "llms-txt")["content"], "# Shop");
        let text = |member: &str| catalog[member].as_str().unwrap().to_owned();
        (text("foundBy"), text("content"))
    };
    let expected = |by: &str, content: &str| (by.to_owned(), content.to_owned());
    let linked = expected("linkElement", "dir/linked.json");
    assert_eq!(found("dir/page").await, linked);
    let headed = expected("linkHeader", "dir/headed.json");
    assert_eq!(found("dir/headed").await, headed);
    site.add_file("robots.txt", "", "User-agent: *\nAgentmap: /mapped.json\n");
    let mapped = expected("robotsTxt", "mapped.json");
    assert_eq!(found("dir/page").await, mapped);
}

#[tokio::test]
async fn a_catalog_with_another_scheme_is_not_fetched() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    site.add_file("robots.txt", "", "Agentmap: file:///etc/passwd\n");
    let bundle = bed.measure(&plan(site.url("plain-text.html"))).await;
    let catalog = artifact(&bundle, "ai-catalog");
    assert_eq!(
        (&catalog["status"], &catalog["content"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(catalog["error"], "the scheme `file:` is not supported");
}

#[tokio::test]
async fn features_in_use_are_traced() {
    let (bed, site) = (TestBed::new(), Site::start().await);
    let bundle = bed.measure(&plan(site.url("costs-time.html"))).await;
    let trace: Value = serde_json::from_slice(&bundle.trace).unwrap();
    let is_use = |event: &&Value| event["cat"] == "blink.webdx_feature_usage";
    let uses = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_use);
    assert!(uses.count() > 0);
}
