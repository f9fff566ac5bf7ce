//! Resources that are missing in the trace. A cross-site frame has its own process, and Chromium
//! starts to trace it shortly after the frame has started: its first requests are only in the
//! protocol's messages.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Redirect, Resource, Resources};
use crate::exchanges::Exchange;

impl Resources {
    /// Adds the requests of subframes that are missing in the trace and have a response.
    pub fn add_missed(&mut self, exchanges: &[Arc<Exchange>], main_frame: &str) {
        let traced_ids: HashSet<&str> = self
            .all
            .iter()
            .map(|resource| resource.id.as_str())
            .collect();
        let is_missed = |exchange: &Exchange| {
            let is_of_frame = exchange.target_type == "iframe"
                || (exchange.requested_type.as_deref() == Some("Document")
                    && exchange.frame.as_deref() != Some(main_frame));
            is_of_frame
                && exchange.frame.is_some()
                && exchange.url.starts_with("http")
                && exchange.redirected_to.is_none()
                && !traced_ids.contains(exchange.id.as_str())
        };
        let missed: Vec<Resource> = exchanges
            .iter()
            .filter(|exchange| is_missed(exchange))
            .filter_map(|last| resource(last, exchanges))
            .collect();
        if !missed.is_empty() {
            self.all.extend(missed);
            let by_start = |a: &Resource, b: &Resource| a.start_us.total_cmp(&b.start_us);
            self.all.sort_by(by_start);
        }
    }
}

fn resource(last: &Arc<Exchange>, exchanges: &[Arc<Exchange>]) -> Option<Resource> {
    let response = last.response.as_ref()?;
    let chain: Vec<&Arc<Exchange>> = exchanges.iter().filter(|of| of.id == last.id).collect();
    let (start_us, end_us) = (chain.first()?.sent_us, last.end_us?);
    let redirects = chain.windows(2).map(|pair| Redirect {
        url: pair[0].url.clone(),
        start_us: pair[0].sent_us,
        dur_us: pair[1].sent_us - pair[0].sent_us,
    });
    let initiator_url = last.initiator_url.iter().filter(|url| !url.is_empty());
    Some(Resource {
        exchange: Arc::clone(last),
        start_us,
        notified_us: end_us,
        finish_us: end_us,
        send_start_us: response.timing.map_or(last.sent_us, |timing| {
            timing.request_time_us + timing.send_start_us
        }),
        redirection_us: last.sent_us - start_us,
        redirects: redirects.collect(),
        fetch_kind: match last.resource_type() {
            Some("XHR") => "xmlhttprequest".to_owned(),
            Some("Fetch") => "fetch".to_owned(),
            _ => String::new(),
        },
        fetch_priority_hint: "auto".to_owned(),
        render_blocking: "non_blocking".to_owned(),
        initiators: initiator_url.cloned().collect(),
        ..Resource::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::Response;

    fn exchange(id: &str, target_type: &str) -> Exchange {
        Exchange {
            id: id.to_owned(),
            url: format!("http://frame.test/{id}.css"),
            frame: Some("B".to_owned()),
            target_type: target_type.to_owned(),
            requested_type: Some("Stylesheet".to_owned()),
            sent_us: 2e6,
            end_us: Some(2.5e6),
            wire_bytes: Some(700),
            resource_bytes: 500,
            response: Some(Response {
                status: Some(200),
                mime_type: "text/css".to_owned(),
                ..Response::default()
            }),
            ..Exchange::default()
        }
    }

    fn added(exchanges: &[Exchange]) -> Vec<Resource> {
        let traced = Resource {
            exchange: Arc::new(Exchange {
                id: "1".to_owned(),
                ..Exchange::default()
            }),
            start_us: 3e6,
            ..Resource::default()
        };
        let exchanges: Vec<Arc<Exchange>> = exchanges.iter().cloned().map(Arc::new).collect();
        let mut resources = Resources {
            all: vec![traced],
            ..Resources::default()
        };
        resources.add_missed(&exchanges, "A");
        resources.all
    }

    #[test]
    fn requests_of_a_cross_site_frame_are_added_in_order() {
        let all = added(&[exchange("1", "iframe"), exchange("2", "iframe")]);
        let ids: Vec<&str> = all.iter().map(|resource| resource.id.as_str()).collect();
        assert_eq!(ids, ["2", "1"]);
        let missed = &all[0];
        assert_eq!((missed.start_us, missed.notified_us), (2e6, 2.5e6));
        assert_eq!((missed.transfer_bytes(), missed.resource_bytes), (700, 500));
        assert_eq!(missed.traced_type(), "Stylesheet");
    }

    #[test]
    fn unfinished_inline_and_worker_requests_are_not_added() {
        let unanswered = Exchange {
            response: None,
            ..exchange("2", "iframe")
        };
        let unfinished = Exchange {
            end_us: None,
            ..exchange("3", "iframe")
        };
        let inline = Exchange {
            url: "data:text/css,".to_owned(),
            ..exchange("4", "iframe")
        };
        let others = [exchange("5", "page"), exchange("6", "worker")];
        let mut all = vec![unanswered, unfinished, inline];
        all.extend(others);
        assert_eq!(added(&all).len(), 1);
    }

    #[test]
    fn a_frames_document_is_attributed_to_the_embedding_page() {
        let document = |frame: &str| Exchange {
            requested_type: Some("Document".to_owned()),
            frame: Some(frame.to_owned()),
            ..exchange("7", "page")
        };
        assert_eq!(added(&[document("B")]).len(), 2);
        assert_eq!(added(&[document("A")]).len(), 1);
    }

    #[test]
    fn a_chain_of_redirects_is_one_resource() {
        let first = Exchange {
            url: "http://frame.test/old".to_owned(),
            sent_us: 1e6,
            redirected_to: Some(1),
            ..exchange("8", "iframe")
        };
        let all = added(&[first, exchange("8", "iframe")]);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].redirects[0].url, "http://frame.test/old");
        assert_eq!(all[0].redirection_us, 1e6);
    }
}
