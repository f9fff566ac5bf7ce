//! Where the forms of a report go.

use std::path::{Path, PathBuf};

use plumbline_report::contract::iso8601_ms;
use plumbline_report::{ExportSource, Format};
use url::Url;

use crate::args::OutputArgs;
use crate::exit::Exit;
use crate::standard_output as out;

const STANDARD_OUTPUT: &str = "-";

/// What is written, and where.
pub struct Outputs {
    formats: Vec<Format>,
    to: To,
}

enum To {
    StandardOutput,
    File(PathBuf),
    /// Files with this beginning; none is named after the page.
    Files(Option<PathBuf>),
}

impl Outputs {
    /// `by_default` is what is written when nothing was asked for, to standard output.
    pub fn resolve(args: OutputArgs, by_default: &[Format]) -> Result<Self, Exit> {
        let mut formats = args.output;
        if formats.is_empty() {
            formats = by_default.to_vec();
        }
        let mut seen = Vec::new();
        formats.retain(|format| {
            !seen.contains(format) && {
                seen.push(*format);
                true
            }
        });
        let to = match (formats.len(), args.output_path) {
            (0 | 1, None) => To::StandardOutput,
            (0 | 1, Some(path)) if path == Path::new(STANDARD_OUTPUT) => To::StandardOutput,
            (0 | 1, Some(path)) => To::File(path),
            (_, Some(path)) if path == Path::new(STANDARD_OUTPUT) => {
                return Err(Exit::usage(
                    "--output-path -: only one form fits on standard output",
                ));
            }
            (_, path) => To::Files(path),
        };
        Ok(Self { formats, to })
    }

    /// Whether standard output belongs to a program that reads it.
    pub fn takes_standard_output(&self) -> bool {
        matches!(self.to, To::StandardOutput) && !self.formats.is_empty()
    }

    pub fn write(&self, source: &ExportSource) -> Result<(), Exit> {
        for format in &self.formats {
            if format.needs_evidence() && source.bundle.is_none() {
                // A page that was never reached leaves none: the report says why.
                eprintln!("plumbline: no {}: the page left no evidence", format.name());
                continue;
            }
            let bytes = format.export(source).map_err(Exit::failed)?;
            match &self.to {
                To::StandardOutput => out::document(&bytes)?,
                To::File(path) => write_file(path, &bytes)?,
                To::Files(beginning) => {
                    let beginning = beginning.clone().unwrap_or_else(|| named_after(source));
                    let mut path = beginning.into_os_string();
                    path.push(format!(".{}", format.extension()));
                    write_file(Path::new(&path), &bytes)?;
                }
            }
        }
        Ok(())
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Exit> {
    std::fs::write(path, bytes)
        .map_err(|error| Exit::failed(format!("{}: {error}", path.display())))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

/// `example.com_2026-11-15_02-09-42`: only what is plain in a file name.
fn named_after(source: &ExportSource) -> PathBuf {
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
