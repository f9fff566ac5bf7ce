//! The report page.

use askama::Template;
use plumbline_bundle::FailureCode;
use plumbline_model::media::ReportMedia;
use plumbline_model::report::Report;

use super::cache::{CacheView, cache_view};
use super::checks::{CategoryView, DetailsView, category_view};
use super::comparison::{ComparisonView, comparison_view};
use super::critical_path::{PathView, critical_path};
use super::crops::Screenshots;
use super::document::{BRAND, Document, INLINED_HEAD};
use super::field::{FieldView, field_view};
use super::figures::date;
use super::film::{self, FilmTimes, FilmView};
use super::fixes::{Fixes, fixes};
use super::flow::{FlowView, flow};
use super::functions::{FunctionsView, functions_view};
use super::load::{self, ShareView, WaterfallView};
use super::pictures::{LogoFile, PictureSource};
use super::replays::{Replays, ReplaysView, replays_view};
use super::responsiveness::{PARTS, ResponsivenessView, responsiveness};
use super::steps::{StepView, steps};
use super::summary::{
    FractionView, MetricCard, Ring, cards, fractions, headline, intervals_summary, rings,
};
use super::{HtmlError, environment, recording};

/// The most fixes in the printed summary, which has one page.
const SUMMARY_FIXES: usize = 6;

/// A report as a page shows it.
pub struct ReportPage<'a> {
    pub report: &'a Report,
    /// The report media; `None` if they are no longer stored or unreachable.
    pub media: Option<&'a ReportMedia>,
    /// Whether the report media are missing because their storage does not respond.
    pub is_unreachable: bool,
    /// The place of the pictures.
    pub pictures: PictureSource,
    /// The time of the audit, in milliseconds since 1970.
    pub made_at_ms: Option<i64>,
    /// The URL of the operator's logo, which is printed.
    pub logo: Option<&'a str>,
    /// Trusted markup: what the reader can do with the report, below the heading.
    pub actions: &'a str,
    /// A sentence that is added to the error of a page that could not be measured.
    pub failure_note: &'a str,
    /// The audits of the recording of the visit.
    pub replays: Replays<'a>,
}

#[derive(Template)]
#[template(path = "report.html")]
struct ReportTemplate<'a> {
    logo: Option<&'a str>,
    /// The version that rendered the page, which is printed.
    version: &'static str,
    actions: &'a str,
    failure_note: &'a str,
    url: &'a str,
    requested_url: Option<&'a str>,
    redirected_to: Option<&'a str>,
    when: Option<String>,
    device: &'a str,
    network: &'a str,
    location: String,
    /// The time of the recording that was visited in place of the servers.
    recorded_at: Option<String>,
    /// The requests that were not in that recording, as a warning.
    not_recorded: Option<String>,
    failure: Option<FailureView>,
    headline: String,
    rings: Vec<Ring>,
    fractions: Vec<FractionView>,
    metrics: Vec<MetricCard>,
    /// The level of the intervals of the figures, and the data they come from.
    intervals: Option<String>,
    comparison: Option<ComparisonView>,
    field: FieldView,
    responsiveness: Option<ResponsivenessView>,
    flow: Option<FlowView<'a>>,
    /// Trusted markup: the screenshot at the end of the visit.
    screenshot: Option<String>,
    outline: Option<String>,
    /// Trusted markup: the images that crops refer to.
    definitions: Option<String>,
    film: Option<FilmView>,
    fixes: Fixes,
    categories: Vec<CategoryView>,
    critical_path: Option<PathView>,
    waterfall: Option<WaterfallView>,
    functions: Option<FunctionsView<'a>>,
    types: Vec<ShareView>,
    hosts: Vec<ShareView>,
    cache: Option<CacheView<'a>>,
    replays: Option<ReplaysView<'a>>,
    steps: Vec<StepView<'a>>,
    environment: Vec<(&'static str, String)>,
    warnings: Vec<String>,
    is_unreachable: bool,
}

