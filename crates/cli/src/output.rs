//! Writes a report in the requested formats.

use std::path::{Path, PathBuf};

use plumbline_engine::media::report_media;
use plumbline_report::budget::BudgetResult;
use plumbline_report::contract::iso8601_ms;
use plumbline_report::{ExportError, ExportSource, Format, JunitOptions};
use rustix::fs::Access;
use url::Url;

use crate::args::OutputArgs;
use crate::exit::Exit;
use crate::standard_output as out;

const STANDARD_OUTPUT: &str = "-";

/// The requested formats and their destination.
pub struct Outputs {
    formats: Vec<Format>,
    /// Whether failed checks are failures in JUnit XML.
    junit_checks: bool,
    destination: Destination,
}

enum Destination {
    StandardOutput,
    File(PathBuf),
    /// Files with this prefix; `None` for a prefix made from host and time.
    Files(Option<PathBuf>),
}

impl Outputs {
    /// Resolves the arguments. `default_formats` are written if no format was requested.
    pub fn resolve(args: OutputArgs, default_formats: &[Format]) -> Result<Self, Exit> {
        let mut formats = args.output;
        if formats.is_empty() {
            formats = default_formats.to_vec();
        }
        let mut seen = Vec::new();
        formats.retain(|format| {
            !seen.contains(format) && {
                seen.push(*format);
                true
            }
        });
        let destination = match (formats.len(), args.output_path) {
            (0 | 1, None) => Destination::StandardOutput,
            (0 | 1, Some(path)) if path == Path::new(STANDARD_OUTPUT) => {
                Destination::StandardOutput
            }
            (0 | 1, Some(path)) => Destination::File(path),
            (_, Some(path)) if path == Path::new(STANDARD_OUTPUT) => {
                return Err(Exit::usage(
                    "--output-path -: only one format can be written to standard output",
                ));
            }
            (_, path) => Destination::Files(path),
        };
        Ok(Self {
            formats,
            junit_checks: args.junit_checks,
            destination,
        })
    }

    /// Checks that the destination can be written, so that an audit is not made in vain.
    pub fn check_destination(&self) -> Result<(), Exit> {
        match &self.destination {
            Destination::File(path) | Destination::Files(Some(path)) => {
                check_file(path, "--output-path")
            }
            Destination::StandardOutput | Destination::Files(None) => Ok(()),
        }
    }

    /// Whether a report is written to standard output.
    pub fn use_standard_output(&self) -> bool {
        matches!(self.destination, Destination::StandardOutput) && !self.formats.is_empty()
    }

    /// Whether a format was requested.
    pub fn contain(&self, format: Format) -> bool {
        self.formats.contains(&format)
    }

    /// Whether no format was requested.
    pub fn is_empty(&self) -> bool {
        self.formats.is_empty()
    }

    /// Writes all formats, and returns the file with the web page if there is one.
    pub fn write(
        &self,
        source: &ExportSource,
        budget: Option<&BudgetResult>,
    ) -> Result<Option<PathBuf>, Exit> {
        let junit = JunitOptions {
            budget,
            checks_fail: self.junit_checks,
        };
        let source = &ExportSource { junit, ..*source };
        let mut html_file = None;
        for format in &self.formats {
            if !has_evidence(*format, source) {
                // A page that was never reached has no evidence; the report contains the reason.
                eprintln!(
                    "plumbline: {} was not written: the audit has no evidence",
                    format.name()
                );
                continue;
            }
            let bytes = match export(*format, source) {
                Err(error @ ExportError::NoScreenshots) => {
                    eprintln!("plumbline: {} was not written: {error}", format.name());
                    continue;
                }
                bytes => bytes.map_err(Exit::failed)?,
            };
            let path = match &self.destination {
                Destination::StandardOutput => {
                    if format.is_text() {
                        out::document(&bytes)?;
                    } else {
                        out::bytes(&bytes)?;
                    }
                    continue;
                }
                Destination::File(path) => path.clone(),
                Destination::Files(prefix) => {
                    let prefix = prefix.clone().unwrap_or_else(|| default_prefix(source));
                    with_extension(prefix, *format)
                }
            };
            write_file(&path, &bytes)?;
            if *format == Format::Html {
                html_file = Some(path);
            }
        }
        Ok(html_file)
    }
}

