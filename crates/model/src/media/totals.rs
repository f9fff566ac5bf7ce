//! The numbers of all requests of a page, including those that are left out of its media.

use super::{ReportMedia, RequestTotals};

impl ReportMedia {
    /// Returns the number of requests.
    pub fn request_count(&self) -> usize {
        self.requests.len() + self.requests_left_out
    }

    /// Returns the number of transferred bytes. In media of earlier versions it does not include
    /// the requests that are left out.
    pub fn transfer_bytes(&self) -> u64 {
        if self.by_type.is_empty() {
            return sum(self.requests.iter().map(|request| request.transfer_bytes));
        }
        sum(self.by_type.iter().map(|total| total.bytes))
    }

    /// Returns the number of render-blocking requests.
    pub fn render_blocking_count(&self) -> usize {
        let listed = self.requests.iter().filter(|it| it.render_blocking);
        self.render_blocking_requests
            .unwrap_or_else(|| listed.count())
    }

    /// Returns the requests of a type of resource.
    pub fn total_of_type(&self, kind: &str) -> RequestTotals {
        if !self.by_type.is_empty() {
            let of_type = self.by_type.iter().find(|total| total.name == kind);
            return of_type.cloned().unwrap_or_default();
        }
        let of_type = || self.requests.iter().filter(|it| it.kind == kind);
        RequestTotals {
            name: kind.to_owned(),
            requests: of_type().count(),
            bytes: sum(of_type().map(|request| request.transfer_bytes)),
            third_party: of_type().any(|request| request.third_party),
        }
    }
}

fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::RequestEntry;

    fn script(bytes: u64) -> RequestEntry {
        RequestEntry {
            kind: "Script".to_owned(),
            transfer_bytes: bytes,
            render_blocking: true,
            ..RequestEntry::default()
        }
    }

    #[test]
    fn totals_include_the_requests_that_are_left_out() {
        let total = |name: &str, requests, bytes| RequestTotals {
            name: name.to_owned(),
            requests,
            bytes,
            third_party: false,
        };
        let media = ReportMedia {
            requests: vec![script(100)],
            requests_left_out: 4,
            render_blocking_requests: Some(3),
            by_type: vec![total("Script", 3, 300), total("Image", 2, 50)],
            ..ReportMedia::default()
        };
        assert_eq!(media.request_count(), 5);
        assert_eq!(media.transfer_bytes(), 350);
        assert_eq!(media.render_blocking_count(), 3);
        let scripts = media.total_of_type("Script");
        assert_eq!((scripts.requests, scripts.bytes), (3, 300));
        assert_eq!(media.total_of_type("Font").requests, 0);
    }

    #[test]
    fn media_without_totals_are_counted_by_their_requests() {
        let media = ReportMedia {
            requests: vec![script(100), script(200)],
            ..ReportMedia::default()
        };
        assert_eq!(media.transfer_bytes(), 300);
        assert_eq!(media.render_blocking_count(), 2);
        let scripts = media.total_of_type("Script");
        assert_eq!((scripts.requests, scripts.bytes), (2, 300));
    }
}
