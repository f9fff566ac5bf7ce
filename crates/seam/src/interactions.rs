use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The most controls of a page that inputs are made on after its visits; 0 for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Interactions(u8);

impl Interactions {
    /// The largest number of controls.
    pub const ALL: Self = Self(8);
    /// The rule for values of the API, files and the command line.
    pub const RULE: &str = "Interactions are true, false, or a number of controls of at most 8.";

    /// Returns the number of controls if it is allowed.
    pub fn of(number: u64) -> Option<Self> {
        let number = u8::try_from(number).ok()?;
        (number <= Self::ALL.0).then_some(Self(number))
    }

    /// Reads `true`, `false`, or a number of controls.
    pub fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(true) => Some(Self::ALL),
            Value::Bool(false) => Some(Self::default()),
            Value::Number(number) => Self::of(number.as_u64()?),
            _ => None,
        }
    }

    /// Returns the number of controls.
    pub fn number(self) -> u8 {
        self.0
    }

    pub fn is_none(&self) -> bool {
        self.0 == 0
    }
}

impl<'de> Deserialize<'de> for Interactions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_json(&value).ok_or_else(|| D::Error::custom(Self::RULE))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn interactions_are_a_flag_or_a_number_up_to_eight() {
        for (value, number) in [
            (json!(true), Some(8)),
            (json!(false), Some(0)),
            (json!(1), Some(1)),
            (json!(8), Some(8)),
            (json!(9), None),
            (json!(-1), None),
            (json!(1.5), None),
            (json!("3"), None),
            (json!(null), None),
        ] {
            let parsed = serde_json::from_value::<Interactions>(value.clone()).ok();
            assert_eq!(parsed.map(Interactions::number), number, "{value}");
        }
    }
}
