//! Totals of requests and bytes by type and by host.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RequestEntry;

/// The requests and bytes of one type of resource or one host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Share {
    pub name: String,
    pub requests: usize,
    /// The number of transferred bytes.
    pub bytes: u64,
    pub third_party: bool,
}

pub(super) fn by_type(requests: &[RequestEntry]) -> Vec<Share> {
    totals(requests, |request| request.kind.clone())
}

pub(super) fn by_host(requests: &[RequestEntry]) -> Vec<Share> {
    totals(requests, |request| request.host.clone())
}

fn totals(requests: &[RequestEntry], name: impl Fn(&RequestEntry) -> String) -> Vec<Share> {
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    for request in requests {
        let name = name(request);
        let share = shares.entry(name.clone()).or_default();
        share.name = name;
        share.requests += 1;
        share.bytes += request.transfer_bytes;
        share.third_party |= request.third_party;
    }
    let mut shares: Vec<Share> = shares.into_values().collect();
    shares.sort_by_key(|share| (std::cmp::Reverse(share.bytes), share.name.clone()));
    shares
}
