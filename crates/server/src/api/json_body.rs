//! Reads bodies that are JSON objects.

use std::time::Duration;

use axum::{
    body::{Body, HttpBody},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use plumbline_seam::json_error;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::{
    errors::{Failure, InvalidBody},
    state::SharedState,
};

/// A body that is a JSON object.
///
/// Deserializing refuses what the contract calls an invalid body: a member that is missing, null,
/// of another type, or given twice. Unknown members are ignored.
pub(crate) struct JsonObject<T>(pub(crate) T);

/// A type that is read from the text of a body.
pub(crate) trait ReadBody: Sized {
    fn read_body(text: &[u8]) -> Result<Self, InvalidBody>;
}

impl<T: DeserializeOwned> ReadBody for T {
    fn read_body(text: &[u8]) -> Result<Self, InvalidBody> {
        members(text)
    }
}

/// Deserializes the members of a body. The error names the one that is missing or invalid.
pub(super) fn members<T: DeserializeOwned>(text: &[u8]) -> Result<T, InvalidBody> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let place = error.path().to_string();
        let reason = json_error(place.trim_matches('.'), error.inner());
        if !error.inner().is_data() {
            // The text is no JSON, wherever that was noticed.
            return InvalidBody::from(reason);
        }
        let mut path = error.path().iter();
        let (field, index) = match (path.next(), path.next()) {
            (Some(Segment::Map { key }), Some(Segment::Seq { index })) => {
                (Some(key.clone()), Some(*index))
            }
            (Some(Segment::Map { key }), _) => (Some(key.clone()), None),
            _ => (named_field(&error.inner().to_string()), None),
        };
        InvalidBody {
            field,
            index,
            reason,
        }
    })?;
    let end = deserializer.end();
    end.map_err(|error| InvalidBody::from(json_error("", &error)))?;
    Ok(value)
}

/// Returns the name of the member that is missing or given twice, from the text of serde's error.
fn named_field(error: &str) -> Option<String> {
    let rest = error
        .strip_prefix("missing field `")
        .or_else(|| error.strip_prefix("duplicate field `"))?;
    rest.split_once('`').map(|(name, _)| name.to_owned())
}

/// Deserializes an optional member, which may be absent but not null, as a whole number.
pub(super) fn whole_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<i64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let whole = value.as_i64().or_else(|| {
        // 3.0 is a whole number like 3. A number beyond all bounds only has to stay invalid.
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        Some(number as i64)
    });
    whole
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom("expected a whole number"))
}

/// Deserializes an optional member, which may be absent but not null, as a text.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

impl<T: ReadBody> FromRequest<SharedState> for JsonObject<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, service: &SharedState) -> Result<Self, Failure> {
        if !is_json(request.headers()) {
            let reason = "The content type must be application/json.";
            return Err(Failure::InvalidBody(reason.into()));
        }
        let limits = &service.app.limits;
        let text = read(request.into_body(), limits.body_bytes, limits.body_read).await?;
        // The derived implementation would also accept the values as an array.
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err(Failure::InvalidBody(
                "The body must be a JSON object.".into(),
            ));
        }
        T::read_body(&text).map(Self).map_err(Failure::InvalidBody)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else {
        return false;
    };
    let essence = only
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// Reads a body of at most `max_bytes` within `timeout`.
pub(crate) async fn read(
    body: Body,
    max_bytes: usize,
    timeout: Duration,
) -> Result<Vec<u8>, Failure> {
    // A body whose announced length is too large is refused without reading it.
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(Failure::BodyTooLarge);
    }
    let reading = Limited::new(body, max_bytes).collect();
    match tokio::time::timeout(timeout, reading).await {
        Err(_) => Err(Failure::BodyTooSlow),
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Failure::BodyTooLarge),
        // The client disconnected, or its chunks are malformed.
        Ok(Err(_)) => Err(Failure::InvalidBody("The body is incomplete.".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only errors matter")]
    struct Wanted {
        urls: Vec<String>,
        #[serde(default, deserialize_with = "whole_number")]
        runs: Option<i64>,
    }

    #[test]
    fn errors_name_the_member_unless_the_text_is_no_json() {
        for (text, field, index, reason) in [
            ("{}", Some("urls"), None, "`urls` is missing."),
            (
                r#"{"urls": {}}"#,
                Some("urls"),
                None,
                "`urls` must be a list.",
            ),
            (
                r#"{"urls": ["a", 5]}"#,
                Some("urls"),
                Some(1),
                "`urls[1]` must be a text.",
            ),
            (
                r#"{"urls": [], "runs": "x"}"#,
                Some("runs"),
                None,
                "`runs` must be a whole number.",
            ),
            (
                r#"{"urls": [], "urls": []}"#,
                Some("urls"),
                None,
                "`urls` is given twice.",
            ),
            (
                r#"{"urls": ["a""#,
                None,
                None,
                "The text is not valid JSON: see line 1, column 13.",
            ),
            (
                r#"{"urls": []} x"#,
                None,
                None,
                "The text is not valid JSON: see line 1, column 14.",
            ),
        ] {
            let error = members::<Wanted>(text.as_bytes()).unwrap_err();
            assert_eq!(
                (error.field.as_deref(), error.index),
                (field, index),
                "{text}"
            );
            assert_eq!(error.reason, reason);
        }
    }
}
