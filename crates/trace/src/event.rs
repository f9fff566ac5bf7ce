//! The envelope of a trace event. Every field may be missing or of an unexpected type: such an
//! event carries no fact, but the events around it still do.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::event_kinds::{EventKind, event_kind};
use crate::navigation::Thread;

/// The categories in which Lighthouse searches for navigation, paint and frame events
/// (core/lib/tracehouse/trace-processor.js, `processTrace`).
const KEY_CATEGORIES: [&str; 3] = ["blink.user_timing", "loading", "devtools.timeline"];
const METADATA_CATEGORY: &str = "__metadata";

#[derive(Debug, Default)]
pub(crate) struct TraceEvent<'a> {
    pub(crate) name: Cow<'a, str>,
    /// Row of the name in the table of events.
    pub(crate) kind: EventKind,
    pub(crate) category: Cow<'a, str>,
    /// Phase letter: `X` is a complete event with a duration, `B` a begin, `E` an end … Zero if
    /// missing.
    pub(crate) phase: u8,
    pub(crate) process: i64,
    pub(crate) thread: i64,
    pub(crate) ts_us: f64,
    pub(crate) dur_us: Option<f64>,
    pub(crate) thread_dur_us: Option<f64>,
    pub(crate) args: Option<&'a RawValue>,
    /// Id that all events of one asynchronous operation share; some events have a process-local id
    /// instead.
    pub(crate) id: Cow<'a, str>,
    local_id: Option<&'a RawValue>,
}

/// Arguments of the common shape, with all values under `data`.
#[derive(serde::Deserialize)]
pub(crate) struct WithData<T> {
    pub(crate) data: T,
}

#[derive(serde::Deserialize)]
struct LocalId<'a> {
    #[serde(borrow)]
    local: Option<Cow<'a, str>>,
}

impl<'a> TraceEvent<'a> {
    pub(crate) fn is_key(&self) -> bool {
        self.is_metadata() || KEY_CATEGORIES.iter().any(|c| self.category.contains(c))
    }

    pub(crate) fn is_metadata(&self) -> bool {
        self.category == METADATA_CATEGORY
    }

    pub(crate) fn thread(&self) -> Thread {
        Thread {
            process_id: self.process,
            thread_id: self.thread,
        }
    }

    /// Returns the process-local id of the event's asynchronous operation.
    pub(crate) fn local_id(&self) -> Option<Cow<'a, str>> {
        let id: LocalId = serde_json::from_str(self.local_id?.get()).ok()?;
        id.local
    }

    /// Deserializes the arguments; returns `None` if they have another shape.
    pub(crate) fn args<T: Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.args?.get()).ok()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for TraceEvent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = TraceEvent<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a trace event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut event = TraceEvent::default();
        while let Some(key) = map.next_key::<FieldValue>()? {
            match key.text().as_ref() {
                "name" => event.name = map.next_value::<FieldValue>()?.text(),
                "cat" => event.category = map.next_value::<FieldValue>()?.text(),
                "ph" => {
                    let phase = map.next_value::<FieldValue>()?.text();
                    event.phase = phase.as_bytes().first().copied().unwrap_or(0);
                }
                "pid" => event.process = map.next_value::<FieldValue>()?.id(),
                "tid" => event.thread = map.next_value::<FieldValue>()?.id(),
                "ts" => event.ts_us = map.next_value::<FieldValue>()?.number().unwrap_or(0.0),
                "dur" => event.dur_us = map.next_value::<FieldValue>()?.number(),
                "tdur" => event.thread_dur_us = map.next_value::<FieldValue>()?.number(),
                "id" => event.id = map.next_value::<FieldValue>()?.text(),
                "id2" => event.local_id = Some(map.next_value()?),
                "args" => event.args = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        event.kind = event_kind(&event.name);
        Ok(event)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(TraceEvent::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(TraceEvent::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(TraceEvent::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(TraceEvent::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(TraceEvent::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(TraceEvent::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(TraceEvent::default())
    }
}

/// A field's value of any type; text is borrowed if JSON needed no unescaping.
pub(crate) enum FieldValue<'a> {
    Text(Cow<'a, str>),
    Number(f64),
    Other,
}

impl<'a> FieldValue<'a> {
    pub(crate) fn text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            _ => Cow::Borrowed(""),
        }
    }

    fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    fn id(self) -> i64 {
        self.number().unwrap_or(0.0) as i64
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for FieldValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = FieldValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(FieldValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(FieldValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(FieldValue::Number(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(FieldValue::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(FieldValue::Number(number as f64))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(FieldValue::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(FieldValue::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(FieldValue::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(FieldValue::Other)
    }
}
