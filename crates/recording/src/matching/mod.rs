//! Finds the recorded response to a request of a replay.
//!
//! A page that is loaded again makes most requests again, and some with other timestamps, random
//! numbers or ids. WebPageReplay and mahimahi answer those with the response to the most similar
//! request, and so does a [`Matcher`], by these rules:
//!
//! 1. **Exact**: the server, the method, the path and the query are equal. If several exchanges
//!    are, each is used once in the order of the recording, and the last one is repeated.
//! 2. **Similar query**: the server, the method and the path are equal, and at least half of the
//!    parameter names of either query are in both. Among several exchanges, the one with the fewest
//!    names that only one query has is used, then the one with the most equal values, then the one
//!    with the longest common beginning, then one that was not used yet, then the first of the
//!    recording.
//! 3. **Similar path**: the same, and parts of the path that look like timestamps, numbers, hashes
//!    or ids may differ ([`volatile`]). An exchange that was requested with its own path is not
//!    used for another one: what differs is then not a volatile part but another name.
//!
//! A `HEAD` request that was not recorded is answered like a `GET` request; the replay leaves out
//! the body. All other methods match only themselves. Bodies of requests are not kept and hence not
//! compared.

mod query;
pub mod volatile;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::{Endpoint, Recording};
use query::Query;

/// An exchange that answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// The position of the exchange in the recording.
    pub index: usize,
    pub kind: MatchKind,
}

/// The degree to which a request equals a recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchKind {
    /// The path and the query are equal.
    Exact,
    /// Volatile parts of the path or the query differ.
    Similar,
}

/// The server and the method of requests, and a path: with the query, or without volatile parts.
type Key = (Endpoint, String, String);

/// Finds exchanges of a recording, and remembers which ones were used.
#[derive(Debug, Clone, Default)]
pub struct Matcher {
    requests: Vec<Request>,
    /// The exchanges with equal paths and queries.
    exact: BTreeMap<Key, Vec<usize>>,
    /// The exchanges whose paths differ in volatile parts only, whatever their queries are.
    shapes: BTreeMap<Key, Vec<usize>>,
}

/// A recorded request, and how often it was used.
#[derive(Debug, Clone)]
struct Request {
    path: String,
    query: Query,
    exact_uses: u32,
    similar_uses: u32,
}

impl Request {
    fn is_used(&self) -> bool {
        self.exact_uses > 0 || self.similar_uses > 0
    }
}

impl Matcher {
    /// Indexes the exchanges of a recording.
    pub fn new(recording: &Recording) -> Self {
        let mut matcher = Self::default();
        for (index, exchange) in recording.exchanges.iter().enumerate() {
            let (path, query) = split_query(&exchange.path);
            let key = |path: &str| {
                let (endpoint, method) = (exchange.endpoint.clone(), exchange.method.clone());
                (endpoint, method, path.to_owned())
            };
            let exact = matcher.exact.entry(key(&exchange.path));
            exact.or_default().push(index);
            let shapes = matcher.shapes.entry(key(&volatile::shape(path)));
            shapes.or_default().push(index);
            matcher.requests.push(Request {
                path: path.to_owned(),
                query: Query::parse(query),
                exact_uses: 0,
                similar_uses: 0,
            });
        }
        matcher
    }

    /// Finds the exchange that answers a request, and marks it as used. The path has the query.
    pub fn find(&mut self, endpoint: &Endpoint, method: &str, path: &str) -> Option<Match> {
        let own = self.find_method(endpoint, method, path);
        if method == "HEAD" {
            own.or_else(|| self.find_method(endpoint, "GET", path))
        } else {
            own
        }
    }

    /// Returns the positions of the exchanges that answered no request.
    pub fn unused(&self) -> Vec<usize> {
        let unused = self.requests.iter().enumerate();
        let unused = unused.filter(|(_, request)| !request.is_used());
        unused.map(|(index, _)| index).collect()
    }

    fn find_method(&mut self, endpoint: &Endpoint, method: &str, path: &str) -> Option<Match> {
        if let Some(index) = self.exact(endpoint, method, path) {
            self.requests[index].exact_uses += 1;
            let kind = MatchKind::Exact;
            return Some(Match { index, kind });
        }
        let index = self.similar(endpoint, method, path)?;
        self.requests[index].similar_uses += 1;
        let kind = MatchKind::Similar;
        Some(Match { index, kind })
    }

    /// Returns the first exchange with an equal path and query that did not answer such a request,
    /// or else the last one.
    fn exact(&self, endpoint: &Endpoint, method: &str, path: &str) -> Option<usize> {
        let key = (endpoint.clone(), method.to_owned(), path.to_owned());
        let candidates = self.exact.get(&key)?;
        let is_new = |index: &&usize| self.requests[**index].exact_uses == 0;
        candidates
            .iter()
            .find(is_new)
            .or(candidates.last())
            .copied()
    }

    fn similar(&self, endpoint: &Endpoint, method: &str, path: &str) -> Option<usize> {
        let (path, query) = split_query(path);
        let query = Query::parse(query);
        let key = (endpoint.clone(), method.to_owned(), volatile::shape(path));
        let candidates = self.shapes.get(&key)?;
        let scores = candidates.iter().filter_map(|index| {
            let request = &self.requests[*index];
            let has_same_path = request.path == path;
            if !has_same_path && request.exact_uses > 0 {
                return None;
            }
            let similarity = request.query.similarity(&query)?;
            // Beyond the rules above, an exchange that was used is used again only if all were.
            let rank = (
                has_same_path,
                similarity,
                !request.is_used(),
                Reverse(*index),
            );
            Some((rank, *index))
        });
        scores.max().map(|(_, index)| index)
    }
}

/// Splits a path at its first question mark.
fn split_query(path: &str) -> (&str, Option<&str>) {
    match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    }
}

#[cfg(test)]
mod tests;
