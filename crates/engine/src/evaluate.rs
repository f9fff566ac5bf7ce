//! The evaluation of a bundle into a report.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use plumbline_bundle::{
    Bundle, Failure, FailureCode, FlowRecords, InteractionRecords, ProfileRecords, Record,
};
use plumbline_model::category::CategoryId;
use plumbline_model::interval::intervals;
use plumbline_model::media::ReportMedia;
use plumbline_model::report::{
    Conditions, Contention, Metric, Metrics, Report, Scores, TracedMetrics,
};
use plumbline_model::scoring::MetricKind;
use plumbline_trace::{MAX_SCREENSHOTS, ProtocolLog, Trace};

use crate::cache_use::cache_use;
use crate::document_urls::document_urls;
use crate::facts::{Facts, Requests};
use crate::media::{self};
use crate::metrics::processor::Processor;
use crate::metrics::uncertainty::score_uncertainty;
use crate::metrics::{self, Measured, MetricError, main_tasks, tbt};
use crate::registry;
use crate::scoring::{self};

/// Evaluates a visit. It never fails: the report of a page that cannot be measured contains the
/// error.
pub fn evaluate(bundle: &Bundle, conditions: Conditions) -> Report {
    let facts = Facts::new(bundle, conditions.device.mode);
    report(&facts, conditions)
}

/// Evaluates a visit and collects its report media; the evidence is parsed once for both.
///
/// Returns `None` when `stop` was set before the evaluation finished. The flag is read between one
/// fact or check and the next, each of which takes a time bounded by the size of the evidence.
pub fn evaluate_with_media(
    bundle: &Bundle,
    conditions: Conditions,
    stop: &AtomicBool,
) -> Option<(Report, Option<ReportMedia>)> {
    let facts = Facts::new(bundle, conditions.device.mode).with_stop_flag(stop);
    let report = report(&facts, conditions);
    let media = media::of(&facts);
    (!facts.is_stopped()).then_some((report, media))
}

fn report(facts: &Facts, conditions: Conditions) -> Report {
    let bundle = facts.bundle;
    let mut report = Report {
        final_url: Some(bundle.final_url.clone()),
        document_urls: document_urls(facts),
        warnings: bundle.warnings.clone(),
        document: Some(bundle.document.clone()),
        browser: Some(bundle.browser.clone()),
        timings: bundle.timings.clone(),
        responsiveness: InteractionRecords::stored_in(bundle)
            .map(|records| Box::new(records.into())),
        flow: FlowRecords::stored_in(bundle).map(|mut records| {
            records.take_screenshots();
            Box::new(records)
        }),
        profile: ProfileRecords::stored_in(bundle).map(Box::new),
        ..Report::unmeasured(&bundle.requested_url, conditions)
    };
    let mode = report.conditions.device.mode;
    facts.insert(report.conditions.clone());
    match measure(facts, &mut report.warnings) {
        Ok(MeasuredVisit {
            measured,
            as_traced,
            contention,
            speed,
            score_uncertainty,
        }) => {
            let cpu = &mut report.conditions.cpu;
            cpu.contention = contention;
            cpu.score_uncertainty = score_uncertainty;
            // Old bundles have no samples of the speed, but measurements around the load.
            if let (Some(nominal), Some([during, after])) = (cpu.nominal_index, speed) {
                cpu.host_index = Some(nominal * during);
                cpu.host_index_after = Some(nominal * after);
            }
            if !report.conditions.view.is_first() {
                report.cache = facts.get::<Requests>().ok().map(|all| cache_use(&all));
            }
            facts.insert(measured.clone());
            report.categories = registry::judge(facts);
            for category in &mut report.categories {
                if category.id == CategoryId::Performance {
                    category.score = scoring::performance_score(mode, &measured)
                        .map(|score| (score * 100.0).round() as u8);
                }
                if let Some(score) = score_of(&mut report.scores, category.id) {
                    *score = category.score;
                }
            }
            let scored = |metric: MetricKind, value: Result<f64, MetricError>| {
                value.ok().map(|value| Metric {
                    value,
                    score: metric.score(mode, value),
                })
            };
            report.metrics = Some(Metrics {
                missing: missing(&measured),
                fcp: scored(MetricKind::Fcp, measured.fcp),
                lcp: scored(MetricKind::Lcp, measured.lcp),
                tbt: scored(MetricKind::Tbt, measured.tbt),
                cls: scored(MetricKind::Cls, measured.cls),
                si: scored(MetricKind::Si, measured.si),
                tti: scored(MetricKind::Tti, measured.tti),
                as_traced,
            });
            report.intervals = intervals(&report, &[&report]);
        }
        Err(failure) => report.error = Some(failure),
    }
    report
}

