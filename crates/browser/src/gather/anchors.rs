//! Links without a target that a script may listen to: only the protocol sees listeners.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::protocol::CallError;
use crate::visit::Caller;

pub(super) const ARTIFACT: &str = "anchors";

const DEADLINE: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Property {
    name: String,
    #[serde(default)]
    value: Option<RemoteObject>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemoteObject {
    #[serde(default)]
    object_id: Option<String>,
}

/// The artifact with `hasListener` at each placeholder; none when there are no placeholders.
pub(super) async fn with_listeners(
    page: &Caller,
    context: i64,
    raw: &RawValue,
) -> Result<Option<Box<RawValue>>, CallError> {
    let misread = |error: serde_json::Error| CallError::Misunderstood {
        method: "Runtime.evaluate",
        reason: error.to_string(),
    };
    if !raw.get().contains("\"isPlaceholder\":true") {
        return Ok(None);
    }
    let mut anchors: Value = serde_json::from_str(raw.get()).map_err(misread)?;
    let listened = listened_to(page, context).await?;
    let mut next = listened.into_iter();
    for_each_placeholder(&mut anchors, &mut |anchor| {
        anchor["hasListener"] = json!(next.next().unwrap_or(false));
    });
    to_raw_value(&anchors).map(Some).map_err(misread)
}

/// Entries may stand in a list or in a member of an object: the shape is the script's business.
fn for_each_placeholder(value: &mut Value, mark: &mut impl FnMut(&mut Value)) {
    if value["isPlaceholder"] == json!(true) {
        mark(value);
        return;
    }
    match value {
        Value::Array(entries) => entries
            .iter_mut()
            .for_each(|entry| for_each_placeholder(entry, mark)),
        Value::Object(members) => members
            .values_mut()
            .filter(|member| member.is_array() || member.is_object())
            .for_each(|member| for_each_placeholder(member, mark)),
        _ => {}
    }
}

/// For each element that the script left, whether anybody listens to it.
async fn listened_to(page: &Caller, context: i64) -> Result<Vec<bool>, CallError> {
    #[derive(Deserialize)]
    struct Left {
        result: RemoteObject,
    }
    #[derive(Deserialize)]
    struct Properties {
        result: Vec<Property>,
    }
    let left: Left = page
        .call_within(
            DEADLINE,
            "Runtime.evaluate",
            json!({"expression": "globalThis.plumblinePlaceholders", "contextId": context}),
        )
        .await?;
    let Some(list) = left.result.object_id else {
        return Ok(Vec::new());
    };
    let properties: Properties = page
        .call_within(
            DEADLINE,
            "Runtime.getProperties",
            json!({"objectId": list, "ownProperties": true}),
        )
        .await?;
    let elements = properties
        .result
        .into_iter()
        .filter(|property| property.name.parse::<u32>().is_ok())
        .filter_map(|property| property.value?.object_id);
    let asked: Vec<_> = elements
        .map(|element| {
            page.call_within::<Listeners>(
                DEADLINE,
                "DOMDebugger.getEventListeners",
                listeners(&element),
            )
        })
        .collect();
    let mut listened = Vec::with_capacity(asked.len());
    for answer in asked {
        let found = answer.await;
        listened.push(found.is_ok_and(|found| !found.listeners.is_empty()));
    }
    Ok(listened)
}

#[derive(Deserialize)]
struct Listeners {
    #[serde(default)]
    listeners: Vec<serde::de::IgnoredAny>,
}

/// `pierce` lets listeners of the page's world be seen from ours.
fn listeners(element: &str) -> Value {
    json!({"objectId": element, "depth": 1, "pierce": true})
}
