//! The report itself.

use askama::Template;
use plumbline_bundle::FailureCode;
use plumbline_engine::exhibits::Exhibits;
use plumbline_engine::report::Report;

use super::checks::{CategoryView, Found, category_view};
use super::chrome::Chrome;
use super::crops::Scenes;
use super::field::{FieldView, field_view};
use super::figures::date;
use super::film::{self, FilmTimes, FilmView};
use super::fixes::{Fix, fixes};
use super::load::{self, ShareView, WaterfallView};
use super::pictures::Source;
use super::summary::{MetricCard, Ring, cards, headline, rings};
use super::{HtmlError, environment};

/// A stored report and what is around it.
pub struct ReportPage<'a> {
    pub chrome: Chrome,
    pub audit_id: &'a str,
    pub created_at_ms: i64,
    /// JSON, as it was kept.
    pub report: &'a str,
    /// Packed; none where they are gone.
    pub exhibits: Option<&'a [u8]>,
    /// They may still be there, but where they are kept does not answer.
    pub is_unreachable: bool,
    /// Where the page stands: its pictures are below it.
    pub path: &'a str,
    pub sharing: Sharing<'a>,
}

/// What the reader may do about the shared link.
#[derive(Debug, Clone, Copy)]
pub enum Sharing<'a> {
    /// Nothing: the reader is not the owner.
    NotOurs,
    Off,
    /// At this path, until a time or without an end.
    On {
        path: &'a str,
        until_ms: Option<i64>,
    },
}

impl Sharing<'_> {
    fn until_ms(&self) -> Option<i64> {
        match self {
            Self::On { until_ms, .. } => *until_ms,
            Self::NotOurs | Self::Off => None,
        }
    }
}

#[derive(Template)]
#[template(path = "report.html")]
struct ReportTemplate<'a> {
    chrome: &'a Chrome,
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
    /// The members of the form that orders the same once more.
    order: [(&'static str, &'a str); 4],
    failure: Option<FailureView>,
    headline: String,
    rings: Vec<Ring>,
    metrics: Vec<MetricCard>,
    field: FieldView,
    /// Markup of ours: the page at the end.
    still: Option<String>,
    outline: Option<String>,
    /// Markup of ours: pictures that elements are cut from.
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

/// How long a link may be valid, as the form offers it: days, none for no end, and words.
const SHARE_FOR: [(&str, &str); 5] = [
    ("", "no end"),
    ("1", "1 day"),
    ("7", "7 days"),
    ("30", "30 days"),
    ("90", "90 days"),
];

struct FailureView {
    code: &'static str,
    message: String,
    advice: &'static str,
}

/// The page of a stored report.
pub fn report_page(page: &ReportPage<'_>) -> Result<String, HtmlError> {
    let report: Report = serde_json::from_str(page.report)?;
    let exhibits = page.exhibits.map(Exhibits::unpack).transpose()?;
    let source = Source::Below(page.path.to_owned());
    let template = ReportTemplate {
        audit_id: Some(page.audit_id),
        sharing: page.sharing,
        shared_until: page.sharing.until_ms().map(date),
        is_unreachable: page.is_unreachable,
        when: Some(date(page.created_at_ms)),
        ..template(&page.chrome, &report, exhibits.as_ref(), &source)
    };
    Ok(template.render()?)
}

/// The same in one file that needs nothing else.
pub fn standalone(report: &Report, exhibits: Option<&Exhibits>) -> Result<String, HtmlError> {
    let chrome = Chrome::standalone();
    Ok(template(&chrome, report, exhibits, &Source::Inlined).render()?)
}

