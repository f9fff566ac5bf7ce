//! Exports of a report as files for other tools.

use std::io;

use plumbline_bundle::{Bundle, BundleParts, FailedConnections, PackError, Record};
use plumbline_model::media::ReportMedia;
use plumbline_model::report::Report;

use serde::Serialize;

use crate::contract::iso8601_ms;
use crate::html::LogoFile;
use crate::junit::{self, JunitOptions};
use crate::{csv, har, html, lighthouse, trace_file, video};

/// The report and bundle that an export is made from.
#[derive(Debug, Clone, Copy)]
pub struct ExportSource<'a> {
    pub report: &'a Report,
    /// The bundle of the visit, as long as it is stored.
    pub bundle: Option<&'a Bundle>,
    /// The pictures and charts of the HTML page, and the pictures of a video without a bundle.
    pub media: Option<&'a ReportMedia>,
    /// The time of the audit, in milliseconds since 1970.
    pub made_at_ms: i64,
    /// The contents of a JUnit file.
    pub junit: JunitOptions<'a>,
    /// The operator's logo, for the HTML page.
    pub logo: Option<LogoFile<'a>>,
}

/// An export format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// The complete report in Plumbline's own format.
    Json,
    /// A Lighthouse result.
    Lighthouse,
    /// HTTP Archive 1.2.
    Har,
    /// Comma-separated values.
    Csv,
    /// JUnit XML.
    Junit,
    /// Chromium's trace.
    Trace,
    /// A standalone HTML page.
    Html,
    /// Chromium's trace of the load with a profiler.
    Profile,
    /// A video of the load.
    Video,
}

/// A stored audit that an export is made from.
#[derive(Debug, Clone, Copy)]
pub struct StoredAudit<'a> {
    pub report_json: &'a str,
    /// The packed bundle of the visit, as long as it is stored.
    pub bundle: Option<&'a [u8]>,
    /// The packed report media, as long as they are stored.
    pub media: Option<&'a [u8]>,
    pub made_at_ms: i64,
    /// The operator's logo, for the HTML page.
    pub logo: Option<LogoFile<'a>>,
}

