//! Event listeners of links without a target, which only the protocol can see.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::page::Caller;
use crate::protocol::CallError;

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

/// Returns the artifact with `hasListener` at each placeholder; `None` if there are no
/// placeholders.
pub(super) async fn with_listeners(
    page: &Caller,
    context: i64,
    raw: &RawValue,
) -> Result<Option<Box<RawValue>>, CallError> {
    let invalid = |error: serde_json::Error| CallError::InvalidResponse {
        method: "Runtime.evaluate",
        reason: error.to_string(),
    };
    if !raw.get().contains("\"isPlaceholder\":true") {
        return Ok(None);
    }
    let mut anchors: Value = serde_json::from_str(raw.get()).map_err(invalid)?;
    let have_listener = have_listeners(page, context).await?;
    let mut next = have_listener.into_iter();
    for_each_placeholder(&mut anchors, &mut |anchor| {
        anchor["hasListener"] = json!(next.next().unwrap_or(false));
    });
    to_raw_value(&anchors).map(Some).map_err(invalid)
}

/// Calls `mark` for each placeholder, in a list or in a member of an object: the script decides on
/// the shape.
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

/// Returns whether each element that the script stored has a listener.
async fn have_listeners(page: &Caller, context: i64) -> Result<Vec<bool>, CallError> {
    #[derive(Deserialize)]
    struct Evaluated {
        result: RemoteObject,
    }
    #[derive(Deserialize)]
    struct Properties {
        result: Vec<Property>,
    }
    let placeholders: Evaluated = page
        .call_within(
            DEADLINE,
            "Runtime.evaluate",
            json!({"expression": "globalThis.plumblinePlaceholders", "contextId": context}),
        )
        .await?;
    let Some(list) = placeholders.result.object_id else {
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
    let calls: Vec<_> = elements
        .map(|element| {
            page.call_within::<Listeners>(
                DEADLINE,
                "DOMDebugger.getEventListeners",
                listeners(&element),
            )
        })
        .collect();
    let mut have_listener = Vec::with_capacity(calls.len());
    for call in calls {
        let result = call.await;
        have_listener.push(result.is_ok_and(|result| !result.listeners.is_empty()));
    }
    Ok(have_listener)
}

#[derive(Deserialize)]
struct Listeners {
    #[serde(default)]
    listeners: Vec<serde::de::IgnoredAny>,
}

/// Returns the parameters of the call; `pierce` includes listeners of the page's world.
fn listeners(element: &str) -> Value {
    json!({"objectId": element, "depth": 1, "pierce": true})
}
