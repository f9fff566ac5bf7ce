//! Names, which the events of a trace share.

use std::collections::HashMap;
use std::ops::Range;

use crate::ConversionError;
use crate::json::Json;

/// The number of a name. The default is that of an empty name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct NameId(usize);

/// All names of a trace.
#[derive(Debug)]
pub(crate) struct Names {
    /// The names one after the other, each with its quotation marks.
    json: Json,
    places: Vec<Range<usize>>,
    ids: HashMap<Box<[u8]>, NameId>,
}

impl Names {
    /// Creates a table whose names may have this number of bytes together.
    pub(crate) fn within(max_bytes: usize) -> Self {
        Self {
            json: Json::within(max_bytes),
            places: Vec::new(),
            ids: HashMap::new(),
        }
    }

    /// Returns the id of a name.
    pub(crate) fn add(&mut self, name: &[u8]) -> Result<NameId, ConversionError> {
        if name.is_empty() {
            return Ok(NameId::default());
        }
        if let Some(id) = self.ids.get(name) {
            return Ok(*id);
        }
        let begin = self.json.len();
        self.json.push_quoted(name)?;
        self.places.push(begin..self.json.len());
        let id = NameId(self.places.len());
        self.ids.insert(name.into(), id);
        Ok(id)
    }

    /// Returns a name as JSON.
    pub(crate) fn json(&self, id: NameId) -> &str {
        let place = id.0.checked_sub(1).and_then(|at| self.places.get(at));
        place.map_or(r#""""#, |place| &self.json.text()[place.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_id() {
        let mut names = Names::within(100);
        let [a, b] = [b"a", b"b"].map(|name| names.add(name).unwrap());
        assert_ne!(a, b);
        assert_eq!(names.add(b"a"), Ok(a));
        assert_eq!((names.json(a), names.json(b)), (r#""a""#, r#""b""#));
        assert_eq!(names.add(b""), Ok(NameId::default()));
        assert_eq!(names.json(NameId::default()), r#""""#);
    }

    #[test]
    fn names_have_a_limit_together() {
        let mut names = Names::within(6);
        assert!(names.add(b"a").is_ok() && names.add(b"b").is_ok());
        assert_eq!(names.add(b"c"), Err(ConversionError::TooLarge));
        assert!(names.add(b"a").is_ok());
    }
}
