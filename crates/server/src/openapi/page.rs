//! Renders the API's description as one HTML page, without scripts and external resources.

use std::fmt::Write;

use serde_json::Value;

use super::operations;
use crate::pages::Asset;

pub(super) fn render(document: &Value) -> String {
    let mut page = DocumentWriter(String::new());
    page.head(document);
    page.contents(document);
    page.put("<main id=\"main\">\n");
    page.introduction(document);
    for tag in list(&document["tags"]) {
        let name = text(&tag["name"]);
        page.put(&format!(
            "<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n<p>{2}</p>\n",
            anchor(name),
            escape(name),
            prose(text(&tag["description"]))
        ));
        for (path, method, operation) in operations_of(document, name) {
            page.operation(document, path, method, operation);
        }
        page.put("</section>\n");
    }
    page.put("<section aria-labelledby=\"webhooks\">\n<h2 id=\"webhooks\">Webhooks</h2>\n");
    for (_, webhook) in members(&document["webhooks"]) {
        let operation = &webhook["post"];
        page.put(&format!(
            "<h3>{}</h3>\n",
            escape(text(&operation["summary"]))
        ));
        page.paragraphs(text(&operation["description"]));
        let body = &operation["requestBody"]["content"]["application/json"];
        page.put(&format!("<p>Body: {}</p>\n", kind(&body["schema"])));
    }
    page.put(
        "</section>\n<section aria-labelledby=\"schemas\">\n<h2 id=\"schemas\">Schemas</h2>\n",
    );
    for (name, schema) in members(&document["components"]["schemas"]) {
        page.schema(name, schema);
    }
    page.put("</section>\n</main>\n</div>\n</body>\n</html>\n");
    page.0
}

struct DocumentWriter(String);

impl DocumentWriter {
    fn put(&mut self, html: &str) {
        self.0.push_str(html);
    }

