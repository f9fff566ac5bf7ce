//! Converts the details of a check to Lighthouse's format (types/lhr/audit-details.d.ts).
//!
//! The details are read from the report's JSON. Details of an unknown kind are left out.

use plumbline_model::check::CheckResult;
use serde_json::{Map, Value, json};

use super::pictures::Pictures;
use super::tree::network_tree;
use super::treemap;
use crate::script_sizes;

/// The details of an audit.
pub(super) struct ConvertedDetails {
    pub(super) details: Value,
    pub(super) metric_savings: Option<Value>,
}

impl ConvertedDetails {
    /// Whether any metric would improve; `None` if there is no estimate.
    pub(super) fn has_savings(&self) -> Option<bool> {
        let savings = self.metric_savings.as_ref()?.as_object()?;
        Some(savings.values().any(|saved| saved.as_f64() > Some(0.0)))
    }
}

/// Converts the details of a check.
pub(super) fn of_check(check: &CheckResult, pictures: &mut Pictures) -> Option<ConvertedDetails> {
    if check.id == script_sizes::CHECK_ID {
        let nodes = treemap::nodes(check.details.as_ref()?)?;
        return Some(ConvertedDetails {
            details: json!({ "type": "treemap-data", "nodes": nodes }),
            metric_savings: None,
        });
    }
    let check = serde_json::to_value(check).ok()?;
    let savings = &check["savings"];
    let mut details = convert(&check["details"], pictures)?;
    if check["id"] == "network-dependency-tree-insight"
        && let Some(tree) = network_tree(&check["details"])
    {
        details["items"][0] = tree;
    }
    let wasted_bytes = &savings["wastedBytes"];
    // Lighthouse's insights have it here.
    if wasted_bytes.is_number() {
        details["debugData"] = json!({ "type": "debugdata", "wastedBytes": wasted_bytes });
    }
    let saved_ms = ["lcpMs", "fcpMs", "tbtMs"]
        .iter()
        .find_map(|name| savings[name].as_f64());
    // A table of savings per request is an opportunity.
    if details["type"] == "table" && names_column(&details, "url") && wasted_bytes.is_number() {
        details["type"] = json!("opportunity");
        details["overallSavingsBytes"] = wasted_bytes.clone();
        details["overallSavingsMs"] = json!(saved_ms.unwrap_or_default());
    }
    Some(ConvertedDetails {
        details,
        metric_savings: metric_savings(savings),
    })
}

fn names_column(details: &Value, key: &str) -> bool {
    let headings = details["headings"].as_array();
    headings.is_some_and(|headings| headings.iter().any(|heading| heading["key"] == key))
}

fn metric_savings(savings: &Value) -> Option<Value> {
    // Values are rounded to these steps (core/audits/audit.js).
    let named = [
        ("FCP", "fcpMs", 50.0),
        ("LCP", "lcpMs", 50.0),
        ("TBT", "tbtMs", 50.0),
        ("INP", "inpMs", 50.0),
        ("CLS", "cls", 0.001),
    ];
    let savings: Map<String, Value> = named
        .into_iter()
        .filter_map(|(metric, name, step)| {
            let saved = savings[name].as_f64()?.max(0.0);
            Some((metric.to_owned(), json!((saved / step).round() * step)))
        })
        .collect();
    (!savings.is_empty()).then_some(Value::Object(savings))
}

fn convert(details: &Value, pictures: &mut Pictures) -> Option<Value> {
    let items = || {
        details["items"]
            .as_array()
            .map_or(&[][..], Vec::as_slice)
            .iter()
    };
    Some(match details["kind"].as_str()? {
        "elements" => elements(items(), pictures),
        "urls" => table(
            [heading("url", "url", "URL"), heading("note", "text", "")],
            items().map(|item| json!({ "url": item["url"], "note": item["note"] })),
        ),
        "console" => table(
            [
                heading("sourceLocation", "source-location", "Source"),
                heading("source", "code", "Type"),
                heading("description", "code", "Message"),
            ],
            items().map(console_line),
        ),
        "values" => table(
            [
                heading("name", "text", "Name"),
                heading("value", "text", "Value"),
            ],
            items().map(|item| json!({ "name": item["name"], "value": item["value"] })),
        ),
        "table" => text_table(details),
        "findings" => findings(details, pictures),
        "checklist" => checklist(items()),
        "parts" => {
            let parts: Vec<Value> = items().filter_map(|part| convert(part, pictures)).collect();
            json!({ "type": "list", "items": parts })
        }
        _ => return None,
    })
}

fn table(headings: impl IntoIterator<Item = Value>, items: impl Iterator<Item = Value>) -> Value {
    json!({
        "type": "table",
        "headings": headings.into_iter().collect::<Vec<_>>(),
        "items": items.collect::<Vec<_>>(),
    })
}

