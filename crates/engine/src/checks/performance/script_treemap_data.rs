use std::collections::HashMap;

use plumbline_model::check::{Cell, Findings, Row, Unit};
use plumbline_model::size::size;

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, Requests, Script, Scripts, transferred_share};

check! {
    /// # What
    /// Every script with its size, the part of it that was not used while the page loaded, and the
    /// sources that it was built from.
    ///
    /// # Why
    /// The list shows which sources make a script large.
    ///
    /// # Scored
    /// Always informative.
    ///
    /// # Fix
    /// Nothing to fix here; see unused and duplicated JavaScript.
    ///
    /// # Source
    /// Lighthouse 13.5, `script-treemap-data`.
    id: "script-treemap-data",
    pass: "Treemap of scripts",
    fail: "Treemap of scripts",
    run: run,
}

/// Maximum number of scripts, and of the parts of each. The smallest ones are added up.
const MAX_LISTED: usize = 200;

/// A script or a part of it, in UTF-16 code units and bytes as transferred.
#[derive(Debug, Default)]
struct Part {
    name: String,
    length: f64,
    transferred_bytes: f64,
    /// The length of functions that were not called; `None` if that is not known.
    unused: Option<f64>,
    parts: Vec<Part>,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let scripts = facts.get::<Scripts>()?;
    let requests = facts.get::<Requests>()?;
    let mut files: Vec<Part> = Vec::new();
    // Inline scripts are parts of the document of their frame.
    let mut documents: HashMap<&str, usize> = HashMap::new();
    for script in &scripts.0 {
        let part = part(&requests, script);
        if !script.is_inline {
            files.push(part);
            continue;
        }
        let document = *documents.entry(&script.frame).or_insert_with(|| {
            files.push(Part {
                name: script.url.clone(),
                ..Part::default()
            });
            files.len() - 1
        });
        files[document].add(Part {
            name: format!("(inline) {}…", script.preview.trim_start()),
            ..part
        });
    }
    let total: f64 = files.iter().map(|file| file.length).sum();
    let number = count(files.len(), "file", "files");
    let table = Findings::new([
        ("url", "Script", Unit::Url),
        ("resourceBytes", "Size", Unit::Bytes),
        ("encodedBytes", "Transferred", Unit::Bytes),
        ("unusedBytes", "Not used", Unit::Bytes),
    ])
    .rows(largest_first(files).into_iter().map(|file| {
        let name = Cell::url(&file.name);
        let parts = largest_first(file.parts);
        row(name, file.length, file.transferred_bytes, file.unused).with(parts.iter().map(|part| {
            let name = Cell::text(&part.name);
            row(name, part.length, part.transferred_bytes, part.unused)
        }))
    }));
    let summary = format!("{number} with scripts of {}.", size(total));
    Ok(Outcome::informative(summary).with(table.into()))
}

fn row(name: Cell, length: f64, transferred_bytes: f64, unused: Option<f64>) -> Row {
    let sizes = [length, transferred_bytes.round()].map(Cell::Bytes);
    let unused = unused.map_or(Cell::Nothing, Cell::Bytes);
    Row::new([name].into_iter().chain(sizes).chain([unused]))
}

impl Part {
    fn add(&mut self, part: Part) {
        self.length += part.length;
        self.transferred_bytes += part.transferred_bytes;
        if let Some(unused) = part.unused {
            *self.unused.get_or_insert_default() += unused;
        }
        self.parts.push(part);
    }
}

/// Returns a script with the sources that its source map names.
fn part(requests: &Requests, script: &Script) -> Part {
    let share = transferred_share(requests, script);
    let of = |name: &str, length: u64, unused: Option<u64>| Part {
        name: name.to_owned(),
        length: length as f64,
        transferred_bytes: length as f64 * share,
        unused: unused.map(|unused| unused as f64),
        parts: Vec::new(),
    };
    let unused = script.coverage.map(|coverage| coverage.unused);
    let mut whole = of(&script.url, script.length, unused);
    let map = script.source_map.as_ref();
    if let Some((map, modules)) = map.and_then(|map| Some((map, map.modules.as_ref()?))) {
        let known = |unused: u64| script.coverage.map(|_| unused);
        let sources = modules
            .iter()
            .map(|module| of(&module.source, module.length, known(module.unused)));
        whole.parts = sources.collect();
        let mapped: u64 = modules.iter().map(|module| module.length).sum();
        let unmapped = script.length.saturating_sub(mapped);
        if unmapped > 0 {
            let unused = known(map.unmapped_unused);
            whole.parts.push(of("(unmapped)", unmapped, unused));
        }
    }
    whole
}