    fn head(&mut self, document: &Value) {
        let info = &document["info"];
        let title = escape(text(&info["title"]));
        // Writing to a string cannot fail.
        let _ = write!(
            self.0,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title} API</title>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"description\" content=\"{} API reference: every operation, with examples.\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"stylesheet\" href=\"/docs/style.css\">\n\
             <link rel=\"icon\" href=\"{}\" type=\"image/svg+xml\">\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#main\">Skip to the content</a>\n\
             <header class=\"top\"><div class=\"wide\"><a class=\"brand\" href=\"/\">{title}</a><span>API {}</span></div></header>\n\
             <div class=\"wide columns\">\n",
            escape(text(&info["summary"])),
            Asset::Icon.path(),
            escape(text(&info["version"])),
        );
    }

    fn contents(&mut self, document: &Value) {
        self.put("<nav aria-label=\"Contents\">\n");
        for tag in list(&document["tags"]) {
            let name = text(&tag["name"]);
            let _ = write!(
                self.0,
                "<p><a href=\"#{}\">{}</a></p>\n<ul>\n",
                anchor(name),
                escape(name)
            );
            for (path, method, operation) in operations_of(document, name) {
                let (id, summary) = (text(&operation["operationId"]), text(&operation["summary"]));
                let _ = writeln!(
                    self.0,
                    "<li><a href=\"#{}\" title=\"{} {}\">{}</a></li>",
                    escape(id),
                    method.to_uppercase(),
                    escape(path),
                    escape(summary),
                );
            }
            self.put("</ul>\n");
        }
        self.put("<p><a href=\"#webhooks\">Webhooks</a></p>\n<p><a href=\"#schemas\">Schemas</a></p>\n</nav>\n");
    }

    fn introduction(&mut self, document: &Value) {
        let info = &document["info"];
        let _ = write!(
            self.0,
            "<h1>{} API</h1>\n<p class=\"lead\">{}</p>\n",
            escape(text(&info["title"])),
            escape(text(&info["summary"])),
        );
        self.paragraphs(text(&info["description"]));
        self.put("<p>Machine-readable: <a href=\"/openapi.json\">openapi.json</a>.</p>\n");
    }

    fn paragraphs(&mut self, prose_text: &str) {
        for paragraph in prose_text.split("\n\n").filter(|part| !part.is_empty()) {
            self.put(&format!("<p>{}</p>\n", prose(paragraph)));
        }
    }

    fn operation(&mut self, document: &Value, path: &str, method: &str, operation: &Value) {
        let requires_key = !list(&operation["security"]).is_empty();
        let key_label = if requires_key {
            " <span class=\"key\">requires a key</span>"
        } else {
            ""
        };
        let _ = write!(
            self.0,
            "<article>\n<h3 id=\"{}\">{}</h3>\n<p class=\"at\"><code><span class=\"method\">{method}</span> {}</code>{key_label}</p>\n",
            escape(text(&operation["operationId"])),
            escape(text(&operation["summary"])),
            escape(path),
        );
        self.paragraphs(text(&operation["description"]));
        self.parameters(&operation["parameters"]);
        let body = &operation["requestBody"]["content"]["application/json"];
        if body.is_object() {
            self.put(&format!("<p>Body: {}</p>\n", kind(&body["schema"])));
        }
        self.put("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Responses\"><table><thead><tr><th scope=\"col\">Status</th><th scope=\"col\">Meaning</th></tr></thead><tbody>\n");
        for (status, response) in members(&operation["responses"]) {
            let response = resolve(document, response);
            let schema = &response["content"]["application/json"]["schema"];
            // Of several alternatives, the one in the JSON envelope is the first.
            let enveloped = list(&schema["anyOf"]).first().unwrap_or(schema);
            let schema = &enveloped["properties"]["data"];
            let shape = if schema.is_object() {
                format!(" {}", kind(schema))
            } else {
                String::new()
            };
            let meaning = prose(text(&response["description"]));
            let _ = writeln!(
                self.0,
                "<tr><td>{status}</td><td>{meaning}{shape}</td></tr>"
            );
        }
        self.put("</tbody></table></div>\n");
        self.request_examples(path, method, requires_key, &body["examples"]);
        let response = &operation["responses"]["200"]["content"]["application/json"]["example"];
        if !response.is_null() {
            self.example("Response", &format!("{response:#}"));
        }
        self.put("</article>\n");
    }

    /// Shows requests as commands for the shell.
    fn request_examples(&mut self, path: &str, method: &str, requires_key: bool, examples: &Value) {
        let mut line = "curl -s".to_owned();
        if method != "get" && method != "post" {
            let _ = write!(line, " -X {}", method.to_uppercase());
        }
        let _ = write!(line, " \"$HOST{}\"", path.replace("{id}", "$ID"));
        if requires_key {
            line.push_str(" -H \"X-SVC-KEY: $KEY\"");
        }
        if members(examples).next().is_none() {
            return self.example("Request", &line);
        }
        for (_, example) in members(examples) {
            let body = format!("{:#}", example["value"]).replace('\'', "'\\''");
            let line = format!("{line} \\\n  -H 'Content-Type: application/json' -d '{body}'");
            self.example(text(&example["summary"]), &line);
        }
    }

    fn parameters(&mut self, parameters: &Value) {
        if list(parameters).is_empty() {
            return;
        }
        self.put("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Parameters\"><table><thead><tr><th scope=\"col\">Parameter</th><th scope=\"col\">In</th><th scope=\"col\">Type</th><th scope=\"col\">Meaning</th></tr></thead><tbody>\n");
        for parameter in list(parameters) {
            let _ = writeln!(
                self.0,
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(text(&parameter["name"])),
                escape(text(&parameter["in"])),
                kind(&parameter["schema"]),
                prose(text(&parameter["description"])),
            );
        }
        self.put("</tbody></table></div>\n");
    }

    /// Shows the members of a schema in a table, and the JSON schema in a collapsed block.
    fn schema(&mut self, name: &str, schema: &Value) {
        let _ = write!(self.0, "<article>\n<h3 id=\"{0}\">{0}</h3>\n", escape(name));
        self.paragraphs(text(&schema["description"]));
        let required: Vec<&str> = list(&schema["required"]).iter().map(text).collect();
        if schema["properties"].is_object() {
            let _ = writeln!(
                self.0,
                "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Members of {}\"><table><thead><tr><th scope=\"col\">Member</th><th scope=\"col\">Type</th><th scope=\"col\">Meaning</th></tr></thead><tbody>",
                escape(name)
            );
            for (member, member_schema) in members(&schema["properties"]) {
                let optional = if required.contains(&member) {
                    ""
                } else {
                    " <span class=\"key\">optional</span>"
                };
                let _ = writeln!(
                    self.0,
                    "<tr><td><code>{}</code>{optional}</td><td>{}</td><td>{}</td></tr>",
                    escape(member),
                    kind(member_schema),
                    prose(text(&member_schema["description"])),
                );
            }
            self.put("</tbody></table></div>\n");
        } else {
            self.put(&format!("<p>{}</p>\n", kind(schema)));
        }
        let whole = escape(&format!("{schema:#}"));
        let _ = write!(
            self.0,
            "<details><summary>JSON schema of {}</summary>\n<pre tabindex=\"0\">{whole}</pre></details>\n</article>\n",
            escape(name)
        );
    }

    fn example(&mut self, title: &str, code: &str) {
        let _ = writeln!(
            self.0,
            "<figure><figcaption>{}</figcaption><pre tabindex=\"0\">{}</pre></figure>",
            escape(title),
            escape(code)
        );
    }
}

