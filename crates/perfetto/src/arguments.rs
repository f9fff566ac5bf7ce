//! The untyped arguments of events, which Perfetto calls debug annotations.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::ConversionError;
use crate::json::Json;
use crate::schema::{MAX_DEPTH, Schema};
use crate::wire::{Value, fields, held_fields};

/// Texts that packets of a sequence refer to by number.
#[derive(Debug, Default)]
pub(crate) struct Texts<'a> {
    pub(crate) argument_names: HashMap<u64, &'a [u8]>,
    pub(crate) type_names: HashMap<u64, &'a [u8]>,
    pub(crate) strings: HashMap<u64, &'a [u8]>,
}

/// Adds arguments to a text.
pub(crate) struct ArgumentWriter<'w, 'a> {
    pub(crate) json: &'w mut Json,
    pub(crate) texts: &'w Texts<'a>,
    pub(crate) schema: &'w Schema,
}

impl ArgumentWriter<'_, '_> {
    /// Adds an argument as a JSON member.
    pub(crate) fn push(&mut self, annotation: &[u8]) -> Result<(), ConversionError> {
        self.push_member(annotation, 0)
    }

    fn push_member(&mut self, annotation: &[u8], depth: usize) -> Result<(), ConversionError> {
        let mut name: &[u8] = b"";
        for field in fields(annotation) {
            match field? {
                (1, Value::Varint(id)) => name = text(&self.texts.argument_names, id)?,
                (10, Value::Bytes(text)) => name = text,
                _ => {}
            }
        }
        self.json.push_quoted(name)?;
        self.json.push(":")?;
        self.push_value(annotation, depth)
    }

    /// Adds the value of an argument.
    fn push_value(&mut self, annotation: &[u8], depth: usize) -> Result<(), ConversionError> {
        if depth > MAX_DEPTH {
            return self.json.push("null");
        }
        let start = self.json.len();
        let (mut type_name, mut message) = (None, None);
        // What has more than one value is an object or a list.
        let mut end = None;
        for field in fields(annotation) {
            match field? {
                (2, value) => self.json.push_value(value.number() != 0)?,
                (3, value) => self.json.push_value(value.number())?,
                (4, value) => self.json.push_value(value.number().cast_signed())?,
                (5, value) => self.json.push_number(f64::from_bits(value.number()))?,
                (6, value) => self.json.push_quoted(value.bytes())?,
                (7, value) => {
                    let pointer = value.number();
                    self.json.push_value(format_args!("\"0x{pointer:x}\""))?;
                }
                (8, value) => self.push_nested(value.bytes(), depth + 1)?,
                (9, value) => self.push_json(value.bytes())?,
                (11, entry) => {
                    self.json.push(if end.is_none() { "{" } else { "," })?;
                    end = Some("}");
                    self.push_member(entry.bytes(), depth + 1)?;
                }
                (12, item) => {
                    self.json.push(if end.is_none() { "[" } else { "," })?;
                    end = Some("]");
                    self.push_value(item.bytes(), depth + 1)?;
                }
                (13, id) => type_name = Some(text(&self.texts.type_names, id.number())?),
                (16, name) => type_name = Some(name.bytes()),
                (14, value) => message = Some(value.bytes()),
                (17, id) => {
                    let value = text(&self.texts.strings, id.number())?;
                    self.json.push_quoted(value)?;
                }
                _ => {}
            }
        }
        match (end, type_name, message) {
            (Some(end), ..) => self.json.push(end),
            (None, Some(name), Some(message)) => {
                let name = String::from_utf8_lossy(name);
                let full_name = format!(".{}", name.trim_start_matches('.'));
                self.schema
                    .push_message(self.json, &full_name, message, depth + 1)
            }
            // An object or a list without members has no fields.
            (None, ..) if self.json.len() == start => self.json.push("{}"),
            _ => Ok(()),
        }
    }

    /// Adds a value of the older form of objects and lists.
    fn push_nested(&mut self, nested: &[u8], depth: usize) -> Result<(), ConversionError> {
        const OBJECT: u64 = 1;
        const LIST: u64 = 2;
        if depth > MAX_DEPTH {
            return self.json.push("null");
        }
        let start = self.json.len();
        let (mut kind, mut keys, mut values) = (0, Vec::new(), Vec::new());
        for field in held_fields(nested) {
            match field? {
                (1, value) => kind = value.number(),
                (2, key) => keys.push(key.bytes()),
                (3 | 4, value) => values.push(value.bytes()),
                (5, value) => self.json.push_value(value.number().cast_signed())?,
                (6, value) => self.json.push_number(f64::from_bits(value.number()))?,
                (7, value) => self.json.push_value(value.number() != 0)?,
                (8, value) => self.json.push_quoted(value.bytes())?,
                _ => {}
            }
        }
        match kind {
            OBJECT => {
                self.json.push("{")?;
                let begin = self.json.len();
                for (key, value) in keys.iter().zip(values) {
                    self.json.separate_from(begin)?;
                    self.json.push_quoted(key)?;
                    self.json.push(":")?;
                    self.push_nested(value, depth + 1)?;
                }
                self.json.push("}")
            }
            LIST => {
                self.json.push("[")?;
                let begin = self.json.len();
                for value in values {
                    self.json.separate_from(begin)?;
                    self.push_nested(value, depth + 1)?;
                }
                self.json.push("]")
            }
            _ if self.json.len() == start => self.json.push("null"),
            _ => Ok(()),
        }
    }

