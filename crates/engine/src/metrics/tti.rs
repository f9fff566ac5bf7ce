//! Time to Interactive: the start of the first five seconds without a long task, if the network was nearly
//! quiet then too, but not before the first content and the parsed document.

use plumbline_catalog::Mode;
use plumbline_trace::{Milestone, Request, Trace};

use super::{MainTask, MetricError};
use crate::scoring::Curve;

/// Lighthouse 13.5.0, core/audits/metrics/interactive.js. Shown, but without weight in the score.
pub fn curve(mode: Mode) -> Curve {
    match mode {
        Mode::Mobile => Curve {
            p10: 3785.0,
            median: 7300.0,
        },
        Mode::Desktop => Curve {
            p10: 2468.0,
            median: 4500.0,
        },
    }
}

/// Lighthouse 13.5.0, core/computed/metrics/interactive.js.
const QUIET_MS: f64 = 5000.0;
pub(super) const QUIET_REQUESTS: usize = 2;
const LONG_TASK_MS: f64 = 50.0;

/// What a browser answers itself (Lighthouse, core/lib/url-utils.js), and connections that stay open.
pub(super) const NOT_AWAITED: [&str; 8] = [
    "blob",
    "data",
    "intent",
    "file",
    "filesystem",
    "chrome-extension",
    "ws",
    "wss",
];

/// The load's milestones on the trace's clock.
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

/// A stretch of quiet, in milliseconds of the trace's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Quiet {
    start_ms: f64,
    end_ms: f64,
}

/// Milliseconds since the time origin.
pub fn time_to_interactive(
    tasks: &[MainTask],
    requests: &[Request],
    times: &LoadTimes,
) -> Result<f64, MetricError> {
    let fcp_ms = times.first_contentful_paint_us / 1000.0;
    let long_enough = |quiet: &Quiet| {
        quiet.end_ms > fcp_ms + QUIET_MS && quiet.end_ms - quiet.start_ms >= QUIET_MS
    };
    let cpu = quiet_cpu(tasks, times).into_iter().filter(long_enough);
    let network = quiet_network(requests, times.trace_end_us / 1000.0)
        .into_iter()
        .filter(long_enough);
    let quiet = first_overlap(cpu, network)?;
    let interactive_ms = quiet
        .start_ms
        .max(fcp_ms)
        .max(times.dom_content_loaded_us / 1000.0);
    Ok((interactive_ms * 1000.0 - times.origin_us) / 1000.0)
}

/// The gaps between long tasks, the trace's start and its end.
fn quiet_cpu(tasks: &[MainTask], times: &LoadTimes) -> Vec<Quiet> {
    let origin_ms = times.origin_us / 1000.0;
    let mut start_ms = 0.0;
    let mut gaps = Vec::new();
    for task in tasks.iter().filter(|task| task.duration_ms >= LONG_TASK_MS) {
        gaps.push(Quiet {
            start_ms,
            end_ms: task.start_ms + origin_ms,
        });
        start_ms = task.end_ms + origin_ms;
    }
    gaps.push(Quiet {
        start_ms,
        end_ms: times.trace_end_us / 1000.0,
    });
    gaps
}

