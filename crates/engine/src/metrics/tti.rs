//! Time to Interactive: the start of the first five seconds without a long task and with at most
//! two requests in flight, but not before First Contentful Paint and DOMContentLoaded.

use std::sync::Arc;

use plumbline_trace::{Exchange, Milestone, Trace};

use super::{MainTask, MetricError};

/// The required idle time (Lighthouse 13.5.0, core/computed/metrics/interactive.js).
const QUIET_MS: f64 = 5000.0;
pub(super) const MAX_IDLE_REQUESTS: usize = 2;
const LONG_TASK_MS: f64 = 50.0;

/// The protocols that do not use the network (Lighthouse, core/lib/url-utils.js), and those of
/// connections that stay open.
const IGNORED_PROTOCOLS: [&str; 8] = [
    "blob",
    "data",
    "intent",
    "file",
    "filesystem",
    "chrome-extension",
    "ws",
    "wss",
];

/// The milestones of the load on the trace's clock.
#[derive(Debug, Clone, Copy)]
pub struct LoadTimes {
    pub origin_us: f64,
    pub first_contentful_paint_us: f64,
    pub dom_content_loaded_us: f64,
    pub trace_end_us: f64,
}

impl LoadTimes {
    pub fn of(trace: &Trace) -> Result<Self, MetricError> {
        let first_contentful_paint_us = trace
            .first_us(Milestone::FirstContentfulPaint)
            .ok_or(MetricError::NoFirstContentfulPaint)?;
        let dom_content_loaded_us = trace
            .first_us(Milestone::DomContentLoaded)
            .ok_or(MetricError::NoDomContentLoaded)?;
        Ok(Self {
            origin_us: trace.navigation.time_origin_us,
            first_contentful_paint_us,
            dom_content_loaded_us,
            trace_end_us: trace.end_us,
        })
    }
}

/// An idle interval, in milliseconds of the trace's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Idle {
    start_ms: f64,
    end_ms: f64,
}

/// Returns the Time to Interactive in milliseconds since the time origin.
pub fn time_to_interactive(
    tasks: &[MainTask],
    exchanges: &[Arc<Exchange>],
    times: &LoadTimes,
) -> Result<f64, MetricError> {
    let fcp_ms = times.first_contentful_paint_us / 1000.0;
    let long_enough = |quiet: &Idle| {
        quiet.end_ms > fcp_ms + QUIET_MS && quiet.end_ms - quiet.start_ms >= QUIET_MS
    };
    let cpu = idle_cpu(tasks, times).into_iter().filter(long_enough);
    let network = idle_network(exchanges, times.trace_end_us / 1000.0)
        .into_iter()
        .filter(long_enough);
    let quiet = first_overlap(cpu, network)?;
    let interactive_ms = quiet
        .start_ms
        .max(fcp_ms)
        .max(times.dom_content_loaded_us / 1000.0);
    Ok((interactive_ms * 1000.0 - times.origin_us) / 1000.0)
}

/// Returns the intervals between long tasks, the start of the trace and its end.
fn idle_cpu(tasks: &[MainTask], times: &LoadTimes) -> Vec<Idle> {
    let origin_ms = times.origin_us / 1000.0;
    let mut start_ms = 0.0;
    let mut gaps = Vec::new();
    for task in tasks.iter().filter(|task| task.duration_ms >= LONG_TASK_MS) {
        gaps.push(Idle {
            start_ms,
            end_ms: task.start_ms + origin_ms,
        });
        start_ms = task.end_ms + origin_ms;
    }
    gaps.push(Idle {
        start_ms,
        end_ms: times.trace_end_us / 1000.0,
    });
    gaps
}

/// Returns the intervals with at most two requests in flight. Only `GET` requests that succeeded
/// and ended before the trace count, as those are what a page usually waits for.
fn idle_network(exchanges: &[Arc<Exchange>], trace_end_ms: f64) -> Vec<Idle> {
    let mut changes: Vec<(f64, bool)> = exchanges
        .iter()
        .filter(|exchange| counts(exchange))
        .filter_map(|exchange| {
            let end_us = exchange.network_end_us()?;
            Some([(exchange.network_start_us(), true), (end_us, false)])
        })
        .flatten()
        .map(|(at_us, starts)| (at_us / 1000.0, starts))
        .filter(|(at_ms, _)| *at_ms <= trace_end_ms)
        .collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));

    // Negative if the recorded end of a request precedes its start, which is possible with the
    // clocks of two processes.
    let mut in_flight = 0_isize;
    let allowed = MAX_IDLE_REQUESTS.cast_signed();
    let mut start_ms = 0.0;
    let mut quiet = Vec::new();
    for (at_ms, starts) in changes {
        if starts {
            if in_flight == allowed {
                quiet.push(Idle {
                    start_ms,
                    end_ms: at_ms,
                });
            }
            in_flight += 1;
        } else {
            in_flight -= 1;
            if in_flight == allowed {
                start_ms = at_ms;
            }
        }
    }
    if in_flight <= allowed {
        quiet.push(Idle {
            start_ms,
            end_ms: trace_end_ms,
        });
    }
    quiet.retain(|quiet| quiet.start_ms != quiet.end_ms);
    quiet
}

fn counts(exchange: &Exchange) -> bool {
    exchange.method == "GET"
        && exchange.failure.is_none()
        && exchange.status().is_none_or(|status| status < 400)
        && uses_network(exchange)
}