/// Sorts parts by their length, and adds up those that are too many.
fn largest_first(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_by(|a, b| b.length.total_cmp(&a.length));
    if parts.len() > MAX_LISTED {
        let smallest = parts.split_off(MAX_LISTED - 1);
        let mut others = Part {
            name: format!("({} smaller ones)", smallest.len()),
            ..Part::default()
        };
        for part in smallest {
            others.add(part);
        }
        others.parts.clear();
        parts.push(others);
    }
    parts
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Details, Verdict};
    use serde_json::json;

    use super::*;
    use crate::checks::testing::{Visit, verdict_without_evidence};

    fn rows(scripts: &serde_json::Value) -> Vec<Row> {
        let visit = Visit::new().with("scripts", &scripts.to_string());
        let outcome = visit.judge(CHECK);
        assert_eq!(outcome.verdict, Verdict::Informative);
        match outcome.details.unwrap() {
            Details::Findings(table) => table.rows,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_script_has_the_sources_of_its_map_and_what_is_left() {
        let rows = rows(&json!([{
            "url": "https://a.test/a.js", "length": 1000, "coverage": { "total": 1000, "unused": 400 },
            "sourceMap": {
                "modules": [
                    { "source": "src/a.js", "length": 200, "unused": 0 },
                    { "source": "src/b.js", "length": 700, "unused": 390 },
                ],
                "unmappedUnused": 10,
            },
        }]));
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].cells[0], Cell::url("https://a.test/a.js"));
        assert_eq!(rows[0].cells[1], Cell::Bytes(1000.0));
        assert_eq!(rows[0].cells[3], Cell::Bytes(400.0));
        let names: Vec<&Cell> = rows[0].sub_rows.iter().map(|row| &row.cells[0]).collect();
        let expected = ["src/b.js", "src/a.js", "(unmapped)"].map(Cell::text);
        assert_eq!(names, expected.iter().collect::<Vec<_>>());
        assert_eq!(rows[0].sub_rows[2].cells[1], Cell::Bytes(100.0));
        assert_eq!(rows[0].sub_rows[2].cells[3], Cell::Bytes(10.0));
    }

    #[test]
    fn inline_scripts_are_parts_of_their_document() {
        let inline = |length: u64| {
            json!({
                "url": "https://a.test/", "length": length, "isInline": true, "frame": "F",
                "preview": "  let a", "coverage": { "total": length, "unused": 1 },
            })
        };
        let other = json!({ "url": "https://a.test/a.js", "length": 10 });
        let rows = rows(&json!([inline(30), other, inline(20)]));
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].cells[1], Cell::Bytes(50.0));
        assert_eq!(rows[0].cells[3], Cell::Bytes(2.0));
        assert_eq!(rows[0].sub_rows.len(), 2);
        assert_eq!(rows[0].sub_rows[0].cells[0], Cell::text("(inline) let a…"));
        // Nothing is known about the use of the other script.
        assert_eq!(rows[1].cells[3], Cell::Nothing);
    }

    #[test]
    fn the_smallest_of_many_scripts_are_added_up() {
        let scripts =
            (1..=300).map(|n| json!({ "url": format!("https://a.test/{n}"), "length": n }));
        let rows = rows(&scripts.collect());
        assert_eq!(rows.len(), MAX_LISTED);
        let last = rows.last().unwrap();
        assert_eq!(last.cells[0], Cell::url("(101 smaller ones)"));
        assert_eq!(last.cells[1], Cell::Bytes((1..=101).sum::<u32>().into()));
        assert_eq!(verdict_without_evidence(CHECK), Verdict::CouldNotMeasure);
    }
}
