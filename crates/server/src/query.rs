//! The parameters of a query, each of which may be given once. The contract's operations ignore
//! unknown ones; all others refuse them, because a misspelt filter would return other audits.

use std::{collections::HashMap, convert::Infallible};

use axum::{extract::FromRequestParts, http::request::Parts};
use url::form_urlencoded;

use crate::errors::{Failure, InvalidValue};

/// The longest name of an unknown parameter that is repeated in a failure.
const MAX_NAME_CHARS: usize = 50;

/// The parameters of a request's query.
pub(crate) struct Query {
    /// The values by name; `None` if the name was given twice.
    values: HashMap<String, Option<String>>,
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

impl Query {
    /// Parses the text of a query.
    pub(crate) fn parse(text: &str) -> Self {
        let mut values: HashMap<String, Option<String>> = HashMap::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            values
                .entry(name.into_owned())
                .and_modify(|value| *value = None)
                .or_insert(Some(value.into_owned()));
        }
        Self { values }
    }

    /// Refuses parameters with other names than these.
    pub(crate) fn only(&self, names: &[&str]) -> Result<(), Failure> {
        let unknown = self
            .values
            .keys()
            .filter(|name| !names.contains(&name.as_str()));
        // The first in the order of names, so that the response does not change.
        let Some(name) = unknown.min() else {
            return Ok(());
        };
        let name: String = name.chars().take(MAX_NAME_CHARS).collect();
        let known = match names {
            [] => "the operation has no parameters".to_owned(),
            [only] => format!("the only parameter is `{only}`"),
            _ => format!("known parameters: {}", names.join(", ")),
        };
        let reason = format!("The query parameter `{name}` is not known; {known}.");
        Err(Failure::UnknownParameter { name, reason })
    }

    /// Returns the value of a parameter, parsed by `parse`. `rule` says in the failure what the
    /// parameter must be.
    pub(crate) fn get<T>(
        &self,
        name: &'static str,
        rule: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let value = match self.values.get(name) {
            None => return Ok(None),
            Some(None) => return Err(invalid(name, "may be given only once")),
            Some(Some(value)) => value,
        };
        // No id or URL has a NUL, and PostgreSQL accepts no text with one.
        let value = Some(value.as_str()).filter(|text| !text.contains('\0'));
        let value = value.and_then(parse);
        value.map(Some).ok_or_else(|| invalid(name, rule))
    }

    /// Returns the value of a parameter like [`Query::get`], or fails if it is missing.
    pub(crate) fn required<T>(
        &self,
        name: &'static str,
        rule: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Failure> {
        let value = self.get(name, rule, parse)?;
        value.ok_or_else(|| invalid(name, rule))
    }

    /// Returns a whole number within bounds, written in digits only, without sign or spaces.
    pub(crate) fn number(
        &self,
        name: &'static str,
        bounds: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, Failure> {
        let (least, most) = (bounds.start(), bounds.end());
        let rule = format!("must be a whole number between {least} and {most}");
        self.get(name, &rule, |text| {
            let is_plain = text.bytes().all(|b| b.is_ascii_digit());
            let number = text.parse().ok().filter(|_| is_plain)?;
            bounds.contains(&number).then_some(number)
        })
    }
}

/// Returns the failure of a parameter that does not follow a rule.
pub(crate) fn invalid(name: &'static str, rule: &str) -> Failure {
    let reason = format!("The query parameter `{name}` {rule}.");
    Failure::InvalidParameter(InvalidValue::new(name, reason))
}

/// A request without parameters; any is refused.
pub(crate) struct NoParameters;

impl<S: Send + Sync> FromRequestParts<S> for NoParameters {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Query::parse(parts.uri.query().unwrap_or_default()).only(&[])?;
        Ok(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_parameters_are_accepted() {
        let names = &["a", "b"];
        for text in ["", "a", "a=1&b=2", "b=&b="] {
            assert!(Query::parse(text).only(names).is_ok(), "{text}");
        }
        for (text, unknown) in [("a=1&c=2", "c"), ("z&y&a", "y"), ("=1", ""), ("A=1", "A")] {
            let Err(Failure::UnknownParameter { name, reason }) = Query::parse(text).only(names)
            else {
                panic!("{text} is accepted");
            };
            let expected =
                format!("The query parameter `{unknown}` is not known; known parameters: a, b.");
            assert_eq!((&*name, reason), (unknown, expected));
        }
    }

    #[test]
    fn failures_name_the_parameter_and_its_rule() {
        for (text, expected) in [
            (
                "n=0",
                "The query parameter `n` must be a whole number between 1 and 10.",
            ),
            ("n=3&n=3", "The query parameter `n` may be given only once."),
        ] {
            let failure = Query::parse(text).number("n", 1..=10).unwrap_err();
            assert_eq!(failure.to_string(), "Invalid N");
            let Failure::InvalidParameter(value) = failure else {
                panic!("{failure:?}");
            };
            assert_eq!((value.field, &*value.reason), ("n", expected));
        }
    }

    #[test]
    fn numbers_are_digits_within_bounds() {
        for (text, expected) in [
            ("", Ok(None)),
            ("m=3", Ok(None)),
            ("n=7", Ok(Some(7))),
            ("n=007", Ok(Some(7))),
            ("n=%37", Ok(Some(7))),
            ("n=0", Err(())),
            ("n=11", Err(())),
            ("n=", Err(())),
            ("n", Err(())),
            ("n=+7", Err(())),
            ("n=-1", Err(())),
            ("n=7.0", Err(())),
            ("n=1e1", Err(())),
            ("n=99999999999999999999", Err(())),
            ("n=3&n=3", Err(())),
        ] {
            let number = Query::parse(text).number("n", 1..=10).map_err(|_| ());
            assert_eq!(number, expected, "{text}");
        }
    }
}