/// Checks that a file can be written into its directory. `flag` is the flag that names the file.
pub fn check_file(path: &Path, flag: &str) -> Result<(), Exit> {
    let usage = |reason: String| Exit::usage(format!("{flag} {}: {reason}", path.display()));
    if path.is_dir() {
        return Err(usage("it is a directory; name a file in it".to_owned()));
    }
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    if !directory.is_dir() {
        return Err(usage(format!(
            "there is no directory {}; create it first",
            directory.display()
        )));
    }
    let target = if path.exists() { path } else { directory };
    rustix::fs::access(target, Access::WRITE_OK)
        .map_err(|error| usage(format!("{} cannot be written: {error}", target.display())))
}

/// Returns whether the evidence that a format cannot be made without is there.
fn has_evidence(format: Format, source: &ExportSource) -> bool {
    match (format, source.bundle) {
        (Format::Profile, bundle) => bundle.is_some_and(|bundle| bundle.profile_trace.is_some()),
        (format, None) => !format.needs_evidence(),
        (_, Some(_)) => true,
    }
}

/// Writes a text to a file, or to standard output without a path.
pub fn write_text(path: Option<&Path>, text: String) -> Result<(), Exit> {
    match path {
        None => out::text(text),
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Exit::failed(format!("{}: {error}", path.display()))),
    }
}

/// Writes the report as a web page into the current directory, and returns the file.
pub fn write_html(source: &ExportSource) -> Result<PathBuf, Exit> {
    let path = with_extension(default_prefix(source), Format::Html);
    let bytes = export(Format::Html, source).map_err(Exit::failed)?;
    write_file(&path, &bytes)?;
    Ok(path)
}

/// Converts a report. Its media are computed from the bundle if the format needs them besides.
fn export(format: Format, source: &ExportSource) -> Result<Vec<u8>, ExportError> {
    let use_media = format.uses_media() && !format.uses_evidence();
    let bundle = source.bundle.filter(|_| use_media);
    let media = bundle.and_then(report_media);
    let source = &ExportSource {
        media: media.as_ref(),
        ..*source
    };
    format.export(source)
}

fn with_extension(prefix: PathBuf, format: Format) -> PathBuf {
    let mut path = prefix.into_os_string();
    path.push(format!(".{}", format.extension()));
    PathBuf::from(path)
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Exit> {
    std::fs::write(path, bytes)
        .map_err(|error| Exit::failed(format!("{}: {error}", path.display())))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// Returns a prefix such as `example.com_2026-11-15_02-09-42`, without special characters.
fn default_prefix(source: &ExportSource) -> PathBuf {
    let host = Url::parse(&source.report.requested_url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_else(|| "page".to_owned());
    let time = iso8601_ms(source.made_at_ms);
    let time = time
        .split('.')
        .next()
        .unwrap_or_default()
        .replace('T', "_")
        .replace(':', "-");
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let host: String = host.chars().map(plain).collect();
    PathBuf::from(format!("{}_{time}", host.trim_matches('_')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_needs_a_directory_that_exists() {
        let directory = tempfile::tempdir().unwrap();
        let message = |name: &str| match check_file(&directory.path().join(name), "--bundle") {
            Err(Exit::Usage(message)) => message,
            other => panic!("{other:?}"),
        };
        assert!(check_file(&directory.path().join("page.html"), "--bundle").is_ok());
        assert!(check_file(Path::new("page.html"), "--bundle").is_ok());
        let missing = message("none/page.html");
        assert!(missing.starts_with("--bundle /"), "{missing}");
        assert!(
            missing.contains("page.html: there is no directory /"),
            "{missing}"
        );
        assert!(message("").contains("it is a directory"));
    }
}
