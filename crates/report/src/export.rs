//! A report as a file that other tools open.

use plumbline_bundle::{Bundle, BundleError};
use plumbline_engine::exhibits::exhibits;
use plumbline_engine::report::Report;

use crate::{csv, har, html, junit, lighthouse, trace_file};

/// What an export is made of.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub report: &'a Report,
    /// The evidence behind it, as long as it is kept.
    pub bundle: Option<&'a Bundle>,
    /// When the audit was made, in milliseconds since 1970.
    pub made_at_ms: i64,
}

/// The forms there are. `name` is what people type, and the only list of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Everything that was measured and judged, in our own shape.
    Json,
    /// A Lighthouse result.
    Lighthouse,
    /// HTTP Archive 1.2.
    Har,
    Csv,
    Junit,
    /// Chromium's trace.
    Trace,
    /// A page in one file.
    Html,
}

/// What an export is made of, as it is kept.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a> {
    pub report_json: &'a str,
    /// Packed.
    pub bundle: Option<&'a [u8]>,
    pub made_at_ms: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{0} needs the evidence of the audit, which is no longer kept")]
    NoEvidence(&'static str),
    #[error("the evidence is unreadable: {0}")]
    Unreadable(#[from] BundleError),
    #[error("unreadable, or cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Html(#[from] html::HtmlError),
}

impl Format {
    pub const ALL: [Self; 7] = [
        Self::Json,
        Self::Lighthouse,
        Self::Har,
        Self::Csv,
        Self::Junit,
        Self::Trace,
        Self::Html,
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    pub fn name(self) -> &'static str {
        self.about().0
    }

    /// How a file of this form ends, after a name of the user's choice.
    pub fn extension(self) -> &'static str {
        self.about().1
    }

    pub fn content_type(self) -> &'static str {
        self.about().2
    }

    /// Whether a report alone is not enough.
    pub fn needs_evidence(self) -> bool {
        matches!(self, Self::Har | Self::Trace)
    }

    /// Whether a report alone would give less.
    pub fn uses_evidence(self) -> bool {
        self.needs_evidence() || matches!(self, Self::Lighthouse | Self::Html)
    }

    fn about(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Json => ("json", "report.json", "application/json"),
            Self::Lighthouse => ("lighthouse", "lighthouse.json", "application/json"),
            Self::Har => ("har", "har", "application/json"),
            Self::Csv => ("csv", "csv", "text/csv; charset=utf-8"),
            Self::Junit => ("junit", "junit.xml", "application/xml"),
            Self::Trace => ("trace", "trace.json", "application/json"),
            Self::Html => ("html", "html", "text/html; charset=utf-8"),
        }
    }

    /// Unpacks what is needed, and no more.
    pub fn export_stored(self, stored: &Stored) -> Result<Vec<u8>, ExportError> {
        let report: Report = serde_json::from_str(stored.report_json)?;
        let packed = stored.bundle.filter(|_| self.uses_evidence());
        let bundle = packed.map(Bundle::unpack).transpose()?;
        self.export(&Subject {
            report: &report,
            bundle: bundle.as_ref(),
            made_at_ms: stored.made_at_ms,
        })
    }

    pub fn export(self, subject: &Subject) -> Result<Vec<u8>, ExportError> {
        let evidence = || subject.bundle.ok_or(ExportError::NoEvidence(self.name()));
        Ok(match self {
            Self::Json => serde_json::to_vec_pretty(subject.report)?,
            Self::Lighthouse => {
                serde_json::to_vec(&lighthouse::InOrder(&lighthouse::result(subject)))?
            }
            Self::Har => serde_json::to_vec(&har::archive(evidence()?))?,
            Self::Csv => csv::render(subject).into_bytes(),
            Self::Junit => junit::render(subject).into_bytes(),
            Self::Trace => trace_file::render(evidence()?)?,
            Self::Html => {
                let exhibits = subject.bundle.and_then(exhibits);
                html::standalone(subject.report, exhibits.as_ref())?.into_bytes()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bundle_with_log, report};

    #[test]
    fn a_format_is_found_by_its_name_and_by_nothing_else() {
        for format in Format::ALL {
            assert_eq!(Format::named(format.name()), Some(format));
        }
        for name in ["", "JSON", "pdf", "lighthouse "] {
            assert_eq!(Format::named(name), None, "{name:?}");
        }
    }

    #[test]
    fn without_evidence_only_what_needs_it_is_refused() {
        let report = report();
        let bundle = bundle_with_log("[]");
        for format in Format::ALL {
            let alone = Subject {
                report: &report,
                bundle: None,
                made_at_ms: 0,
            };
            let whole = Subject {
                bundle: Some(&bundle),
                ..alone
            };
            assert_eq!(
                format.export(&alone).is_err(),
                format.needs_evidence(),
                "{format:?}"
            );
            assert!(format.export(&whole).is_ok(), "{format:?}");
        }
    }

    #[test]
    fn the_same_subject_gives_the_same_bytes() {
        let report = report();
        let bundle = bundle_with_log("[]");
        let subject = Subject {
            report: &report,
            bundle: Some(&bundle),
            made_at_ms: 1,
        };
        for format in Format::ALL {
            assert_eq!(
                format.export(&subject).unwrap(),
                format.export(&subject).unwrap()
            );
        }
    }
}
