//! JSON under construction, of limited size.
//!
//! A few bytes of a trace can refer to a long text, so that the size of a trace does not limit that
//! of its JSON.

use std::fmt::Display;

use crate::ConversionError::{self, TooLarge};

#[derive(Debug)]
pub(crate) struct Json {
    text: String,
    max_bytes: usize,
}

impl Json {
    /// Creates an empty text that may have this number of bytes.
    pub(crate) fn within(max_bytes: usize) -> Self {
        Self {
            text: String::new(),
            max_bytes,
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Adds text that is JSON.
    pub(crate) fn push(&mut self, json: &str) -> Result<(), ConversionError> {
        if json.len() > self.max_bytes.saturating_sub(self.text.len()) {
            return Err(TooLarge);
        }
        self.text.push_str(json);
        Ok(())
    }

    /// Adds a comma if something was added since the text had this length.
    pub(crate) fn separate_from(&mut self, begin: usize) -> Result<(), ConversionError> {
        if self.text.len() > begin {
            self.push(",")?;
        }
        Ok(())
    }

    /// Adds a value whose text is JSON.
    pub(crate) fn push_value(&mut self, value: impl Display) -> Result<(), ConversionError> {
        self.push(&value.to_string())
    }

    /// Adds a number. Those that are not finite become texts, because JSON has none.
    pub(crate) fn push_number(&mut self, number: f64) -> Result<(), ConversionError> {
        if number.is_finite() {
            self.push_value(serde_json::Value::from(number))
        } else {
            self.push_quoted(number.to_string().as_bytes())
        }
    }

    /// Adds text in quotation marks. What is not UTF-8 is replaced.
    pub(crate) fn push_quoted(&mut self, text: &[u8]) -> Result<(), ConversionError> {
        let text = String::from_utf8_lossy(text);
        // Most text is as it is in JSON: names, URLs and pictures.
        let needs_escape = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
        if text.bytes().any(needs_escape) {
            return self.push_value(serde_json::Value::from(text.as_ref()));
        }
        self.push("\"")?;
        self.push(&text)?;
        self.push("\"")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quoted(text: &[u8]) -> String {
        let mut json = Json::within(10_000);
        json.push_quoted(text).unwrap();
        json.text
    }

    #[test]
    fn text_that_is_not_utf_8_is_replaced() {
        assert_eq!(quoted(b"a\xff"), "\"a\u{fffd}\"");
    }

    #[test]
    fn text_that_is_too_long_is_not_added() {
        let mut json = Json::within(4);
        assert_eq!(json.push("1234"), Ok(()));
        assert_eq!(json.push("5"), Err(TooLarge));
        assert_eq!(json.push_quoted(b""), Err(TooLarge));
        assert_eq!(json.text(), "1234");
    }

    proptest! {
        #[test]
        fn text_is_the_same_in_json(text in any::<String>()) {
            let json = quoted(text.as_bytes());
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
