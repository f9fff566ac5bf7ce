//! The report page.

use askama::Template;
use plumbline_bundle::FailureCode;
use plumbline_model::media::ReportMedia;
use plumbline_model::report::Report;

use super::checks::{CategoryView, DetailsView, category_view};
use super::crops::Screenshots;
use super::field::{FieldView, field_view};
use super::figures::date;
use super::film::{self, FilmTimes, FilmView};
use super::fixes::{Fix, fixes};
use super::load::{self, ShareView, WaterfallView};
use super::page_frame::PageFrame;
use super::pictures::PictureSource;
use super::summary::{MetricCard, Ring, cards, headline, rings};
use super::{HtmlError, environment};

/// The content of a report page.
pub struct ReportPage<'a> {
    pub page_frame: PageFrame,
    pub audit_id: &'a str,
    pub created_at_ms: i64,
    /// The stored report as JSON.
    pub report: &'a str,
    /// The packed report media; `None` if they are no longer stored or unreachable.
    pub media: Option<&'a [u8]>,
    /// Whether the report media are missing because their storage does not respond.
    pub is_unreachable: bool,
    /// The path of the page; its pictures are below it.
    pub path: &'a str,
    pub sharing: Sharing<'a>,
}

/// Whether the report is shared, as far as the reader may know.
#[derive(Debug, Clone, Copy)]
pub enum Sharing<'a> {
    /// The reader does not own the report and cannot share it.
    NotOwner,
    /// The report is not shared.
    Off,
    /// The report is shared at `path`, until a time or without expiry.
    On {
        path: &'a str,
        until_ms: Option<i64>,
    },
}

impl Sharing<'_> {
    fn until_ms(&self) -> Option<i64> {
        match self {
            Self::On { until_ms, .. } => *until_ms,
            Self::NotOwner | Self::Off => None,
        }
    }
}

#[derive(Template)]
#[template(path = "report.html")]
struct ReportTemplate<'a> {
    page_frame: &'a PageFrame,
    title: String,
    description: String,
    audit_id: Option<&'a str>,
    sharing: Sharing<'a>,
    shared_until: Option<String>,
    url: String,
    requested_url: Option<String>,
    when: Option<String>,
    device: &'a str,
    network: &'a str,
    location: &'a str,
    /// The fields of the form that starts the same audit again.
    audit_again: [(&'static str, &'a str); 4],
    failure: Option<FailureView>,
    headline: String,
    rings: Vec<Ring>,
    metrics: Vec<MetricCard>,
    field: FieldView,
    /// Trusted markup: the screenshot at the end of the visit.
    screenshot: Option<String>,
    outline: Option<String>,
    /// Trusted markup: the images that crops refer to.
    definitions: Option<String>,
    film: Option<FilmView>,
    fixes: Vec<Fix>,
    categories: Vec<CategoryView>,
    waterfall: Option<WaterfallView>,
    types: Vec<ShareView>,
    hosts: Vec<ShareView>,
    environment: Vec<(&'static str, String)>,
    warnings: Vec<String>,
    is_unreachable: bool,
}

/// The validity periods of a shared link that the form offers: days, or empty for no expiry.
const SHARE_EXPIRY: [(&str, &str); 5] = [
    ("", "never"),
    ("1", "after 1 day"),
    ("7", "after 7 days"),
    ("30", "after 30 days"),
    ("90", "after 90 days"),
];

struct FailureView {
    code: &'static str,
    message: String,
    advice: &'static str,
}

/// Renders the page of a stored report.
pub fn report_page(page: &ReportPage<'_>) -> Result<String, HtmlError> {
    let report: Report = serde_json::from_str(page.report)?;
    let media = page.media.map(ReportMedia::unpack).transpose()?;
    let source = PictureSource::Linked(page.path.to_owned());
    let template = ReportTemplate {
        audit_id: Some(page.audit_id),
        sharing: page.sharing,
        shared_until: page.sharing.until_ms().map(date),
        is_unreachable: page.is_unreachable,
        when: Some(date(page.created_at_ms)),
        ..template(&page.page_frame, &report, media.as_ref(), &source)
    };
    Ok(template.render()?)
}

/// Renders a report as a single file without external resources.
pub fn standalone(report: &Report, media: Option<&ReportMedia>) -> Result<String, HtmlError> {
    let page_frame = PageFrame::standalone();
    Ok(template(&page_frame, report, media, &PictureSource::Inlined).render()?)
}

fn template<'a>(
    page_frame: &'a PageFrame,
    report: &'a Report,
    media: Option<&ReportMedia>,
    source: &PictureSource,
) -> ReportTemplate<'a> {
    let conditions = &report.conditions;
    let url = report.final_url.clone();
    let url = url.unwrap_or_else(|| report.requested_url.clone());
    let screenshots =
        media.map_or_else(Screenshots::default, |media| Screenshots::of(media, source));
    let fixes = fixes(report, &screenshots);
    let categories = report.categories.iter();
    let categories = categories
        .map(|category| category_view(category, &screenshots))
        .collect();
    let outline = media
        .zip(film::largest_content(report))
        .and_then(|(media, rect)| film::outline(media, rect));
    let film = media.and_then(|media| film::film(media, source, FilmTimes::of([media])?));
    let film =
        film.map(|film| film.outlined(outline.as_deref().filter(|_| has_stable_layout(report))));
    ReportTemplate {
        page_frame,
        title: format!("Audit of {}", short_url(&url)),
        description: format!(
            "Scores, metrics and checks of {} on {}, {}.",
            short_url(&url),
            conditions.device.name,
            conditions.network.name
        ),
        audit_id: None,
        sharing: Sharing::NotOwner,
        shared_until: None,
        requested_url: (url != report.requested_url).then(|| report.requested_url.clone()),
        url,
        when: None,
        device: &conditions.device.name,
        network: &conditions.network.name,
        location: &conditions.location.name,
        audit_again: [
            ("url", &report.requested_url),
            ("device", &conditions.device.id),
            ("network", &conditions.network.id),
            ("location", &conditions.location.id),
        ],
        failure: report.error.as_ref().map(|failure| FailureView {
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
        metrics: report
            .metrics
            .as_ref()
            .map_or_else(Vec::new, |metrics| cards(metrics, conditions.device.mode)),
        field: field_view(report),
        fixes,
        categories,
        screenshot: screenshots.first_screen(),
        definitions: screenshots.definitions(),
        film,
        outline,
        waterfall: media.map(load::waterfall),
        types: media.map_or_else(Vec::new, |media| load::shares(&media.by_type)),
        hosts: media.map_or_else(Vec::new, |media| load::shares(&media.by_host)),
        environment: environment::rows(report),
        warnings: report.warnings.clone(),
        is_unreachable: false,
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
        FailureCode::Internal => {
            "Something went wrong in this service. Try again; if it happens again, tell the operator of this service."
        }
    }
}
