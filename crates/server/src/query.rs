//! The parameters of a query, each of which may be given once. The contract's operations ignore
//! unknown ones; all others refuse them, because a misspelt filter would return other audits.

use std::{collections::HashMap, convert::Infallible};

use axum::{extract::FromRequestParts, http::request::Parts};
use url::form_urlencoded;

use crate::errors::Failure;

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
        let reason = if names.is_empty() {
            "The operation has no parameters.".to_owned()
        } else {
            format!("The parameters are {}.", names.join(", "))
        };
        Err(Failure::UnknownParameter {
            name: name.chars().take(MAX_NAME_CHARS).collect(),
            reason,
        })
    }

    /// Returns the value of a parameter, parsed by `parse`. `label` names the parameter in the
    /// failure.
    pub(crate) fn get<T>(
        &self,
        name: &str,
        label: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        match self.values.get(name) {
            None => Ok(None),
            Some(value) => value
                .as_deref()
                // No id or URL has a NUL, and PostgreSQL accepts no text with one.
                .filter(|text| !text.contains('\0'))
                .and_then(parse)
                .map(Some)
                .ok_or(Failure::InvalidParameter(label)),
        }
    }

    /// Returns a whole number within bounds, written in digits only, without sign or spaces.
    pub(crate) fn number(
        &self,
        name: &str,
        label: &'static str,
        bounds: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, Failure> {
        self.get(name, label, |text| {
            let is_plain = text.bytes().all(|b| b.is_ascii_digit());
            let number = text.parse().ok().filter(|_| is_plain)?;
            bounds.contains(&number).then_some(number)
        })
    }
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
            assert_eq!((&*name, &*reason), (unknown, "The parameters are a, b."));
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
            let number = Query::parse(text).number("n", "N", 1..=10).map_err(|_| ());
            assert_eq!(number, expected, "{text}");
        }
    }
}