struct FailureView {
    heading: &'static str,
    code: &'static str,
    message: String,
    advice: &'static str,
}

/// Renders a report as a single file without external resources. `made_at_ms` is the time of the
/// audit, in milliseconds since 1970; `logo` is that of the operator.
pub fn standalone(
    report: &Report,
    media: Option<&ReportMedia>,
    made_at_ms: Option<i64>,
    logo: Option<LogoFile<'_>>,
) -> Result<String, HtmlError> {
    let logo = logo.map(LogoFile::data_url);
    let page = ReportPage {
        report,
        media,
        is_unreachable: false,
        pictures: PictureSource::Inlined,
        made_at_ms,
        logo: logo.as_deref(),
        actions: "",
        failure_note: "",
        replays: Replays::default(),
    };
    let document = Document {
        title: &page.title(),
        description: &page.description(),
        head: &INLINED_HEAD,
        header: BRAND,
        main: &page.main()?,
    };
    Ok(document.render()?)
}

impl ReportPage<'_> {
    /// Returns the title of the document.
    pub fn title(&self) -> String {
        format!("Audit of {} · Plumbline", short_url(self.url()))
    }

    /// Returns the description of the document.
    pub fn description(&self) -> String {
        let conditions = &self.report.conditions;
        format!(
            "Scores, metrics and checks of {} on {}, {}.",
            short_url(self.url()),
            conditions.device.name,
            conditions.network.name
        )
    }

    /// Renders the content of the page.
    pub fn main(&self) -> Result<String, HtmlError> {
        Ok(template(self).render()?)
    }

    /// Returns the URL of the measured document, or the requested one if there is none.
    fn url(&self) -> &str {
        let final_url = self.report.final_url.as_deref();
        final_url.unwrap_or(&self.report.requested_url)
    }
}

fn template<'a>(page: &'a ReportPage<'a>) -> ReportTemplate<'a> {
    let (report, media, source) = (page.report, page.media, &page.pictures);
    let conditions = &report.conditions;
    let url = page.url();
    let screenshots =
        media.map_or_else(Screenshots::default, |media| Screenshots::of(media, source));
    let fixes = fixes(report, &screenshots, &page.replays);
    let categories = report.categories.iter();
    let categories = categories
        .map(|category| category_view(report, category, &screenshots, &page.replays))
        .collect();
    let outline = media
        .zip(film::largest_content(report))
        .and_then(|(media, rect)| film::outline(media, rect));
    let film = media.and_then(|media| film::film(media, source, FilmTimes::of([media])?));
    let shown_outline = outline.as_deref().filter(|_| has_stable_layout(report));
    let film = film.map(|film| film.outlined(shown_outline).with_video(source));
    ReportTemplate {
        logo: page.logo,
        version: crate::VERSION,
        actions: page.actions,
        failure_note: page.failure_note,
        requested_url: (url != report.requested_url).then_some(&*report.requested_url),
        redirected_to: report.redirected_to(),
        url,
        when: page.made_at_ms.map(date),
        device: &conditions.device.name,
        network: &conditions.network.name,
        location: conditions.location.label(),
        recorded_at: conditions.replay.as_deref().map(recording::recorded_at),
        not_recorded: conditions.replay.as_deref().and_then(recording::warning),
        failure: report.error.as_ref().map(|failure| FailureView {
            heading: match failure.code {
                FailureCode::Cancelled => "Not measured",
                _ => "This page could not be measured",
            },
            code: failure.code.as_str(),
            message: failure.message.clone(),
            advice: advice(failure.code),
        }),
        headline: headline(report),
        rings: if report.metrics.is_some() {
            rings(report)
        } else {
            Vec::new()
        },
        fractions: fractions(report),
        metrics: report
            .metrics
            .as_ref()
            .map_or_else(Vec::new, |metrics| cards(metrics, report)),
        intervals: intervals_summary(&report.intervals),
        field: field_view(report),
        responsiveness: responsiveness(report, url),
        flow: flow(report, media, source, url),
        fixes,
        categories,
        screenshot: screenshots.first_screen(),
        definitions: screenshots.definitions(),
        film,
        outline,
        critical_path: media
            .and_then(|media| critical_path(&media.critical_path, &media.critical_path_totals)),
        functions: report
            .profile
            .as_deref()
            .map(|profile| functions_view(profile, url)),
        waterfall: media.map(|media| load::waterfall(media, url)),
        types: media.map_or_else(Vec::new, |media| {
            load::shares(&media.by_type, ["type", "types"])
        }),
        hosts: media.map_or_else(Vec::new, |media| {
            load::shares(&media.by_host, ["host", "hosts"])
        }),
        comparison: report.comparison.as_deref().map(comparison_view),
        replays: replays_view(report, &page.replays),
        cache: report.cache.as_ref().map(|cache| cache_view(cache, url)),
        steps: media.map_or_else(Vec::new, |media| steps(media, source)),
        environment: environment::rows(report, page.made_at_ms),
        warnings: report.warnings.clone(),
        is_unreachable: page.is_unreachable,
    }
}