fn template<'a>(
    chrome: &'a Chrome,
    report: &'a Report,
    exhibits: Option<&Exhibits>,
    source: &Source,
) -> ReportTemplate<'a> {
    let conditions = &report.conditions;
    let url = report.final_url.clone();
    let url = url.unwrap_or_else(|| report.requested_url.clone());
    let scenes = exhibits.map_or_else(Scenes::default, |exhibits| Scenes::of(exhibits, source));
    let fixes = fixes(report, &scenes);
    let categories = report.categories.iter();
    let categories = categories
        .map(|category| category_view(category, &scenes))
        .collect();
    let outline = exhibits
        .zip(film::largest_content(report))
        .and_then(|(exhibits, rect)| film::outline(exhibits, rect));
    let film =
        exhibits.and_then(|exhibits| film::film(exhibits, source, FilmTimes::of([exhibits])?));
    let film = film.map(|film| film.outlined(outline.as_deref().filter(|_| stood_still(report))));
    ReportTemplate {
        chrome,
        title: format!("Audit of {}", in_short(&url)),
        description: format!(
            "Scores, metrics and checks of {} on {}, {}.",
            in_short(&url),
            conditions.device.name,
            conditions.network.name
        ),
        audit_id: None,
        sharing: Sharing::NotOurs,
        shared_until: None,
        requested_url: (url != report.requested_url).then(|| report.requested_url.clone()),
        url,
        when: None,
        device: &conditions.device.name,
        network: &conditions.network.name,
        location: &conditions.location.name,
        order: [
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
        still: scenes.still(),
        definitions: scenes.definitions(),
        film,
        outline,
        waterfall: exhibits.map(load::waterfall),
        types: exhibits.map_or_else(Vec::new, |exhibits| load::shares(&exhibits.by_type)),
        hosts: exhibits.map_or_else(Vec::new, |exhibits| load::shares(&exhibits.by_host)),
        environment: environment::rows(report),
        warnings: report.warnings.clone(),
        is_unreachable: false,
    }
}

/// A page that shifted less than is good looks at every time much as it does at the end.
fn stood_still(report: &Report) -> bool {
    let cls = report.metrics.as_ref().and_then(|metrics| metrics.cls);
    cls.is_some_and(|cls| cls.value <= 0.1)
}

/// Host and path, as long as a title may be.
fn in_short(url: &str) -> String {
    const LONGEST: usize = 60;
    let plain = url.split_once("://").map_or(url, |(_, rest)| rest);
    let plain = plain.strip_suffix('/').unwrap_or(plain);
    match plain.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &plain[..at]),
        None => plain.to_owned(),
    }
}

/// What to do about a page that could not be measured.
fn advice(code: FailureCode) -> &'static str {
    match code {
        FailureCode::DnsFailure => {
            "Check the spelling of the host, and that its name leads to public addresses when it is \
             resolved from the public internet."
        }
        FailureCode::ConnectionFailed => {
            "Check that the server is running and reachable from outside, and that no firewall turns \
             this machine away."
        }
        FailureCode::TlsFailure => {
            "Check that the certificate is valid, matches the host and comes with its whole chain."
        }
        FailureCode::BlockedTarget => {
            "This address may not be visited from here. Who runs this service can allow it with \
             --allow-target."
        }
        FailureCode::NotHtml => "Audit the address of a web page rather than of a file.",
        FailureCode::NoPaint => {
            "Open the page on a phone-sized screen: it stays blank, or waits for something that never \
             comes."
        }
        FailureCode::PageCrashed => {
            "The page brought its own browser process down, most often by using too much memory."
        }
        FailureCode::PageHung => {
            "A script kept the page busy so that it never answered. Look for an endless loop."
        }
        FailureCode::TooManyRedirects => {
            "Check where the address leads: its redirects go round in a circle."
        }
        FailureCode::TooLarge => {
            "The page loads more than an audit may: look for what is so heavy."
        }
        FailureCode::Timeout => {
            "The page took longer than an audit waits. Try a faster network, and look at what it waits for."
        }
        FailureCode::Internal => {
            "This is a fault of ours. Try again; if it stays, tell who runs this service."
        }
    }
}
