//! Parameters of a query, each at most once; names that nobody asks for are ignored.

use std::{collections::HashMap, convert::Infallible};

use axum::{extract::FromRequestParts, http::request::Parts};
use url::form_urlencoded;

use crate::errors::Failure;

pub(crate) struct Query {
    /// `None` marks a name that was given twice.
    values: HashMap<String, Option<String>>,
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts.uri.query().unwrap_or_default()))
    }
}

impl Query {
    fn of(text: &str) -> Self {
        let mut values: HashMap<String, Option<String>> = HashMap::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            values
                .entry(name.into_owned())
                .and_modify(|value| *value = None)
                .or_insert(Some(value.into_owned()));
        }
        Self { values }
    }

    /// The value as `read` understands it. `called` is what an error calls it.
    pub(crate) fn get<T>(
        &self,
        name: &str,
        called: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        match self.values.get(name) {
            None => Ok(None),
            Some(given) => given
                .as_deref()
                // Nothing has one, and PostgreSQL takes no text with one.
                .filter(|text| !text.contains('\0'))
                .and_then(read)
                .map(Some)
                .ok_or(Failure::InvalidParameter(called)),
        }
    }

    /// A whole number within bounds, in digits alone: no sign, no space.
    pub(crate) fn number(
        &self,
        name: &str,
        called: &'static str,
        bounds: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, Failure> {
        self.get(name, called, |text| {
            let is_plain = text.bytes().all(|b| b.is_ascii_digit());
            let number = text.parse().ok().filter(|_| is_plain)?;
            bounds.contains(&number).then_some(number)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let got = Query::of(text).number("n", "N", 1..=10).map_err(|_| ());
            assert_eq!(got, expected, "{text}");
        }
    }
}