/// Describes the type of a schema in a few words, with a link if it has a name.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|to| to.rsplit('/').next()) {
        return format!("<a href=\"#{0}\">{0}</a>", escape(name));
    }
    if let Some(value) = schema.get("const") {
        return format!("<code>{}</code>", escape(&value.to_string()));
    }
    let alternatives = list(&schema["anyOf"]);
    if !alternatives.is_empty() {
        return alternatives
            .iter()
            .map(kind)
            .collect::<Vec<_>>()
            .join(" or ");
    }
    if text(&schema["type"]) == "array" {
        return format!("list of {}", kind(&schema["items"]));
    }
    let values = list(&schema["enum"]);
    if !values.is_empty() {
        let values = values
            .iter()
            .map(|value| format!("<code>{}</code>", escape(text(value))));
        return values.collect::<Vec<_>>().join(", ");
    }
    let types = list(&schema["type"]);
    let mut words = if types.is_empty() {
        text(&schema["type"]).to_owned()
    } else {
        types.iter().map(text).collect::<Vec<_>>().join(" or ")
    };
    for (name, word) in [
        ("minimum", "from"),
        ("maximum", "to"),
        ("maxLength", "up to length"),
        ("default", "default"),
    ] {
        if let Some(value) = schema.get(name) {
            let _ = write!(words, " {word} {value}");
        }
    }
    escape(&words)
}

/// Returns the operations of one tag, in the order in which they are listed.
fn operations_of<'a>(
    document: &'a Value,
    tag: &'a str,
) -> impl Iterator<Item = (&'static str, &'static str, &'a Value)> {
    operations::all()
        .into_iter()
        .filter_map(move |listed| {
            let (method, path) = listed.route;
            let operation = document["paths"].get(path)?.get(method)?;
            Some((path, method, operation))
        })
        .filter(move |(_, _, operation)| text(&operation["tags"][0]) == tag)
}

/// Returns the anchor of a heading.
fn anchor(name: &str) -> String {
    escape(&name.to_lowercase().replace(' ', "-"))
}

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
    pointer.and_then(|to| document.pointer(to)).unwrap_or(value)
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = value.as_object().into_iter().flatten();
    members.map(|(name, value)| (name.as_str(), value))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Escapes a text and marks `code` between back-ticks.
fn prose(text: &str) -> String {
    let mut html = String::new();
    for (n, part) in text.split('`').enumerate() {
        if n % 2 == 1 {
            html.push_str(&format!("<code>{}</code>", escape(part)));
        } else {
            html.push_str(&escape(part));
        }
    }
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_description_is_escaped() {
        assert_eq!(prose("a <b> `c & d`"), "a &lt;b&gt; <code>c &amp; d</code>");
    }
}
