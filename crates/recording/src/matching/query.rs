//! Queries of URLs and their similarity.

use std::cmp::Reverse;

use super::volatile;

/// The parameters of a query, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    text: String,
    parameters: Vec<Parameter>,
}

/// A parameter as it is written, not decoded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Parameter {
    /// The name, in which volatile parts do not count.
    name: String,
    value: String,
}

/// The similarity of two queries; the larger, the more similar. Names count more than values: a
/// request with other parameters is another request, and values are what a page varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Similarity {
    unshared_names: Reverse<usize>,
    equal_values: usize,
    common_prefix_bytes: usize,
}

impl Query {
    /// Parses the part of a URL after the question mark.
    pub fn parse(query: Option<&str>) -> Self {
        let text = query.unwrap_or_default();
        let parts = text.split('&').filter(|part| !part.is_empty());
        let mut parameters: Vec<_> = parts.map(Parameter::parse).collect();
        parameters.sort();
        Self {
            text: text.to_owned(),
            parameters,
        }
    }

    /// Compares two queries. Returns `None` if less than half of the names of the larger one are in
    /// both.
    pub fn similarity(&self, other: &Self) -> Option<Similarity> {
        let shared_names = shared(&names(&self.parameters), &names(&other.parameters));
        let (ours, theirs) = (self.parameters.len(), other.parameters.len());
        if 2 * shared_names < ours.max(theirs) {
            return None;
        }
        let bytes = self.text.bytes().zip(other.text.bytes());
        Some(Similarity {
            unshared_names: Reverse(ours + theirs - 2 * shared_names),
            equal_values: shared(&self.parameters, &other.parameters),
            common_prefix_bytes: bytes.take_while(|(a, b)| a == b).count(),
        })
    }
}

fn names(parameters: &[Parameter]) -> Vec<&str> {
    parameters.iter().map(|it| it.name.as_str()).collect()
}

/// Counts the values that two sorted lists have in common.
fn shared<T: Ord>(ours: &[T], theirs: &[T]) -> usize {
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    let mut count = 0;
    while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
        match a.cmp(b) {
            std::cmp::Ordering::Less => drop(ours.next()),
            std::cmp::Ordering::Greater => drop(theirs.next()),
            std::cmp::Ordering::Equal => {
                count += 1;
                ours.next();
                theirs.next();
            }
        }
    }
    count
}

impl Parameter {
    /// Parses `name=value`. The name of a parameter without a value, such as the timestamp in
    /// `/a.js?1700000000`, does not count where it is volatile.
    fn parse(text: &str) -> Self {
        let (name, value) = text.split_once('=').unwrap_or((text, text));
        Self {
            name: volatile::shape(name),
            value: value.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarity(ours: &str, theirs: &str) -> Option<Similarity> {
        Query::parse(Some(ours)).similarity(&Query::parse(Some(theirs)))
    }

    #[test]
    fn at_least_half_of_the_names_are_in_both() {
        assert!(similarity("a=1&b=2", "a=3").is_some());
        assert!(similarity("a=1&b=2&c=3", "a=1").is_none());
        assert!(similarity("a=1", "b=1").is_none());
        assert!(similarity("", "").is_some());
        assert!(similarity("", "a=1").is_none());
        assert!(similarity("1700000000", "1700000001").is_some());
        assert!(similarity("a=1&a=2", "a=1").is_some());
    }

    #[test]
    fn names_count_more_than_values_and_values_more_than_order() {
        let request = "a=1&b=2&c=3";
        let order = [
            "a=1&b=2&c=3",
            "c=3&b=2&a=1",
            "a=1&b=2&c=4",
            "a=9&b=8&c=7",
            "a=1&b=2",
        ];
        let scores: Vec<_> = order.iter().map(|it| similarity(request, it)).collect();
        assert!(scores.is_sorted_by(|a, b| a > b), "{scores:?}");
    }
}
