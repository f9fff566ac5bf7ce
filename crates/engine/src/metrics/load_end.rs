//! The end of a load by Lighthouse's waiting rule. A page that polls its server never stops
//! requesting, and the length of the observation should not change the results of its load.

use std::sync::Arc;

use plumbline_trace::{Exchange, Milestone, Trace};

use super::main_tasks;
use super::tbt::BLOCKING_MS;
use super::tti::{MAX_IDLE_REQUESTS, uses_network};

/// The time without a long task or a third request in flight, after the load event and the first
/// content, that ends a load (Lighthouse 13.5.0, core/config/constants.js and
/// core/gather/driver/wait-for-condition.js).
const QUIET_MS: f64 = 1000.0;

/// Returns the end of the load on the trace's clock, or `None` if the page never loaded or never
/// painted content.
pub(crate) fn load_end_us(trace: &Trace, exchanges: &[Arc<Exchange>]) -> Option<f64> {
    let loaded_us = trace.first_us(Milestone::Load)?;
    let shown_us = trace.first_us(Milestone::FirstContentfulPaint)?;
    let origin_ms = trace.navigation.time_origin_us / 1000.0;
    let long_tasks = main_tasks(trace)
        .into_iter()
        .filter(|task| task.duration_ms >= BLOCKING_MS)
        .map(|task| (task.start_ms + origin_ms, task.end_ms + origin_ms));
    let mut busy: Vec<(f64, f64)> = busy_network(exchanges)
        .into_iter()
        .chain(long_tasks)
        .collect();
    busy.sort_by(|a, b| a.0.total_cmp(&b.0));
    let since_ms = quiet_since_ms(loaded_us.max(shown_us) / 1000.0, &busy);
    Some((since_ms + QUIET_MS) * 1000.0)
}

/// Returns the end of the last busy interval that starts before the load has been quiet for long
/// enough.
fn quiet_since_ms(earliest_ms: f64, busy_in_order: &[(f64, f64)]) -> f64 {
    let mut since_ms = earliest_ms;
    for (start_ms, end_ms) in busy_in_order {
        if *start_ms > since_ms + QUIET_MS {
            break;
        }
        since_ms = since_ms.max(*end_ms);
    }
    since_ms
}

/// Returns the intervals with more than two requests in flight.
fn busy_network(exchanges: &[Arc<Exchange>]) -> Vec<(f64, f64)> {
    let mut changes: Vec<(f64, bool)> = exchanges
        .iter()
        .filter(|exchange| uses_network(exchange))
        .flat_map(|exchange| {
            let end_us = exchange.network_end_us().unwrap_or(f64::INFINITY);
            [
                (exchange.network_start_us() / 1000.0, true),
                (end_us / 1000.0, false),
            ]
        })
        .collect();
    // Ends sort before starts at the same time.
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut in_flight = 0_usize;
    let mut start_ms = 0.0;
    let mut busy = Vec::new();
    for (at_ms, starts) in changes {
        let was_busy = in_flight > MAX_IDLE_REQUESTS;
        in_flight = if starts {
            in_flight + 1
        } else {
            in_flight.saturating_sub(1)
        };
        match (was_busy, in_flight > MAX_IDLE_REQUESTS) {
            (false, true) => start_ms = at_ms,
            (true, false) => busy.push((start_ms, at_ms)),
            _ => {}
        }
    }
    busy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(start_ms: f64, end_ms: Option<f64>) -> Arc<Exchange> {
        Arc::new(Exchange {
            sent_us: start_ms * 1000.0,
            end_us: end_ms.map(|end_ms| end_ms * 1000.0),
            ..Exchange::default()
        })
    }

    #[test]
    fn the_load_ends_after_a_quiet_second() {
        assert_eq!(quiet_since_ms(3000.0, &[]), 3000.0);
        let busy = [
            (500.0, 900.0),
            (3900.0, 4500.0),
            (5400.0, 5450.0),
            (6451.0, 9000.0),
        ];
        assert_eq!(quiet_since_ms(3000.0, &busy), 5450.0);
        assert_eq!(quiet_since_ms(3000.0, &busy[..1]), 3000.0);
    }

    #[test]
    fn two_requests_in_flight_are_quiet_and_three_are_not() {
        let two = [exchange(0.0, Some(500.0)), exchange(100.0, None)];
        assert!(busy_network(&two).is_empty());
        let mut three = two.to_vec();
        three.push(exchange(200.0, Some(400.0)));
        assert_eq!(busy_network(&three), [(200.0, 400.0)]);
        three.push(Arc::new(Exchange {
            url: "data:text/plain,hi".to_owned(),
            ..Exchange::default()
        }));
        three.push(Arc::new(Exchange {
            is_web_socket: true,
            ..Exchange::default()
        }));
        assert_eq!(busy_network(&three), [(200.0, 400.0)]);
    }

    #[test]
    fn a_request_that_ends_when_another_starts_is_not_in_flight_with_it() {
        let handed_on = [
            exchange(0.0, None),
            exchange(0.0, None),
            exchange(100.0, Some(200.0)),
            exchange(200.0, Some(300.0)),
        ];
        assert_eq!(busy_network(&handed_on), [(100.0, 200.0), (200.0, 300.0)]);
    }
}
