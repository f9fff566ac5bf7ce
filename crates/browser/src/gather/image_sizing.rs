//! Images with what may give them a size. Which declarations win is asked of the protocol, as a computed style
//! does not tell a size that was set from one that came with the picture.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::scripted::NODES;
use super::{Gathered, gathered, missing};
use crate::protocol::CallError;
use crate::visit::Caller;

/// For all images together, as Lighthouse has it: what is left then is not judged.
const DEADLINE: Duration = Duration::from_secs(5);
/// Answers are large; this many are on their way at once.
const AT_ONCE: usize = 16;

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    src: Option<String>,
    width_attribute: Option<String>,
    height_attribute: Option<String>,
    position: Option<String>,
    node: Option<Value>,
    #[serde(skip_serializing)]
    asked: Option<usize>,
    rules: Option<Rules>,
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Rules {
    width: Option<String>,
    height: Option<String>,
    aspect_ratio: Option<String>,
}

pub(super) async fn gather(page: &Caller) -> Gathered {
    let given_up = Instant::now() + DEADLINE;
    let script = format!("({})({NODES})", include_str!("image-sizing.js"));
    let images = page.evaluate::<Vec<Image>>(DEADLINE, &script).await;
    let mut images = images.map_err(|error| missing(&error))?;
    let asked = images.iter().filter(|image| image.asked.is_some()).count();
    let rules = match asked {
        0 => Vec::new(),
        _ => rules(page, given_up)
            .await
            .map_err(|error| missing(&error))?,
    };
    for image in &mut images {
        image.rules = image
            .asked
            .and_then(|place| rules.get(place).cloned().flatten());
    }
    gathered(&images)
}

/// By place in the script's list; none where there was no answer in time.
async fn rules(page: &Caller, given_up: Instant) -> Result<Vec<Option<Rules>>, CallError> {
    for (method, params) in [
        ("DOM.enable", json!({})),
        ("CSS.enable", json!({})),
        // Without a document nodes have no numbers.
        ("DOM.getDocument", json!({"depth": 0})),
    ] {
        let _: Value = page.call_within(left(given_up), method, params).await?;
    }
    let objects = objects(page, given_up).await?;
    let mut rules = Vec::with_capacity(objects.len());
    for some in objects.chunks(AT_ONCE) {
        if Instant::now() >= given_up {
            break;
        }
        rules.extend(rules_of(page, some, given_up).await);
    }
    Ok(rules)
}

fn left(given_up: Instant) -> Duration {
    given_up.saturating_duration_since(Instant::now())
}

async fn objects(page: &Caller, given_up: Instant) -> Result<Vec<String>, CallError> {
    #[derive(Deserialize)]
    struct Left {
        result: Object,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Object {
        object_id: Option<String>,
    }
    #[derive(Deserialize)]
    struct Properties {
        result: Vec<Property>,
    }
    #[derive(Deserialize)]
    struct Property {
        name: String,
        value: Option<Object>,
    }
    let context = page.world(left(given_up)).await?;
    let params = json!({"expression": "globalThis.plumblineImages", "contextId": context});
    let list: Left = page
        .call_within(left(given_up), "Runtime.evaluate", params)
        .await?;
    let Some(list) = list.result.object_id else {
        return Ok(Vec::new());
    };
    let params = json!({"objectId": list, "ownProperties": true});
    let properties: Properties = page
        .call_within(left(given_up), "Runtime.getProperties", params)
        .await?;
    let elements = properties.result.into_iter();
    Ok(elements
        .filter(|property| property.name.parse::<u32>().is_ok())
        .filter_map(|property| property.value?.object_id)
        .collect())
}

async fn rules_of(page: &Caller, objects: &[String], given_up: Instant) -> Vec<Option<Rules>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Requested {
        node_id: i64,
    }
    let asked: Vec<_> = objects
        .iter()
        .map(|object| {
            let params = json!({"objectId": object});
            page.call_within::<Requested>(left(given_up), "DOM.requestNode", params)
        })
        .collect();
    let mut nodes = Vec::with_capacity(asked.len());
    for answer in asked {
        nodes.push(answer.await.ok().map(|requested| requested.node_id));
    }
    let asked: Vec<_> = nodes
        .into_iter()
        .map(|node| {
            let params = json!({"nodeId": node?});
            Some(page.call_within::<Matched>(left(given_up), "CSS.getMatchedStylesForNode", params))
        })
        .collect();
    let mut rules = Vec::with_capacity(asked.len());
    for answer in asked {
        rules.push(match answer {
            Some(answer) => answer.await.ok().map(|matched| matched.rules()),
            None => None,
        });
    }
    rules
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Matched {
    inline_style: Option<Style>,
    attributes_style: Option<Style>,
    #[serde(rename = "matchedCSSRules", default)]
    matched_rules: Vec<MatchedRule>,
}

#[derive(Deserialize)]
struct MatchedRule {
    rule: Rule,
}

#[derive(Deserialize)]
struct Rule {
    style: Style,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Style {
    #[serde(default)]
    css_properties: Vec<Property>,
}

#[derive(Deserialize)]
struct Property {
    name: String,
    #[serde(default)]
    value: String,
}

impl Style {
    fn declared(&self, property: &str) -> Option<&str> {
        let found = self.css_properties.iter().find(|of| of.name == property)?;
        (!found.value.is_empty()).then_some(found.value.as_str())
    }
}

impl Matched {
    fn rules(&self) -> Rules {
        Rules {
            width: self.winner("width"),
            height: self.winner("height"),
            aspect_ratio: self.winner("aspect-ratio"),
        }
    }

    /// The element's own style, then what its attributes mean, then the most specific rule: sizes are not
    /// inherited (Lighthouse, core/gather/gatherers/image-elements.js).
    fn winner(&self, property: &str) -> Option<String> {
        let own = [&self.inline_style, &self.attributes_style];
        let own = own
            .into_iter()
            .flatten()
            .find_map(|style| style.declared(property));
        let matched = || {
            let rules = self.matched_rules.iter().rev();
            rules
                .map(|of| &of.rule.style)
                .find_map(|style| style.declared(property))
        };
        own.or_else(matched).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_elements_own_style_wins_over_attributes_and_rules() {
        let matched: Matched = serde_json::from_value(json!({
            "inlineStyle": {"cssProperties": [{"name": "width", "value": "1px"}]},
            "attributesStyle": {"cssProperties": [{"name": "width", "value": "2px"},
                {"name": "height", "value": "2px"}]},
            "matchedCSSRules": [
                {"rule": {"style": {"cssProperties": [{"name": "aspect-ratio", "value": "1"}]}}},
                {"rule": {"style": {"cssProperties": [{"name": "aspect-ratio", "value": "2"},
                    {"name": "height", "value": "3px"}]}}},
                {"rule": {"style": {"cssProperties": []}}},
            ],
        }))
        .unwrap();
        let text = |text: &str| Some(text.to_owned());
        let expected = Rules {
            width: text("1px"),
            height: text("2px"),
            aspect_ratio: text("2"),
        };
        assert_eq!(matched.rules(), expected);
    }
}