/// Whether the layout shifted so little that the final positions of elements hold for the whole
/// load.
fn has_stable_layout(report: &Report) -> bool {
    let cls = report.metrics.as_ref().and_then(|metrics| metrics.cls);
    cls.is_some_and(|cls| cls.value <= 0.1)
}

/// Returns host and path, shortened for titles.
fn short_url(url: &str) -> String {
    const MAX_CHARS: usize = 60;
    let plain = url.split_once("://").map_or(url, |(_, rest)| rest);
    let plain = plain.strip_suffix('/').unwrap_or(plain);
    match plain.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &plain[..at]),
        None => plain.to_owned(),
    }
}

/// Returns the advice for a page that could not be measured.
fn advice(code: FailureCode) -> &'static str {
    match code {
        FailureCode::DnsFailure => {
            "Check the spelling of the host name, and that it resolves to public IP addresses on the public \
             internet."
        }
        FailureCode::ConnectionFailed => {
            "Check that the server is running and reachable from outside, and that no firewall blocks \
             this machine."
        }
        FailureCode::TlsFailure => {
            "Check that the certificate is valid, matches the host name and is sent with its intermediate certificates."
        }
        FailureCode::BlockedTarget => {
            "This service does not visit this address. Its operator can allow it with --allow-target."
        }
        FailureCode::NotHtml => "Audit the URL of a web page instead of a file.",
        FailureCode::HttpError => {
            "Check the URL and whether the page needs a login. To measure the error page itself, choose \
             “Error pages” in the form, or start the audit with allowErrorStatus."
        }
        FailureCode::PreconditionFailed => {
            "Check the steps, cookies, headers and other state that the audit was started with: they may \
             have expired. The page was not scored because it is not the expected one."
        }
        FailureCode::NoPaint => {
            "Open the page on a screen of this size: it stays blank, or waits for something that never \
             happens."
        }
        FailureCode::PageCrashed => {
            "The page crashed its browser process, most likely by using too much memory."
        }
        FailureCode::PageHung => {
            "A script blocked the page until the time limit. Look for an endless loop."
        }
        FailureCode::TooManyRedirects => {
            "Check the redirects of this URL: they form a loop or a very long chain."
        }
        FailureCode::TooLarge => {
            "The page loads more data than an audit allows. Look for very large resources."
        }
        FailureCode::Timeout => {
            "The page did not finish loading within the time limit. Try a faster network, and check what the page waits for."
        }
        FailureCode::Cancelled => "Start the audit again to measure the page.",
        FailureCode::Internal => {
            "Something went wrong in this service. Try again; if it happens again, tell the operator of this service."
        }
    }
}
