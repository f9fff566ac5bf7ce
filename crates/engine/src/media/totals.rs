//! Totals of requests and bytes by type and by host.

use std::collections::BTreeMap;

use plumbline_model::media::{RequestEntry, RequestTotals};

pub(super) fn by_type(requests: &[RequestEntry]) -> Vec<RequestTotals> {
    totals(requests, |request| request.kind.clone())
}

pub(super) fn by_host(requests: &[RequestEntry]) -> Vec<RequestTotals> {
    totals(requests, |request| request.host.clone())
}

fn totals(requests: &[RequestEntry], name: impl Fn(&RequestEntry) -> String) -> Vec<RequestTotals> {
    let mut totals: BTreeMap<String, RequestTotals> = BTreeMap::new();
    for request in requests {
        let name = name(request);
        let total = totals.entry(name.clone()).or_default();
        total.name = name;
        total.requests += 1;
        total.bytes = total.bytes.saturating_add(request.transfer_bytes);
        total.third_party |= request.third_party;
    }
    let mut totals: Vec<RequestTotals> = totals.into_values().collect();
    totals.sort_by_key(|total| (std::cmp::Reverse(total.bytes), total.name.clone()));
    totals
}