fn heading(key: &str, value_type: &str, label: &str) -> Value {
    json!({ "key": key, "valueType": value_type, "label": label })
}

fn elements<'a>(items: impl Iterator<Item = &'a Value>, pictures: &mut Pictures) -> Value {
    let mut node_heading = heading("node", "node", "Element");
    node_heading["subItemsHeading"] = json!({ "key": "relatedNode", "valueType": "node" });
    let items: Vec<Value> = items
        .map(|item| {
            let mut row = json!({ "node": node(&item["node"], &item["note"], pictures) });
            let related: Vec<Value> = item["related"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|related| json!({ "relatedNode": node(related, &Value::Null, pictures) }))
                .collect();
            if !related.is_empty() {
                row["subItems"] = json!({ "type": "subitems", "items": related });
            }
            row
        })
        .collect();
    table([node_heading], items.into_iter())
}

fn node(node: &Value, note: &Value, pictures: &mut Pictures) -> Value {
    let mut converted = json!({
        "type": "node",
        "selector": node["selector"],
        "path": node["path"].as_str().unwrap_or_default(),
        "snippet": node["snippet"],
        "nodeLabel": node["label"],
    });
    if let Some(rect) = Rect::read(&node["rect"]) {
        converted["boundingRect"] = rect.value();
        if let Some(id) = pictures.add_node(rect) {
            converted["lhId"] = json!(id);
        }
    }
    if note.is_string() {
        converted["explanation"] = note.clone();
    }
    converted
}

/// A rectangle in CSS pixels from the top left of the viewport.
#[derive(Clone, Copy)]
pub(super) struct Rect {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rect {
    fn read(rect: &Value) -> Option<Self> {
        let of = |name: &str| rect[name].as_f64();
        Some(Self {
            left: of("left")?,
            top: of("top")?,
            width: of("width")?,
            height: of("height")?,
        })
    }