    /// Adds a value that is JSON already. If it is not, it is added as text.
    fn push_json(&mut self, value: &[u8]) -> Result<(), ConversionError> {
        match serde_json::from_slice::<&RawValue>(value) {
            Ok(value) => self.json.push(value.get()),
            Err(_) => self.json.push_quoted(value),
        }
    }
}

fn text<'a>(texts: &HashMap<u64, &'a [u8]>, id: u64) -> Result<&'a [u8], ConversionError> {
    texts.get(&id).copied().ok_or(ConversionError::Lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::testing::frame_descriptor;
    use crate::wire::testing::{Message, message};

    fn texts() -> Texts<'static> {
        Texts {
            argument_names: [(1, "data".as_bytes()), (2, b"frame")].into(),
            type_names: [(1, "test.Frame".as_bytes())].into(),
            strings: [(1, "text".as_bytes())].into(),
        }
    }

    fn written(annotation: &Message, max_bytes: usize) -> Result<String, ConversionError> {
        let mut schema = Schema::default();
        schema.add(&frame_descriptor()).unwrap();
        let mut json = Json::within(max_bytes);
        let mut writer = ArgumentWriter {
            json: &mut json,
            texts: &texts(),
            schema: &schema,
        };
        writer.push(&annotation.0)?;
        Ok(json.text().to_owned())
    }

    fn member(annotation: Message) -> String {
        let json = written(&annotation, 10_000).unwrap();
        assert!(
            serde_json::from_str::<serde_json::Value>(&format!("{{{json}}}")).is_ok(),
            "{json}"
        );
        json
    }

    fn data() -> Message {
        message().varint(1, 1)
    }

    #[test]
    fn values_have_their_types() {
        assert_eq!(member(data().varint(2, 1)), r#""data":true"#);
        assert_eq!(
            member(data().varint(3, u64::MAX)),
            r#""data":18446744073709551615"#
        );
        assert_eq!(member(data().varint(4, u64::MAX)), r#""data":-1"#);
        assert_eq!(
            member(data().fixed64(5, 0.5_f64.to_bits())),
            r#""data":0.5"#
        );
        assert_eq!(member(data().bytes(6, "a\n")), r#""data":"a\n""#);
        assert_eq!(member(data().varint(7, 255)), r#""data":"0xff""#);
        assert_eq!(member(data().varint(17, 1)), r#""data":"text""#);
        assert_eq!(
            member(message().bytes(10, "own").varint(2, 0)),
            r#""own":false"#
        );
    }

    #[test]
    fn objects_and_lists_contain_values() {
        let entry = message().varint(1, 2).bytes(6, "F1");
        let list = message()
            .bytes(10, "list")
            .message(12, message().varint(4, 1))
            .message(12, message().message(12, message().varint(4, 2)));
        let object = data().message(11, entry).message(11, list);
        assert_eq!(member(object), r#""data":{"frame":"F1","list":[1,[2]]}"#);
        assert_eq!(member(data()), r#""data":{}"#);
    }

    #[test]
    fn objects_of_the_older_form_contain_values() {
        let list = message()
            .varint(1, 2)
            .message(4, message().varint(5, 1))
            .message(4, message().varint(7, 1))
            .message(4, message());
        let object = message()
            .varint(1, 1)
            .bytes(2, "url")
            .message(3, message().bytes(8, "/"))
            .bytes(2, "list")
            .message(3, list);
        let expected = r#""data":{"url":"/","list":[1,true,null]}"#;
        assert_eq!(member(data().message(8, object)), expected);
    }

    #[test]
    fn json_stays_json_and_anything_else_becomes_text() {
        assert_eq!(
            member(data().bytes(9, r#"{"a":[1]}"#)),
            r#""data":{"a":[1]}"#
        );
        assert_eq!(member(data().bytes(9, "{a")), r#""data":"{a""#);
    }

    #[test]
    fn messages_have_the_names_of_their_descriptors() {
        let frame = message().bytes(3, "a");
        let expected = r#""data":{"name":"a"}"#;
        assert_eq!(
            member(data().varint(13, 1).message(14, frame.clone())),
            expected
        );
        assert_eq!(
            member(data().bytes(16, ".test.Frame").message(14, frame)),
            expected
        );
    }

    #[test]
    fn values_within_values_end_at_a_depth() {
        let (mut annotation, mut nested) = (message().varint(4, 1), message().varint(5, 1));
        for _ in 0..100 {
            annotation = message().message(12, annotation);
            nested = message().varint(1, 2).message(4, nested);
        }
        assert!(member(annotation.varint(1, 1)).contains("[null]"));
        assert!(member(data().message(8, nested)).contains("[null]"));
    }

    #[test]
    fn a_text_that_is_missing_is_an_error() {
        let annotation = message().varint(1, 99).varint(2, 1);
        assert_eq!(written(&annotation, 100), Err(ConversionError::Lost));
    }

    #[test]
    fn one_argument_that_repeats_a_text_does_not_exceed_the_limit() {
        let mut annotation = data();
        for _ in 0..1000 {
            annotation = annotation.message(12, message().varint(17, 1));
        }
        let result = written(&annotation, 1000);
        assert_eq!(result, Err(ConversionError::TooLarge));
    }
}
