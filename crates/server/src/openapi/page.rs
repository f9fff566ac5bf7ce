//! The description as one page of plain HTML: no script, nothing from elsewhere.

use std::fmt::Write;

use serde_json::Value;

pub(super) fn render(document: &Value) -> String {
    let mut page = Page(String::new());
    page.head(document);
    for tag in list(&document["tags"]) {
        let name = text(&tag["name"]);
        page.put(&format!(
            "<h2>{}</h2>\n<p>{}</p>\n",
            escape(name),
            prose(text(&tag["description"]))
        ));
        for (path, method, operation) in operations(document) {
            if text(&operation["tags"][0]) == name {
                page.operation(document, path, method, operation);
            }
        }
    }
    page.put("<h2>Webhooks</h2>\n");
    for (_, webhook) in members(&document["webhooks"]) {
        let operation = &webhook["post"];
        page.put(&format!(
            "<h3>{}</h3>\n",
            escape(text(&operation["summary"]))
        ));
        page.paragraphs(text(&operation["description"]));
    }
    page.put("<h2>Schemas</h2>\n");
    for (name, schema) in members(&document["components"]["schemas"]) {
        page.put(&format!(
            "<h3 id=\"{0}\">{0}</h3>\n<pre>{1}</pre>\n",
            escape(name),
            escape(&format!("{schema:#}"))
        ));
    }
    page.put("</html>\n");
    page.0
}

struct Page(String);

impl Page {
    fn put(&mut self, html: &str) {
        self.0.push_str(html);
    }

    fn head(&mut self, document: &Value) {
        let info = &document["info"];
        let title = escape(text(&info["title"]));
        // Writing to a string cannot fail.
        let _ = write!(
            self.0,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title} API</title>\n\
             <link rel=\"stylesheet\" href=\"/docs/style.css\">\n<h1>{title} API</h1>\n\
             <p>{} Version {}. The same for programs: <a href=\"/openapi.json\">openapi.json</a>.</p>\n",
            escape(text(&info["summary"])),
            escape(text(&info["version"])),
        );
        self.paragraphs(text(&info["description"]));
        self.put("<nav><ul>\n");
        for (path, method, operation) in operations(document) {
            let (id, summary) = (text(&operation["operationId"]), text(&operation["summary"]));
            let _ = writeln!(
                self.0,
                "<li><a href=\"#{}\">{}</a><br><code>{} {}</code></li>",
                escape(id),
                escape(summary),
                method.to_uppercase(),
                escape(path)
            );
        }
        self.put("</ul></nav>\n");
    }

    fn paragraphs(&mut self, prose_text: &str) {
        for paragraph in prose_text.split("\n\n").filter(|part| !part.is_empty()) {
            self.put(&format!("<p>{}</p>\n", prose(paragraph)));
        }
    }

    fn operation(&mut self, document: &Value, path: &str, method: &str, operation: &Value) {
        let keyed = match list(&operation["security"]).is_empty() {
            true => "",
            false => " <span class=\"key\">key</span>",
        };
        let _ = write!(
            self.0,
            "<h3 id=\"{}\">{}</h3>\n<p><code><span class=\"method\">{method}</span> {}</code>{keyed}</p>\n",
            escape(text(&operation["operationId"])),
            escape(text(&operation["summary"])),
            escape(path),
        );
        self.paragraphs(text(&operation["description"]));
        self.parameters(&operation["parameters"]);
        let body = &operation["requestBody"]["content"]["application/json"];
        if body.is_object() {
            self.put(&format!("<p>Body: {}</p>\n", kind(&body["schema"])));
            for (_, example) in members(&body["examples"]) {
                self.example(text(&example["summary"]), &example["value"]);
            }
        }
        self.put("<table><tr><th>Status<th>Meaning</tr>\n");
        for (status, response) in members(&operation["responses"]) {
            let response = resolve(document, response);
            let content = &response["content"]["application/json"];
            let schema = &content["schema"]["properties"]["data"];
            let shape = if schema.is_object() {
                format!(" {}", kind(schema))
            } else {
                String::new()
            };
            let meaning = prose(text(&response["description"]));
            let _ = writeln!(self.0, "<tr><td>{status}<td>{meaning}{shape}</tr>");
        }
        self.put("</table>\n");
        let answer = &operation["responses"]["200"]["content"]["application/json"]["example"];
        if !answer.is_null() {
            self.example("Answer", answer);
        }
    }

    fn parameters(&mut self, parameters: &Value) {
        if list(parameters).is_empty() {
            return;
        }
        self.put("<table><tr><th>Parameter<th>In<th>Kind<th>Meaning</tr>\n");
        for parameter in list(parameters) {
            let _ = writeln!(
                self.0,
                "<tr><td><code>{}</code><td>{}<td>{}<td>{}</tr>",
                escape(text(&parameter["name"])),
                escape(text(&parameter["in"])),
                kind(&parameter["schema"]),
                prose(text(&parameter["description"])),
            );
        }
        self.put("</table>\n");
    }

    fn example(&mut self, title: &str, value: &Value) {
        let shown = escape(&format!("{value:#}"));
        self.put(&format!("<p>{}:</p>\n<pre>{shown}</pre>\n", escape(title)));
    }
}

/// A schema in a few words, with a link where it has a name.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|to| to.rsplit('/').next()) {
        return format!("<a href=\"#{0}\">{0}</a>", escape(name));
    }
    if text(&schema["type"]) == "array" {
        return format!("list of {}", kind(&schema["items"]));
    }
    let mut words = text(&schema["type"]).to_owned();
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

fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    members(&document["paths"]).flat_map(|(path, methods)| {
        members(methods).map(move |(method, operation)| (path, method, operation))
    })
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

/// Escaped, with `code` between back-ticks.
fn prose(text: &str) -> String {
    let mut html = String::new();
    for (n, part) in text.split('`').enumerate() {
        match n % 2 {
            1 => html.push_str(&format!("<code>{}</code>", escape(part))),
            _ => html.push_str(&escape(part)),
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
    fn nothing_in_a_description_becomes_markup() {
        assert_eq!(prose("a <b> `c & d`"), "a &lt;b&gt; <code>c &amp; d</code>");
    }
}