    pub(super) fn value(self) -> Value {
        json!({
            "left": self.left,
            "top": self.top,
            "width": self.width,
            "height": self.height,
            "right": self.left + self.width,
            "bottom": self.top + self.height,
        })
    }
}

fn source_location(place: &Value) -> Value {
    let mut location = json!({
        "type": "source-location",
        "url": place["url"],
        "urlProvider": "network",
        "line": place["line"].as_u64().unwrap_or_default(),
        "column": place["column"].as_u64().unwrap_or_default(),
    });
    if let Some(function) = place["function"].as_str().filter(|name| !name.is_empty()) {
        location["functionName"] = json!(function);
    }
    if place["original"].is_object() {
        let original = &place["original"];
        location["original"] = json!({
            "file": original["source"],
            "line": original["line"],
            "column": original["column"],
        });
    }
    location
}

fn console_line(line: &Value) -> Value {
    let mut row = json!({ "source": line["source"], "description": line["text"] });
    let is_placed = line["url"].as_str().is_some_and(|url| !url.is_empty());
    if is_placed && line["line"].is_number() {
        row["sourceLocation"] = source_location(line);
    } else if is_placed {
        row["sourceLocation"] = json!({ "type": "url", "value": line["url"] });
    }
    row
}

fn text_table(details: &Value) -> Value {
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let key = |index: usize| format!("column{index}");
    let headings = array(&details["columns"]);
    let headings = headings
        .iter()
        .enumerate()
        .map(|(index, label)| heading(&key(index), "text", label.as_str().unwrap_or_default()));
    let rows = array(&details["rows"]);
    let items = rows.iter().map(|row| {
        let cells = array(row).into_iter().enumerate();
        Value::Object(cells.map(|(index, cell)| (key(index), cell)).collect())
    });
    table(headings.collect::<Vec<_>>(), items)
}

/// Converts a table with typed cells: `{"bytes": 12}`, `{"url": "…"}`, `"nothing"`.
fn findings(details: &Value, pictures: &mut Pictures) -> Value {
    let columns = details["columns"].as_array().cloned().unwrap_or_default();
    let rows = details["rows"].as_array().cloned().unwrap_or_default();
    let has_parts = rows.iter().any(|row| row["subRows"].is_array());
    let headings = columns.iter().map(|column| {
        let key = column["key"].as_str().unwrap_or_default();
        let value_type = match column["unit"].as_str().unwrap_or_default() {
            "url" => "url",
            "element" => "node",
            "source" => "source-location",
            "bytes" => "bytes",
            "ms" => "ms",
            "number" => "numeric",
            _ => "text",
        };
        let mut heading = heading(
            key,
            value_type,
            column["label"].as_str().unwrap_or_default(),
        );
        if has_parts {
            heading["subItemsHeading"] = json!({ "key": key, "valueType": value_type });
        }
        heading
    });
    let headings: Vec<Value> = headings.collect();
    let items: Vec<Value> = rows
        .iter()
        .map(|row| finding(&columns, row, pictures))
        .collect();
    table(headings, items.into_iter())
}

fn finding(columns: &[Value], row: &Value, pictures: &mut Pictures) -> Value {
    let cells = row["cells"].as_array().into_iter().flatten();
    let mut item: Map<String, Value> = columns
        .iter()
        .zip(cells)
        .filter_map(|(column, cell)| {
            Some((
                column["key"].as_str()?.to_owned(),
                value_of(column, cell, pictures)?,
            ))
        })
        .collect();
    let parts: Vec<Value> = row["subRows"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|part| finding(columns, part, pictures))
        .collect();
    if !parts.is_empty() {
        item.insert(
            "subItems".to_owned(),
            json!({ "type": "subitems", "items": parts }),
        );
    }
    Value::Object(item)
}

fn value_of(column: &Value, cell: &Value, pictures: &mut Pictures) -> Option<Value> {
    let (kind, value) = cell.as_object()?.iter().next()?;
    Some(match kind.as_str() {
        "element" => node(value, &Value::Null, pictures),
        "source" => source_location(value),
        // In a column of another unit, a text needs a type.
        "text" if column["unit"] != "text" => json!({ "type": "code", "value": value }),
        _ => value.clone(),
    })
}

fn checklist<'a>(items: impl Iterator<Item = &'a Value>) -> Value {
    let items: Map<String, Value> = items
        .filter_map(|item| {
            // Reports contain `is_met`.
            let value = item.get("isMet").or_else(|| item.get("is_met"))?.clone();
            let entry = json!({ "label": item["label"], "value": value });
            Some((item["id"].as_str()?.to_owned(), entry))
        })
        .collect();
    json!({ "type": "checklist", "items": items })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(details: Value) -> Value {
        convert(&details, &mut Pictures::of(None)).unwrap()
    }

    #[test]
    fn elements_are_nodes_with_related_nodes_as_sub_items() {
        let node = |selector: &str| {
            json!({ "selector": selector, "snippet": "<a>", "label": "A",
                    "rect": { "left": 1, "top": 2, "width": 3, "height": 4 } })
        };
        let table = converted(json!({ "kind": "elements", "items": [
            { "node": node("a.x"), "note": "too small", "related": [node("a.y")] },
        ]}));
        let item = &table["items"][0];
        assert_eq!(item["node"]["type"], "node");
        assert_eq!(item["node"]["explanation"], "too small");
        assert_eq!(item["node"]["boundingRect"]["right"], 4.0);
        assert_eq!(
            item["subItems"]["items"][0]["relatedNode"]["selector"],
            "a.y"
        );
    }

    #[test]
    fn console_messages_have_the_most_precise_known_location() {
        let table = converted(json!({ "kind": "console", "items": [
            { "text": "oh", "source": "exception", "url": "http://a.test/x.js", "line": 3, "column": 7 },
            { "text": "oh", "source": "network", "url": "http://a.test/y", "line": null, "column": null },
            { "text": "oh", "source": "other", "url": "", "line": null, "column": null },
        ]}));
        assert_eq!(
            table["items"][0]["sourceLocation"]["type"],
            "source-location"
        );
        assert_eq!(table["items"][1]["sourceLocation"]["type"], "url");
        assert_eq!(table["items"][2].get("sourceLocation"), None);
    }

    #[test]
    fn typed_cells_keep_their_type() {
        let table = converted(json!({ "kind": "findings",
            "columns": [
                { "key": "url", "label": "URL", "unit": "url" },
                { "key": "wastedBytes", "label": "Savings", "unit": "bytes" },
            ],
            "rows": [{
                "cells": [{ "url": "http://a.test/" }, { "bytes": 12.0 }],
                "subRows": [{ "cells": [{ "source": { "url": "x", "line": 1, "column": 2 } }, "nothing"] }],
            }],
        }));
        assert_eq!(table["headings"][1]["valueType"], "bytes");
        assert_eq!(table["items"][0]["wastedBytes"], 12.0);
        let part = &table["items"][0]["subItems"]["items"][0];
        assert_eq!(part["url"]["type"], "source-location");
        assert_eq!(part.get("wastedBytes"), None);
    }

    #[test]
    fn an_unknown_kind_is_left_out() {
        let unknown = json!({ "kind": "hologram", "items": [] });
        assert!(convert(&unknown, &mut Pictures::of(None)).is_none());
        assert!(convert(&Value::Null, &mut Pictures::of(None)).is_none());
    }
}