/// Stretches with at most two requests in flight. Only what a page usually waits for counts: requests that
/// fetch, and that were answered well before the trace ended.
fn quiet_network(requests: &[Request], trace_end_ms: f64) -> Vec<Quiet> {
    let mut changes: Vec<(f64, bool)> = requests
        .iter()
        .filter(|request| counts(request))
        .filter_map(|request| Some([(request.start_ms, true), (request.end_ms?, false)]))
        .flatten()
        .filter(|(at_ms, _)| *at_ms <= trace_end_ms)
        .collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));

    // Below zero when a request's end is known to precede its start, which clocks of two processes allow.
    let mut in_flight = 0_isize;
    let allowed = QUIET_REQUESTS.cast_signed();
    let mut start_ms = 0.0;
    let mut quiet = Vec::new();
    for (at_ms, starts) in changes {
        if starts {
            if in_flight == allowed {
                quiet.push(Quiet {
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
        quiet.push(Quiet {
            start_ms,
            end_ms: trace_end_ms,
        });
    }
    quiet.retain(|quiet| quiet.start_ms != quiet.end_ms);
    quiet
}

fn counts(request: &Request) -> bool {
    request.method == "GET"
        && !request.failed
        && request.status.is_none_or(|status| status < 400)
        && !NOT_AWAITED.contains(&request.protocol.as_str())
}

/// The first stretch of quiet CPU that shares five seconds, counted from the later start of the two, with one
/// of quiet network.
fn first_overlap(
    mut cpu: impl Iterator<Item = Quiet>,
    mut network: impl Iterator<Item = Quiet>,
) -> Result<Quiet, MetricError> {
    let mut cpu_now = cpu.next();
    let mut network_now = network.next();
    while let (Some(calm), Some(still)) = (cpu_now, network_now) {
        if calm.start_ms >= still.start_ms {
            if still.end_ms >= calm.start_ms + QUIET_MS {
                return Ok(calm);
            }
            network_now = network.next();
        } else {
            if calm.end_ms >= still.start_ms + QUIET_MS {
                return Ok(calm);
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
    use super::*;

    const ORIGIN_MS: f64 = 1000.0;

    fn task(start_ms: f64, end_ms: f64) -> MainTask {
        MainTask {
            start_ms,
            end_ms,
            duration_ms: end_ms - start_ms,
        }
    }

    fn request(start_ms: f64, end_ms: Option<f64>) -> Request {
        Request {
            method: "GET".to_owned(),
            protocol: "h2".to_owned(),
            status: Some(200),
            start_ms: start_ms + ORIGIN_MS,
            end_ms: end_ms.map(|end_ms| end_ms + ORIGIN_MS),
            ..Request::default()
        }
    }

    /// First content at 500 ms, document parsed at 700 ms, trace ended at 12 s.
    fn check(tasks: &[MainTask], requests: &[Request], expected: Result<f64, MetricError>) {
        let times = LoadTimes {
            origin_us: ORIGIN_MS * 1000.0,
            first_contentful_paint_us: (ORIGIN_MS + 500.0) * 1000.0,
            dom_content_loaded_us: (ORIGIN_MS + 700.0) * 1000.0,
            trace_end_us: (ORIGIN_MS + 12_000.0) * 1000.0,
        };
        assert_eq!(time_to_interactive(tasks, requests, &times), expected);
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
        let two = [request(800.0, Some(9000.0)), request(900.0, Some(9000.0))];
        check(&busy, &two, Ok(6150.0));
        let three = [&two[..], &[request(950.0, Some(3000.0))]].concat();
        check(&busy, &three, Ok(6150.0));
        check(&[task(1000.0, 1100.0)], &three, Ok(1100.0));
    }

    #[test]
    fn requests_that_fail_post_or_never_end_do_not_keep_the_network_busy() {
        let mut requests = vec![request(600.0, None); 5];
        requests.extend(vec![
            Request {
                method: "POST".to_owned(),
                ..request(600.0, Some(11_000.0))
            };
            3
        ]);
        requests.extend(vec![
            Request {
                status: Some(404),
                ..request(600.0, Some(11_000.0))
            };
            3
        ]);
        requests.extend(vec![
            Request {
                failed: true,
                ..request(600.0, Some(11_000.0))
            };
            3
        ]);
        requests.extend(vec![
            Request {
                protocol: "data".to_owned(),
                ..request(600.0, Some(11_000.0))
            };
            3
        ]);
        check(&[], &requests, Ok(700.0));
    }

    #[test]
    fn a_thread_that_is_never_free_gives_no_number() {
        let busy: Vec<_> = (0..6)
            .map(|i| f64::from(i) * 2000.0)
            .map(|at| task(at, at + 100.0))
            .collect();
        check(&busy, &[], Err(MetricError::NoCpuIdlePeriod));
    }

    #[test]
    fn a_network_that_is_never_quiet_gives_no_number() {
        let busy: Vec<_> = (0..3).map(|_| request(0.0, Some(11_900.0))).collect();
        check(&[], &busy, Err(MetricError::NoNetworkIdlePeriod));
    }
}
