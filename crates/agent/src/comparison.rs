//! An audit that compares two pages.

use plumbline_bundle::{Encoding, Failure};
use plumbline_model::comparison::{
    ComparedPages, Comparison, different_requests, evidence, is_second_first,
};
use plumbline_model::report::Report;
use plumbline_model::runs::{add_runs, representative};
use plumbline_seam::{AuditOutput, Order, VisitNumber, VisitOptions};

use crate::auditor::Progress;
use crate::held_evidence::JudgedVisit;
use crate::page_evidence::PageEvidence;
use crate::sessions::SessionKeeper;
use crate::visits::RepeatPolicy;
use crate::{AuditEvent, AuditFault, Auditor};

/// The visits of one of two pages.
struct Side {
    order: Order,
    page: PageEvidence,
    visits: Vec<JudgedVisit>,
}

impl Auditor {
    /// Visits two pages in turn, until it is clear whether they differ or `max_pairs` visits of
    /// each were made. The report is that of the first page, with the comparison. If one of the
    /// pages cannot be measured, nothing can be compared, and the report has its error.
    pub(crate) async fn compare(
        &self,
        order: &Order,
        second_url: &str,
        max_pairs: u32,
        encoding: Encoding,
        progress: &Progress<'_>,
    ) -> Result<AuditOutput, AuditFault> {
        let session = SessionKeeper::of(order);
        let second = Order {
            url: second_url.to_owned(),
            options: VisitOptions {
                replay: order.options.replay_second.clone(),
                ..order.options.clone()
            },
            ..order.clone()
        };
        // Kept until the end, so that changes are applied once and not for each visit. A failure is
        // that of the first visit, too.
        let _replayed = match second.options.replay.as_deref() {
            Some(replay) => self.interception.replayed(replay).await?.ok(),
            None => None,
        };
        let mut sides = [order.clone(), second].map(|order| Side {
            order,
            page: PageEvidence::default(),
            visits: Vec::new(),
        });
        let mut pairs: Vec<[Report; 2]> = Vec::new();
        let comparison = loop {
            let pair = pairs.len();
            let order_of_pages = if is_second_first(pair) {
                [1, 0]
            } else {
                [0, 1]
            };
            let observe = |event: AuditEvent<'_>| {
                let visit = VisitNumber {
                    run: u32::try_from(pair + 1).unwrap_or(u32::MAX),
                    ..event.visit
                };
                progress(AuditEvent { visit, ..event });
            };
            for page in order_of_pages {
                let side = &mut sides[page];
                let policy = RepeatPolicy::IfDisturbed;
                let visit = self
                    .audit_with(
                        policy,
                        &side.order,
                        &session,
                        &side.page,
                        encoding,
                        &observe,
                    )
                    .await?;
                if let Some(failure) = &visit.report.error {
                    let failure = of_page(page, &side.order.url, failure);
                    let visit = if page == 0 {
                        let mut visit = visit;
                        visit.report.error = Some(failure);
                        visit
                    } else {
                        let conditions = visit.report.conditions.clone();
                        Report::failed(&order.url, conditions, failure).into()
                    };
                    return Ok(session.add_to(visit.pack(encoding).await?));
                }
                // All visits are held until one of each page is chosen.
                let held = 2 * max_pairs as usize;
                side.visits.push(visit.hold(held, encoding).await?);
            }
            pairs.push([0, 1].map(|page| sides[page].visits[pair].report.clone()));
            if let Some(comparison) = Comparison::of(&pairs, max_pairs as usize)
                && (comparison.is_decided() || !comparison.can_continue(max_pairs as usize))
            {
                break comparison;
            }
            if pairs.len() >= max_pairs as usize {
                return Err(AuditFault(format!("{max_pairs} pairs are not tested")));
            }
        };
        let [mut first, second] = sides.map(Side::representative);
        let (evidence, requests) = match (first.media()?, second.media()?) {
            (Some(first), Some(second)) => (
                evidence([&first, &second]),
                different_requests([&first, &second]),
            ),
            _ => (Vec::new(), Vec::new()),
        };
        let replay = order.options.replay_second.as_deref();
        let changes = replay.map_or(&[][..], |replay| &replay.changes);
        first.report.comparison = Some(Box::new(ComparedPages {
            urls: [order.url.clone(), second_url.to_owned()],
            redirected_to: [&first.report, &second.report]
                .map(|report| report.redirected_to().map(str::to_owned)),
            replays: [&first.report, &second.report]
                .map(|report| report.conditions.replay.as_deref().cloned()),
            changes: changes.iter().map(ToString::to_string).collect(),
            left_out: replay.map_or_else(Vec::new, |replay| replay.left_out.clone()),
            comparison,
            evidence,
            requests,
        }));
        Ok(session.add_to(first.pack(encoding).await?))
    }
}

impl Side {
    /// Returns the visit that is closest to the median, with the spread of all. There is at least
    /// one visit, and all were measured.
    fn representative(mut self) -> JudgedVisit {
        let reports: Vec<Report> = self.visits.iter().map(|it| it.report.clone()).collect();
        let index = representative(&reports).unwrap_or_default();
        let mut chosen = self.visits.swap_remove(index);
        let count = u32::try_from(reports.len()).unwrap_or(u32::MAX);
        add_runs(&mut chosen.report, &reports, count, index);
        chosen
    }
}

/// Returns the failure of one of two pages, with a message that names the page.
fn of_page(page: usize, url: &str, failure: &Failure) -> Failure {
    let name = ["The first page", "The second page"][page];
    let reason = &failure.message;
    Failure::new(
        failure.code,
        format!("{name}, {url}, could not be measured: {reason}"),
    )
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::FailureCode;

    use super::*;

    #[test]
    fn a_failure_names_the_page_that_could_not_be_measured() {
        let failure = Failure::new(FailureCode::HttpError, "The server answered with 404.");
        let message = |page| of_page(page, "https://b.test/", &failure).message;
        assert_eq!(
            message(0),
            "The first page, https://b.test/, could not be measured: The server answered with 404."
        );
        assert!(message(1).starts_with("The second page, "));
    }
}