/// Returns whether the page may wait for the network because of the exchange. Connections that stay
/// open do not count.
pub(super) fn uses_network(exchange: &Exchange) -> bool {
    !exchange.is_web_socket && !IGNORED_PROTOCOLS.contains(&exchange.protocol())
}

/// Returns the first idle interval of the CPU that overlaps one of the network for five seconds,
/// counted from the later start of the two.
fn first_overlap(
    mut cpu: impl Iterator<Item = Idle>,
    mut network: impl Iterator<Item = Idle>,
) -> Result<Idle, MetricError> {
    let mut cpu_now = cpu.next();
    let mut network_now = network.next();
    while let (Some(cpu_idle), Some(network_idle)) = (cpu_now, network_now) {
        if cpu_idle.start_ms >= network_idle.start_ms {
            if network_idle.end_ms >= cpu_idle.start_ms + QUIET_MS {
                return Ok(cpu_idle);
            }
            network_now = network.next();
        } else {
            if cpu_idle.end_ms >= network_idle.start_ms + QUIET_MS {
                return Ok(cpu_idle);
            }
            cpu_now = cpu.next();
        }
    }
    Err(match cpu_now {
        Some(_) => MetricError::NoNetworkIdlePeriod,
        None => MetricError::NoCpuIdlePeriod,
    })
}

#[cfg(test)]
mod tests {
    use plumbline_trace::{LoadFailure, Response};

    use super::*;

    const ORIGIN_MS: f64 = 1000.0;

    fn task(start_ms: f64, end_ms: f64) -> MainTask {
        MainTask {
            start_ms,
            end_ms,
            duration_ms: end_ms - start_ms,
        }
    }

    fn exchange(start_ms: f64, end_ms: Option<f64>) -> Exchange {
        Exchange {
            method: "GET".to_owned(),
            sent_us: (start_ms + ORIGIN_MS) * 1000.0,
            end_us: end_ms.map(|end_ms| (end_ms + ORIGIN_MS) * 1000.0),
            response: Some(response("h2", 200)),
            ..Exchange::default()
        }
    }

    fn response(protocol: &str, status: i64) -> Response {
        Response {
            protocol: protocol.to_owned(),
            status: Some(status),
            ..Response::default()
        }
    }

    /// The milestones: first content at 500 ms, document parsed at 700 ms, trace end at 12 s.
    fn check(tasks: &[MainTask], exchanges: &[Exchange], expected: Result<f64, MetricError>) {
        let times = LoadTimes {
            origin_us: ORIGIN_MS * 1000.0,
            first_contentful_paint_us: (ORIGIN_MS + 500.0) * 1000.0,
            dom_content_loaded_us: (ORIGIN_MS + 700.0) * 1000.0,
            trace_end_us: (ORIGIN_MS + 12_000.0) * 1000.0,
        };
        let exchanges: Vec<_> = exchanges.iter().cloned().map(Arc::new).collect();
        assert_eq!(time_to_interactive(tasks, &exchanges, &times), expected);
    }

    #[test]
    fn an_idle_page_is_interactive_once_it_is_parsed() {
        check(&[], &[], Ok(700.0));
    }

    #[test]
    fn the_last_long_task_decides() {
        check(
            &[
                task(100.0, 400.0),
                task(2000.0, 2050.0),
                task(2100.0, 2149.0),
            ],
            &[],
            Ok(2050.0),
        );
    }

    #[test]
    fn a_long_task_after_five_quiet_seconds_no_longer_matters() {
        check(
            &[task(900.0, 1000.0), task(6000.0, 6100.0)],
            &[],
            Ok(1000.0),
        );
    }

    #[test]
    fn three_requests_in_flight_are_not_quiet_and_two_are() {
        let busy = [task(1000.0, 1100.0), task(6050.0, 6150.0)];
        let two = [exchange(800.0, Some(9000.0)), exchange(900.0, Some(9000.0))];
        check(&busy, &two, Ok(6150.0));
        let three = [&two[..], &[exchange(950.0, Some(3000.0))]].concat();
        check(&busy, &three, Ok(6150.0));
        check(&[task(1000.0, 1100.0)], &three, Ok(1100.0));
    }

    #[test]
    fn requests_that_fail_post_or_never_end_do_not_keep_the_network_busy() {
        let mut requests = vec![exchange(600.0, None); 5];
        requests.extend(vec![
            Exchange {
                method: "POST".to_owned(),
                ..exchange(600.0, Some(11_000.0))
            };
            3
        ]);
        requests.extend(vec![
            Exchange {
                response: Some(response("h2", 404)),
                ..exchange(600.0, Some(11_000.0))
            };
            3
        ]);
        requests.extend(vec![
            Exchange {
                failure: Some(LoadFailure::default()),
                ..exchange(600.0, Some(11_000.0))
            };
            3
        ]);
        requests.extend(vec![
            Exchange {
                response: Some(response("data", 200)),
                ..exchange(600.0, Some(11_000.0))
            };
            3
        ]);
        check(&[], &requests, Ok(700.0));
    }

    #[test]
    fn a_thread_that_is_never_idle_gives_no_value() {
        let busy: Vec<_> = (0..6)
            .map(|i| f64::from(i) * 2000.0)
            .map(|at| task(at, at + 100.0))
            .collect();
        check(&busy, &[], Err(MetricError::NoCpuIdlePeriod));
    }

    #[test]
    fn a_network_that_is_never_idle_gives_no_value() {
        let busy: Vec<_> = (0..3).map(|_| exchange(0.0, Some(11_900.0))).collect();
        check(&[], &busy, Err(MetricError::NoNetworkIdlePeriod));
    }
}
