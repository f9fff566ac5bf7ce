//! The types of arguments, which a trace describes itself in the form of protocol descriptors.

use std::collections::HashMap;

use crate::ConversionError::{self, TooLarge};
use crate::json::Json;
use crate::wire::{Value, fields, held_fields, read_varint, unzigzag};

/// The message that typed arguments extend.
const TRACK_EVENT: &str = ".perfetto.protos.TrackEvent";

/// The depth up to which messages and lists within each other are written.
pub(crate) const MAX_DEPTH: usize = 32;

/// The maximum size of all descriptors. Those of Chromium 156 have 84 kB.
const MAX_BYTES: usize = 1_000_000;

/// The types of arguments, by the full names of their messages.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// The size of the descriptors.
    bytes: usize,
    messages: HashMap<String, HashMap<u32, FieldType>>,
    enums: HashMap<String, HashMap<i64, String>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct FieldType {
    name: String,
    is_repeated: bool,
    kind: u64,
    /// The full name of a message or an enum.
    type_name: String,
}

/// The numbers of types in a field descriptor (google/protobuf/descriptor.proto).
mod kind {
    pub(super) const DOUBLE: u64 = 1;
    pub(super) const FLOAT: u64 = 2;
    pub(super) const INT64: u64 = 3;
    pub(super) const INT32: u64 = 5;
    pub(super) const BOOL: u64 = 8;
    pub(super) const STRING: u64 = 9;
    pub(super) const MESSAGE: u64 = 11;
    pub(super) const BYTES: u64 = 12;
    pub(super) const ENUM: u64 = 14;
    pub(super) const SFIXED32: u64 = 15;
    pub(super) const SFIXED64: u64 = 16;
    pub(super) const SINT32: u64 = 17;
    pub(super) const SINT64: u64 = 18;
}

