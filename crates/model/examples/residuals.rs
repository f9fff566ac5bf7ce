//! Makes the residual table from audits, or prints the coverage of their intervals. A directory has
//! a folder for each page, with the reports of its audits as JSON. `bench/residuals` calls it.
//!
//!   cargo run -p plumbline-model --example residuals -- table DIR DATE COMMAND HOST
//!   cargo run -p plumbline-model --example residuals -- coverage DIR FURTHER_DIR

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use plumbline_model::interval::{Origin, ResidualTable, coverage};
use plumbline_model::report::Report;

const HEADER: &str = "\
# How far one visit of a page is from the mean of 20 further audits: half of the width of the 90 % interval of an audit
# with one visit. Those of metrics are fractions of the value, or of 100 ms (0.01 for cls) if it is smaller; that of
# performance is a factor of the effect that the metrics have on the score. Written by bench/residuals.
";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["table", dir, date, command, host] => {
            let pages: Vec<Vec<Report>> = pages(Path::new(dir))?
                .iter()
                .map(|page| reports(page))
                .collect::<Result<_, _>>()?;
            let origin = Origin {
                date: (*date).to_owned(),
                command: (*command).to_owned(),
                host: (*host).to_owned(),
            };
            let table = ResidualTable::measured(&pages, origin);
            print!("{HEADER}{}", toml::to_string(&table)?);
        }
        ["coverage", dir, further_dir] => {
            let (mut audits, mut further) = (Vec::new(), Vec::new());
            for page in pages(Path::new(dir))? {
                let name = page.file_name().unwrap_or_default();
                further.push(reports(&Path::new(further_dir).join(name))?);
                audits.push(reports(&page)?);
            }
            let (mut intervals, mut containing) = (0_usize, 0_usize);
            println!("figure        intervals  contain the mean of further audits");
            for (name, coverage) in coverage(&audits, &further) {
                let share = coverage.share() * 100.0;
                println!("{name:<12}{:>11}  {share:.1} %", coverage.intervals);
                intervals += coverage.intervals;
                containing += coverage.containing;
            }
            let share = containing as f64 / intervals.max(1) as f64 * 100.0;
            println!("{:<12}{intervals:>11}  {share:.1} %", "all");
        }
        _ => {
            let usage = "usage: residuals table DIR DATE COMMAND HOST | coverage DIR FURTHER_DIR";
            return Err(usage.into());
        }
    }
    Ok(())
}

/// Returns the folders of a directory, sorted.
fn pages(dir: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path()));
    let mut pages: Vec<PathBuf> = entries.collect::<Result<_, _>>()?;
    pages.retain(|path| path.is_dir());
    pages.sort();
    Ok(pages)
}

/// Returns the measured reports of a page.
fn reports(page: &Path) -> Result<Vec<Report>, Box<dyn Error>> {
    let mut reports = Vec::new();
    for entry in fs::read_dir(page)? {
        let report: Report = serde_json::from_slice(&fs::read(entry?.path())?)?;
        if report.error.is_none() {
            reports.push(report);
        }
    }
    Ok(reports)
}