/// Returns the reasons why metrics could not be computed, by their short names.
fn missing(measured: &Measured) -> BTreeMap<String, String> {
    [
        (MetricKind::Fcp, measured.fcp),
        (MetricKind::Lcp, measured.lcp),
        (MetricKind::Tbt, measured.tbt),
        (MetricKind::Cls, measured.cls),
        (MetricKind::Si, measured.si),
        (MetricKind::Tti, measured.tti),
    ]
    .into_iter()
    .filter_map(|(metric, value)| {
        let reason = value.err()?.to_string();
        Some((metric.as_str().to_owned(), reason))
    })
    .collect()
}

/// Returns the score of a category in the summary of the report; `None` for a category that is
/// shown as a fraction.
fn score_of(scores: &mut Scores, category: CategoryId) -> Option<&mut Option<u8>> {
    match category {
        CategoryId::Performance => Some(&mut scores.performance),
        CategoryId::Accessibility => Some(&mut scores.accessibility),
        CategoryId::BestPractices => Some(&mut scores.best_practices),
        CategoryId::Seo => Some(&mut scores.seo),
        CategoryId::Pwa => Some(&mut scores.pwa),
        CategoryId::AgenticBrowsing => None,
    }
}

/// The metrics corrected for CPU contention, and the figures about it.
struct MeasuredVisit {
    measured: Measured,
    as_traced: TracedMetrics,
    contention: Option<Contention>,
    /// The core's speed during the load and after it, 1 being nominal.
    speed: Option<[f64; 2]>,
    /// The uncertainty of the performance score in points.
    score_uncertainty: Option<f64>,
}

fn measure(facts: &Facts, warnings: &mut Vec<String>) -> Result<MeasuredVisit, Failure> {
    let unreadable = |evidence: &str| {
        Failure::new(
            FailureCode::Internal,
            format!("the {evidence} is unreadable"),
        )
    };
    let trace = facts.get::<Trace>().map_err(|_| unreadable("trace"))?;
    let log = facts
        .get::<ProtocolLog>()
        .map_err(|_| unreadable("protocol log"))?;
    let processor = facts.get::<Processor>().unwrap_or_default();
    let traced_tasks = main_tasks(&trace);
    let tasks = processor.on_device(&traced_tasks);
    let mut measured = metrics::measure_tasks(&trace, Some(&log), &tasks);
    let Ok(fcp_ms) = measured.fcp else {
        return Err(Failure::new(
            FailureCode::NoPaint,
            "The page painted no content.",
        ));
    };
    let mut traced = metrics::interactivity(&trace, Some(&log), &traced_tasks);
    // Lighthouse has no blocking time for a page that never becomes idle. Here it is counted up to
    // the end of the visit, and a warning names that time.
    if let Err(MetricError::NoCpuIdlePeriod | MetricError::NoNetworkIdlePeriod) = measured.tti {
        let end_ms = measured.trace_end_ms;
        measured.tbt = Ok(tbt::total_blocking_time(&tasks, fcp_ms, end_ms));
        traced.tbt = Ok(tbt::total_blocking_time(&traced_tasks, fcp_ms, end_ms));
        warnings.push(format!(
            "The page never became idle, so it has no Time to Interactive; its blocking time is \
             counted up to the end of the visit ({:.1} s).",
            end_ms / 1000.0
        ));
    }
    if let (Err(MetricError::ScreenshotsEnded), Some(end_us)) =
        (measured.si, trace.screenshots_end_us)
    {
        warnings.push(format!(
            "The page was still changing after {:.1} s, when Chromium had recorded {MAX_SCREENSHOTS} \
             screenshots and stopped, so it has no Speed Index and no performance score.",
            trace.since_origin_ms(end_us) / 1000.0
        ));
    }
    let until_ms = measured.tti.unwrap_or(measured.trace_end_ms);
    let mode = facts.mode;
    Ok(MeasuredVisit {
        score_uncertainty: processor
            .speed_variation(0.0, until_ms)
            .and_then(|speed_variation| {
                score_uncertainty(mode, &measured, &tasks, speed_variation)
            }),
        speed: processor
            .speed(0.0, until_ms)
            .zip(processor.speed_afterwards())
            .map(<[f64; 2]>::from),
        contention: processor.share_lost(0.0, until_ms).map(|share| Contention {
            waited_ms: processor.lost_ms(0.0, until_ms),
            share,
            until_ms,
        }),
        as_traced: TracedMetrics {
            tbt_ms: traced.tbt.ok(),
            tti_ms: traced.tti.ok(),
        },
        measured,
    })
}