impl Schema {
    /// Adds the types of an `ExtensionDescriptor`.
    pub(crate) fn add(&mut self, descriptor: &[u8]) -> Result<(), ConversionError> {
        self.bytes += descriptor.len();
        if self.bytes > MAX_BYTES {
            return Err(TooLarge);
        }
        for field in fields(descriptor) {
            if let (1, Value::Bytes(files)) = field? {
                for file in fields(files) {
                    if let (1, Value::Bytes(file)) = file? {
                        self.add_file(file)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add_file(&mut self, file: &[u8]) -> Result<(), ConversionError> {
        let mut package = String::new();
        for field in fields(file) {
            if let (2, Value::Bytes(name)) = field? {
                package = format!(".{}", text(name));
            }
        }
        for field in fields(file) {
            match field? {
                (4, Value::Bytes(message)) => self.add_message(&package, message, 0)?,
                (5, Value::Bytes(descriptor)) => self.add_enum(&package, descriptor)?,
                (7, Value::Bytes(extension)) => self.add_extension(extension)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn add_message(
        &mut self,
        scope: &str,
        message: &[u8],
        depth: usize,
    ) -> Result<(), ConversionError> {
        let full_name = format!("{scope}.{}", name_of(message)?);
        let mut types = HashMap::new();
        for field in fields(message) {
            match field? {
                (2, Value::Bytes(descriptor)) => {
                    let (number, field_type, _) = read_field(descriptor)?;
                    types.insert(number, field_type);
                }
                (3, Value::Bytes(nested)) if depth < MAX_DEPTH => {
                    self.add_message(&full_name, nested, depth + 1)?;
                }
                (4, Value::Bytes(descriptor)) => self.add_enum(&full_name, descriptor)?,
                (6, Value::Bytes(extension)) => self.add_extension(extension)?,
                _ => {}
            }
        }
        self.messages.entry(full_name).or_default().extend(types);
        Ok(())
    }

    fn add_extension(&mut self, descriptor: &[u8]) -> Result<(), ConversionError> {
        let (number, field_type, extended) = read_field(descriptor)?;
        let message = self.messages.entry(extended).or_default();
        message.insert(number, field_type);
        Ok(())
    }

    fn add_enum(&mut self, scope: &str, descriptor: &[u8]) -> Result<(), ConversionError> {
        let mut names = HashMap::new();
        for field in fields(descriptor) {
            if let (2, Value::Bytes(value)) = field? {
                let mut number = 0;
                for field in fields(value) {
                    if let (2, value) = field? {
                        number = value.number().cast_signed();
                    }
                }
                names.insert(number, name_of(value)?);
            }
        }
        let full_name = format!("{scope}.{}", name_of(descriptor)?);
        self.enums.insert(full_name, names);
        Ok(())
    }

    /// Returns whether the type of a field is described. Some are those of Perfetto itself.
    fn is_known(&self, field_type: &FieldType) -> bool {
        field_type.kind != kind::MESSAGE || self.messages.contains_key(&field_type.type_name)
    }

    /// Returns whether a field of a track event is a typed argument.
    pub(crate) fn is_argument(&self, number: u32) -> bool {
        let arguments = self.messages.get(TRACK_EVENT);
        let argument = arguments.and_then(|arguments| arguments.get(&number));
        argument.is_some_and(|argument| self.is_known(argument))
    }

    /// Adds a typed argument of a track event as a JSON member.
    pub(crate) fn push_argument(
        &self,
        json: &mut Json,
        number: u32,
        value: Value<'_>,
    ) -> Result<(), ConversionError> {
        let arguments = self.messages.get(TRACK_EVENT);
        if let Some(argument) = arguments.and_then(|arguments| arguments.get(&number)) {
            json.push_quoted(argument.name.as_bytes())?;
            json.push(":")?;
            self.push_value(json, argument, value, 0)?;
        }
        Ok(())
    }

    /// Adds a message of the type with this full name as a JSON object. Fields that the type does
    /// not have are left out.
    pub(crate) fn push_message(
        &self,
        json: &mut Json,
        type_name: &str,
        message: &[u8],
        depth: usize,
    ) -> Result<(), ConversionError> {
        let mut values = Vec::<(u32, &FieldType, Vec<Value<'_>>)>::new();
        let types = self.messages.get(type_name);
        for field in held_fields(message) {
            let (number, value) = field?;
            let field_type = types.and_then(|types| types.get(&number));
            let Some(field_type) = field_type.filter(|it| self.is_known(it)) else {
                continue;
            };
            match values.iter_mut().find(|(known, ..)| *known == number) {
                Some((.., all)) => all.push(value),
                None => values.push((number, field_type, vec![value])),
            }
        }
        json.push("{")?;
        let begin = json.len();
        for (_, field_type, values) in &values {
            json.separate_from(begin)?;
            json.push_quoted(field_type.name.as_bytes())?;
            json.push(":")?;
            if field_type.is_repeated {
                self.push_list(json, field_type, values, depth)?;
            } else if let Some(last) = values.last() {
                self.push_value(json, field_type, *last, depth)?;
            }
        }
        json.push("}")
    }

    fn push_list(
        &self,
        json: &mut Json,
        field_type: &FieldType,
        values: &[Value<'_>],
        depth: usize,
    ) -> Result<(), ConversionError> {
        json.push("[")?;
        let begin = json.len();
        let push = |json: &mut Json, value: Value<'_>| {
            json.separate_from(begin)?;
            self.push_value(json, field_type, value, depth)
        };
        for value in values {
            match value {
                Value::Bytes(packed) if field_type.is_number() => {
                    let mut packed = *packed;
                    while !packed.is_empty() {
                        let number = field_type.read_packed(&mut packed);
                        push(json, number.ok_or(ConversionError::Malformed)?)?;
                    }
                }
                value => push(json, *value)?,
            }
        }
        json.push("]")
    }

    fn push_value(
        &self,
        json: &mut Json,
        field_type: &FieldType,
        value: Value<'_>,
        depth: usize,
    ) -> Result<(), ConversionError> {
        let number = value.number();
        match field_type.kind {
            kind::DOUBLE => json.push_number(f64::from_bits(number)),
            kind::FLOAT => json.push_number(f32::from_bits(number as u32).into()),
            kind::INT64 | kind::INT32 | kind::SFIXED64 => json.push_value(number.cast_signed()),
            kind::SFIXED32 => json.push_value((number as u32).cast_signed()),
            kind::SINT32 | kind::SINT64 => json.push_value(unzigzag(number)),
            kind::BOOL => json.push_value(number != 0),
            kind::STRING | kind::BYTES => json.push_quoted(value.bytes()),
            kind::MESSAGE if depth < MAX_DEPTH => {
                self.push_message(json, &field_type.type_name, value.bytes(), depth + 1)
            }
            kind::MESSAGE => json.push("{}"),
            kind::ENUM => {
                let names = self.enums.get(&field_type.type_name);
                let number = number.cast_signed();
                match names.and_then(|names| names.get(&number)) {
                    Some(name) => json.push_quoted(name.as_bytes()),
                    None => json.push_value(number),
                }
            }
            _ => json.push_value(number),
        }
    }
}

impl FieldType {
    fn is_number(&self) -> bool {
        !matches!(self.kind, kind::STRING | kind::MESSAGE | kind::BYTES)
    }

    /// Reads a number of a list without keys.
    fn read_packed<'a>(&self, packed: &mut &'a [u8]) -> Option<Value<'a>> {
        const FIXED64: u64 = 6;
        const FIXED32: u64 = 7;
        match self.kind {
            kind::DOUBLE | FIXED64 | kind::SFIXED64 => {
                let (bytes, rest) = packed.split_first_chunk()?;
                *packed = rest;
                Some(Value::Fixed64(u64::from_le_bytes(*bytes)))
            }
            kind::FLOAT | FIXED32 | kind::SFIXED32 => {
                let (bytes, rest) = packed.split_first_chunk()?;
                *packed = rest;
                Some(Value::Fixed32(u32::from_le_bytes(*bytes)))
            }
            _ => read_varint(packed).map(Value::Varint),
        }
    }
}

/// Reads a field descriptor: its number, its type, and the message that it extends.
fn read_field(descriptor: &[u8]) -> Result<(u32, FieldType, String), ConversionError> {
    const REPEATED: u64 = 3;
    let (mut number, mut extended) = (0, String::new());
    let mut field_type = FieldType::default();
    for field in fields(descriptor) {
        match field? {
            (1, name) => field_type.name = text(name.bytes()),
            (2, name) => extended = text(name.bytes()),
            (3, value) => number = u32::try_from(value.number()).unwrap_or_default(),
            (4, label) => field_type.is_repeated = label.number() == REPEATED,
            (5, value) => field_type.kind = value.number(),
            (6, name) => field_type.type_name = text(name.bytes()),
            _ => {}
        }
    }
    Ok((number, field_type, extended))
}

/// Returns the name of a descriptor.
fn name_of(descriptor: &[u8]) -> Result<String, ConversionError> {
    for field in fields(descriptor) {
        if let (1, Value::Bytes(name)) = field? {
            return Ok(text(name));
        }
    }
    Ok(String::new())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
pub(crate) mod testing {
    use super::kind;
    use crate::wire::testing::{Message, message};

    fn field(name: &str, number: u64, is_repeated: bool, kind: u64) -> Message {
        message()
            .bytes(1, name)
            .varint(3, number)
            .varint(4, if is_repeated { 3 } else { 1 })
            .varint(5, kind)
    }

    /// Returns the descriptor of an argument `frame` with the number 1056, a message with a state,
    /// times, a name, a message of its own type and one of a type that is not described.
    pub(crate) fn frame_descriptor() -> Vec<u8> {
        let value = |name: &str, number| message().bytes(1, name).varint(2, number);
        let state = message()
            .bytes(1, "State")
            .message(2, value("STATE_DROPPED", 0))
            .message(2, value("STATE_PRESENTED", 1));
        let frame = message()
            .bytes(1, "Frame")
            .message(
                2,
                field("state", 1, false, kind::ENUM).bytes(6, ".test.Frame.State"),
            )
            .message(2, field("times", 2, true, kind::INT32))
            .message(2, field("name", 3, false, kind::STRING))
            .message(
                2,
                field("next", 4, false, kind::MESSAGE).bytes(6, ".test.Frame"),
            )
            .message(2, field("scale", 5, false, kind::DOUBLE))
            .message(2, field("offset", 6, false, kind::SINT64))
            .message(
                2,
                field("own", 7, false, kind::MESSAGE).bytes(6, ".perfetto.protos.Own"),
            )
            .message(4, state);
        let argument = field("frame", 1056, false, kind::MESSAGE)
            .bytes(2, super::TRACK_EVENT)
            .bytes(6, ".test.Frame");
        let extensions = message().bytes(1, "ChromeTrackEvent").message(6, argument);
        let file = message()
            .bytes(2, "test")
            .message(4, frame)
            .message(4, extensions);
        message().message(1, message().message(1, file)).0
    }
}

#[cfg(test)]
mod tests {
    use super::testing::frame_descriptor;
    use super::*;
    use crate::wire::testing::{Message, message};

    fn argument(message: Message) -> String {
        let mut schema = Schema::default();
        schema.add(&frame_descriptor()).unwrap();
        let mut json = Json::within(10_000);
        assert!(schema.is_argument(1056) && !schema.is_argument(1));
        schema
            .push_argument(&mut json, 1056, Value::Bytes(&message.0))
            .unwrap();
        json.text().to_owned()
    }

    #[test]
    fn arguments_have_the_names_of_their_descriptors() {
        let next = message().bytes(3, "b").varint(99, 1);
        let frame = message()
            .varint(1, 1)
            .varint(2, 3)
            .bytes(2, [4, 5])
            .bytes(3, "a\"")
            .message(4, next)
            .fixed64(5, 1.5_f64.to_bits())
            .varint(6, 3)
            .message(7, message());
        assert_eq!(
            argument(frame),
            r#""frame":{"state":"STATE_PRESENTED","times":[3,4,5],"name":"a\"","next":{"name":"b"},"scale":1.5,"offset":-2}"#
        );
    }

    #[test]
    fn unknown_values_of_enums_and_infinite_numbers_have_a_form_in_json() {
        let frame = message()
            .varint(1, 9)
            .fixed64(5, f64::INFINITY.to_bits())
            .varint(2, u64::MAX);
        assert_eq!(
            argument(frame),
            r#""frame":{"state":9,"scale":"inf","times":[-1]}"#
        );
    }

    #[test]
    fn messages_within_messages_end_at_a_depth() {
        let mut frame = message().bytes(3, "end");
        for _ in 0..100 {
            frame = message().message(4, frame);
        }
        let json = argument(frame);
        assert_eq!(json.matches("next").count(), MAX_DEPTH);
        assert!(!json.contains("end"));
    }

    #[test]
    fn descriptors_have_a_limit_together() {
        let mut schema = Schema::default();
        let large = message().bytes(2, vec![0; 600_000]).0;
        assert_eq!(schema.add(&large), Ok(()));
        assert_eq!(schema.add(&large), Err(TooLarge));
    }
}