/// An error while exporting a report.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{0} requires the evidence of the audit, which is no longer stored")]
    NoEvidence(&'static str),
    #[error("the page was not profiled: start the audit with a profile")]
    NoProfile,
    #[error("the visit has no screenshots")]
    NoScreenshots,
    #[error("the video cannot be compressed: {0}")]
    Compression(#[from] io::Error),
    #[error("the evidence cannot be read: {0}")]
    Unreadable(#[from] PackError),
    #[error("invalid JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Html(#[from] html::HtmlError),
}

/// A report with the time of the audit and the version that wrote the file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DatedReport<'a> {
    created_at: String,
    plumbline_version: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 9] = [
        Self::Json,
        Self::Lighthouse,
        Self::Har,
        Self::Csv,
        Self::Junit,
        Self::Trace,
        Self::Html,
        Self::Profile,
        Self::Video,
    ];

    /// Returns the format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The name of the format in the API and on the command line.
    pub fn name(self) -> &'static str {
        self.properties().0
    }

    /// The name of the format for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Json => "Report (JSON)",
            Self::Lighthouse => "Lighthouse result (JSON)",
            Self::Har => "Requests (HAR)",
            Self::Csv => "Figures and checks (CSV)",
            Self::Junit => "Checks as tests (JUnit XML)",
            Self::Trace => "Trace for DevTools (JSON)",
            Self::Html => "Offline page (HTML)",
            Self::Profile => "Profile for DevTools (JSON)",
            Self::Video => "Video of the load (animated PNG)",
        }
    }

    /// The file name extension.
    pub fn extension(self) -> &'static str {
        self.properties().1
    }

    /// The value of the `Content-Type` header.
    pub fn content_type(self) -> &'static str {
        self.properties().2
    }

    /// Whether the file is a text.
    pub fn is_text(self) -> bool {
        self != Self::Video
    }

    /// Whether the format cannot be made from the report alone.
    pub fn needs_evidence(self) -> bool {
        matches!(self, Self::Har | Self::Trace | Self::Profile | Self::Video)
    }

    /// Whether the format contains more if there is a bundle.
    pub fn uses_evidence(self) -> bool {
        self.needs_evidence() || self == Self::Lighthouse
    }

    /// Whether the format contains more if there are report media. A format that also uses the
    /// bundle needs them only if there is none.
    pub fn uses_media(self) -> bool {
        matches!(self, Self::Html | Self::Video)
    }

    /// The parts of the bundle that the format uses.
    pub fn bundle_parts(self) -> BundleParts {
        let without_pictures = BundleParts {
            screenshot: false,
            artifacts: Some(&[FailedConnections::ARTIFACT]),
            ..BundleParts::EVIDENCE
        };
        match self {
            Self::Har => without_pictures,
            Self::Trace => BundleParts {
                log: false,
                artifacts: Some(trace_file::ARTIFACTS),
                ..without_pictures
            },
            Self::Profile => BundleParts {
                artifacts: Some(trace_file::ARTIFACTS),
                ..BundleParts::PROFILE_TRACE
            },
            Self::Video => BundleParts {
                log: false,
                artifacts: Some(&[]),
                ..without_pictures
            },
            _ => BundleParts::EVIDENCE,
        }
    }

    /// The name, file name extension and content type.
    fn properties(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Json => ("json", "report.json", "application/json"),
            Self::Lighthouse => ("lighthouse", "lighthouse.json", "application/json"),
            Self::Har => ("har", "har", "application/json"),
            Self::Csv => ("csv", "csv", "text/csv; charset=utf-8"),
            Self::Junit => ("junit", "junit.xml", "application/xml"),
            Self::Trace => ("trace", "trace.json", "application/json"),
            Self::Html => ("html", "html", "text/html; charset=utf-8"),
            Self::Profile => ("profile", "profile.json", "application/json"),
            // Not `image/apng`, because programs that do not know it can show the file as well.
            Self::Video => ("video", "video.png", "image/png"),
        }
    }

    /// Exports a stored audit. Media, and parts of the bundle, are unpacked only if the format uses
    /// them.
    pub fn export_stored(self, stored: &StoredAudit) -> Result<Vec<u8>, ExportError> {
        let report = Report::from_json(stored.report_json)?;
        let packed = stored.bundle.filter(|_| self.uses_evidence());
        let unpack = |packed| Bundle::unpack_parts(packed, self.bundle_parts());
        let bundle = packed.map(unpack).transpose()?;
        let packed = stored.media.filter(|_| self.uses_media());
        let media = packed.map(ReportMedia::unpack).transpose()?;
        self.export(&ExportSource {
            report: &report,
            bundle: bundle.as_ref(),
            media: media.as_ref(),
            made_at_ms: stored.made_at_ms,
            junit: JunitOptions::default(),
            logo: stored.logo,
        })
    }

    /// Exports a report.
    pub fn export(self, source: &ExportSource) -> Result<Vec<u8>, ExportError> {
        let evidence = || source.bundle.ok_or(ExportError::NoEvidence(self.name()));
        Ok(match self {
            Self::Json => serde_json::to_vec_pretty(&DatedReport {
                created_at: iso8601_ms(source.made_at_ms),
                plumbline_version: crate::VERSION,
                report: source.report,
            })?,
            Self::Lighthouse => {
                serde_json::to_vec(&lighthouse::OrderedResult(&lighthouse::result(source)))?
            }
            Self::Har => serde_json::to_vec(&har::archive(evidence()?))?,
            Self::Csv => csv::render(source).into_bytes(),
            Self::Junit => junit::render(source).into_bytes(),
            Self::Trace => {
                let bundle = evidence()?;
                trace_file::render(bundle, &bundle.trace)?
            }
            Self::Profile => {
                let bundle = evidence()?;
                let trace = bundle.profile_trace.as_deref();
                trace_file::render(bundle, trace.ok_or(ExportError::NoProfile)?)?
            }
            Self::Html => {
                let made_at_ms = Some(source.made_at_ms);
                html::standalone(source.report, source.media, made_at_ms, source.logo)?.into_bytes()
            }
            Self::Video => video::render(source)?.ok_or(ExportError::NoScreenshots)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use plumbline_bundle::{Artifact, Encoding};
    use serde_json::value::RawValue;

    use super::*;
    use crate::testing::{bundle_with_log, report};

    #[test]
    fn a_format_is_returned_for_its_exact_name_only() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
        }
        for name in ["", "JSON", "pdf", "lighthouse "] {
            assert_eq!(Format::from_name(name), None, "{name:?}");
        }
    }

    #[test]
    fn without_a_bundle_only_formats_that_need_it_fail() {
        let report = report();
        let bundle = bundle_with_log("[]");
        for format in Format::ALL {
            let without_bundle = ExportSource {
                report: &report,
                bundle: None,
                media: None,
                made_at_ms: 0,
                logo: None,
                junit: JunitOptions::default(),
            };
            let with_bundle = ExportSource {
                bundle: Some(&bundle),
                ..without_bundle
            };
            assert_eq!(
                format.export(&without_bundle).is_err(),
                format.needs_evidence(),
                "{format:?}"
            );
            assert!(format.export(&with_bundle).is_ok(), "{format:?}");
        }
    }

    #[test]
    fn the_json_has_date_and_version_and_is_still_a_report() {
        let report = report();
        let source = ExportSource {
            report: &report,
            bundle: None,
            media: None,
            made_at_ms: 0,
            logo: None,
            junit: JunitOptions::default(),
        };
        let json = Format::Json.export(&source).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(value["createdAt"], "1970-01-01T00:00:00.000Z");
        assert_eq!(value["plumblineVersion"], env!("CARGO_PKG_VERSION"));
        assert_eq!(serde_json::from_slice::<Report>(&json).unwrap(), report);
    }

    #[test]
    fn an_export_of_parts_equals_that_of_the_whole_bundle() {
        let mut bundle = bundle_with_log("[]");
        for (name, json) in [("page", r#"{"devicePixelRatio":2.5}"#), ("links", "[]")] {
            let raw = RawValue::from_string(json.to_owned()).unwrap();
            let artifact = Artifact::Gathered(raw);
            bundle.artifacts.insert(name.to_owned(), artifact);
        }
        let report = report();
        let report_json = serde_json::to_string(&report).unwrap();
        for encoding in [Encoding::Container, Encoding::GzipJson] {
            let packed = bundle.pack_as(encoding).unwrap();
            for format in Format::ALL {
                let of_parts = format.export_stored(&StoredAudit {
                    report_json: &report_json,
                    bundle: Some(&packed),
                    media: None,
                    made_at_ms: 1,
                    logo: None,
                });
                let of_whole = format.export(&ExportSource {
                    report: &report,
                    bundle: Some(&bundle),
                    media: None,
                    made_at_ms: 1,
                    logo: None,
                    junit: JunitOptions::default(),
                });
                assert_eq!(of_parts.unwrap(), of_whole.unwrap(), "{format:?}");
            }
        }
    }

    #[test]
    fn the_same_source_gives_the_same_bytes() {
        let report = report();
        let bundle = bundle_with_log("[]");
        let source = ExportSource {
            report: &report,
            bundle: Some(&bundle),
            media: None,
            made_at_ms: 1,
            logo: None,
            junit: JunitOptions::default(),
        };
        for format in Format::ALL {
            assert_eq!(
                format.export(&source).unwrap(),
                format.export(&source).unwrap()
            );
        }
    }
}
