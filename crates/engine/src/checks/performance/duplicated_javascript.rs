use std::collections::HashMap;

use plumbline_model::check::{Cell, Findings, Row, Unit};
use plumbline_model::size::size;
use plumbline_trace::{Resource, Trace};

use crate::checks::{Outcome, check, count};
use crate::facts::{Facts, Missing, Script, Scripts, compression, loaded, time_saved};

check! {
    /// # What
    /// No JavaScript module is included in more than one script.
    ///
    /// # Why
    /// Every copy of a module is downloaded, parsed and run, and copies do not share state.
    ///
    /// # Scored
    /// Does not affect the score. Lists modules that occur more than once in the source maps of the
    /// main frame's scripts, where a copy has at least 512 transferred bytes and a tenth of the
    /// largest copy. Files of a package are added up.
    ///
    /// # Fix
    /// Configure the bundler to move shared modules into a common chunk, and use one version of
    /// each package.
    ///
    /// # Source
    /// Lighthouse 13.5, `duplicated-javascript-insight`; trace engine,
    /// insights/DuplicatedJavaScript and extras/ScriptDuplication. Unlike there, an empty file does
    /// not hide the other files of its package.
    id: "duplicated-javascript-insight",
    pass: "No duplicated JavaScript",
    fail: "Duplicated JavaScript",
    learn: "https://developer.chrome.com/docs/performance/insights/duplicated-javascript",
    run: run,
}

const MIN_BYTES: f64 = 512.0;
/// A copy smaller than this fraction of the largest one is ignored.
const MIN_SHARE: f64 = 0.1;
const MAX_ROWS: usize = 10;

/// A module or package and its copies: the index of the script, and the transferred bytes.
#[derive(Default)]
struct Copies {
    name: String,
    copies: Vec<(usize, f64)>,
}

fn run(facts: &Facts) -> Result<Outcome, Missing> {
    let scripts = facts.get::<Scripts>()?;
    let trace = facts.get::<Trace>()?;
    let scripts: Vec<(&Script, Option<&Resource>)> = scripts
        .0
        .iter()
        .filter(|script| script.frame.is_empty() || script.frame == trace.frames.main_id)
        .map(|script| {
            let resource = loaded(&trace).find(|resource| resource.url == script.url);
            (script, resource)
        })
        .collect();
    let modules = modules(&scripts);
    let mut packages = packages(&modules);
    packages.retain_mut(Copies::keep_duplicates);
    packages.sort_by(|a, b| b.wasted_bytes().total_cmp(&a.wasted_bytes()));
    let mut modules = modules;
    modules.retain_mut(Copies::keep_duplicates);

    let wasted: Vec<(&str, f64)> = modules
        .iter()
        .flat_map(|module| &module.copies[1..])
        .filter_map(|(script, bytes)| Some((scripts[*script].1?.id.as_str(), *bytes)))
        .collect();
    let wasted_bytes: f64 = wasted.iter().map(|(_, bytes)| bytes).sum();
    let outcome = match modules.len() {
        0 => Outcome::pass(),
        number => Outcome::fail(format!(
            "{}: {} could be saved.",
            count(number, "duplicate module", "duplicate modules"),
            size(wasted_bytes)
        )),
    };
    let table = Findings::new([
        ("source", "Module", Unit::Text),
        ("url", "Script", Unit::Url),
        ("wastedBytes", "Duplicated", Unit::Bytes),
    ])
    .rows(packages.iter().take(MAX_ROWS).map(|package| {
        let parts = package.copies.iter().enumerate().map(|(at, copy)| {
            let bytes = match at {
                0 => Cell::Nothing,
                _ => Cell::Bytes(copy.1),
            };
            Row::new([Cell::Nothing, Cell::url(&scripts[copy.0].0.url), bytes])
        });
        let bytes = Cell::Bytes(package.wasted_bytes());
        Row::new([Cell::text(&package.name), Cell::Nothing, bytes]).with(parts)
    }));
    Ok(outcome
        .with(table.into())
        .with_savings(time_saved(facts, &wasted).with_bytes(wasted_bytes)))
}

/// Groups the modules of all scripts by name.
fn modules(scripts: &[(&Script, Option<&Resource>)]) -> Vec<Copies> {
    let mut by_name = ByName::default();
    for (at, (script, resource)) in scripts.iter().enumerate() {
        let share = resource.map_or(1.0, compression);
        let map = script.source_map.as_ref();
        for module in map
            .and_then(|map| map.modules.as_ref())
            .into_iter()
            .flatten()
        {
            if !is_overhead(&module.source) {
                let copies = by_name.entry(name(&module.source));
                copies.push((at, (module.length as f64 * share).round()));
            }
        }
    }
    by_name.all
}

/// Merges the files of each package into one entry; modules outside packages stay as they are.
fn packages(modules: &[Copies]) -> Vec<Copies> {
    let mut by_name = ByName::default();
    for module in modules {
        let Some((_, path)) = module.name.rsplit_once(PACKAGES) else {
            by_name.entry(&module.name).extend(&module.copies);
            continue;
        };
        let path = path.trim_start_matches('/');
        let parts = if path.starts_with('@') { 2 } else { 1 };
        let package: Vec<&str> = path.split('/').take(parts).collect();
        let copies = by_name.entry(&format!("{PACKAGES}/{}", package.join("/")));
        for (script, bytes) in &module.copies {
            match copies.iter_mut().find(|(index, _)| index == script) {
                Some((_, sum)) => *sum += bytes,
                None => copies.push((*script, *bytes)),
            }
        }
    }
    by_name.all
}

#[derive(Default)]
struct ByName {
    all: Vec<Copies>,
    indexes: HashMap<String, usize>,
}

impl ByName {
    fn entry(&mut self, name: &str) -> &mut Vec<(usize, f64)> {
        let at = match self.indexes.get(name) {
            Some(at) => *at,
            None => {
                self.indexes.insert(name.to_owned(), self.all.len());
                self.all.push(Copies {
                    name: name.to_owned(),
                    copies: Vec::new(),
                });
                self.all.len() - 1
            }
        };
        &mut self.all[at].copies
    }
}

impl Copies {
    /// Sorts the copies by size, drops those that are too small, and returns whether more than one
    /// is left.
    fn keep_duplicates(&mut self) -> bool {
        self.copies.sort_by(|a, b| b.1.total_cmp(&a.1));
        let largest = self.copies.first().map_or(0.0, |(_, bytes)| *bytes);
        self.copies
            .retain(|(_, bytes)| *bytes >= MIN_BYTES && *bytes >= MIN_SHARE * largest);
        self.copies.len() > 1
    }

    fn wasted_bytes(&self) -> f64 {
        self.copies.iter().skip(1).map(|(_, bytes)| bytes).sum()
    }
}

const PACKAGES: &str = "node_modules";

/// Returns the module's name from the innermost `node_modules` on, without the build's directory or
/// the question mark that webpack appends.
fn name(source: &str) -> &str {
    let source = source.strip_suffix('?').unwrap_or(source);
    source.rfind(PACKAGES).map_or(source, |at| &source[at..])
}

/// Returns whether the source is code that a bundler adds itself.
fn is_overhead(source: &str) -> bool {
    ["webpack/bootstrap", "(webpack)/buildin", "external "]
        .iter()
        .any(|word| source.contains(word))
}

#[cfg(test)]
mod tests {
    use plumbline_model::check::{Cell, Details, Verdict};
    use serde_json::{Value, json};

    use super::super::traced::Traced;
    use super::{CHECK, is_overhead, name};
    use crate::checks::Outcome;

    fn script(address: &str, modules: &[(&str, u32)]) -> Value {
        let modules: Vec<Value> = modules
            .iter()
            .map(|(source, length)| json!({"source": source, "length": length}))
            .collect();
        json!({"url": address, "frame": "F", "length": 99, "tokenLength": 99, "sourceMap": {"modules": modules}})
    }

    fn judge(scripts: &[Value]) -> Outcome {
        let mut traced = Traced::new();
        for (at, address) in ["https://a.test/a.js", "https://a.test/b.js"]
            .iter()
            .enumerate()
        {
            let gzip = json!({"headers": [{"name": "content-encoding", "value": "gzip"}]});
            let half = json!({"encodedDataLength": 5000, "decodedBodyLength": 10_000});
            let id = format!("2.{at}");
            traced = traced.loads(&id, address, 150, 500, json!({}), gzip, half);
        }
        let scripts = serde_json::to_string(scripts).expect("JSON");
        traced.visit().with("scripts", &scripts).judge(CHECK)
    }

    fn listed(outcome: &Outcome) -> Vec<(String, f64, usize)> {
        let Some(Details::Findings(table)) = &outcome.details else {
            panic!("no table: {outcome:?}");
        };
        let rows = table.rows.iter().map(|row| match &row.cells[..] {
            [Cell::Text(name), Cell::Nothing, Cell::Bytes(bytes)] => {
                (name.clone(), *bytes, row.sub_rows.len())
            }
            other => panic!("{other:?}"),
        });
        rows.collect()
    }

    const A: &str = "https://a.test/a.js";
    const B: &str = "https://a.test/b.js";

    #[test]
    fn duplicate_files_of_a_package_count_together_by_transfer_size() {
        let outcome = judge(&[
            script(
                A,
                &[
                    ("webpack:///./node_modules/left/a.js", 4000),
                    ("webpack:///./node_modules/left/b.js", 2000),
                ],
            ),
            script(
                B,
                &[
                    ("x/node_modules/left/a.js", 3000),
                    ("x/node_modules/left/b.js?", 2000),
                    ("x/own.js", 9000),
                ],
            ),
        ]);
        assert_eq!(outcome.verdict, Verdict::Fail);
        let of_both = (1500 + 1000) as f64;
        assert_eq!(
            listed(&outcome),
            [("node_modules/left".to_owned(), of_both, 2)]
        );
        let savings = outcome.savings.expect("savings");
        assert_eq!(savings.wasted_bytes, Some(of_both));
    }

    #[test]
    fn scopes_are_part_of_a_package_name_and_own_modules_are_listed_separately() {
        let both = [("node_modules/@me/it/a.js", 3000), ("src/own.js", 5000)];
        let outcome = judge(&[script(A, &both), script(B, &both)]);
        assert_eq!(
            listed(&outcome),
            [
                ("src/own.js".to_owned(), 2500.0, 2),
                ("node_modules/@me/it".to_owned(), 1500.0, 2)
            ]
        );
    }

    #[test]
    fn small_copies_do_not_count() {
        let pairs = [
            (4000, 1022, Verdict::Pass),
            (4000, 1024, Verdict::Fail),
            (20_000, 1900, Verdict::Pass),
        ];
        for (first, second, verdict) in pairs {
            let outcome = judge(&[
                script(A, &[("a.js", first)]),
                script(B, &[("a.js", second)]),
            ]);
            assert_eq!(outcome.verdict, verdict, "{first} and {second}");
        }
    }

    #[test]
    fn one_script_can_contain_a_module_twice() {
        let outcome = judge(&[script(
            A,
            &[
                ("a/node_modules/x/i.js", 4000),
                ("b/node_modules/x/i.js", 4000),
            ],
        )]);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(listed(&outcome), []);
    }

    #[test]
    fn scripts_without_maps_have_no_known_modules() {
        assert_eq!(judge(&[]).verdict, Verdict::Pass);
        let unread = json!({"url": A, "frame": "F", "sourceMap": {"error": "not found"}});
        assert_eq!(judge(&[unread]).verdict, Verdict::Pass);
        let elsewhere = json!({"url": A, "frame": "G", "sourceMap": {"modules": [
            {"source": "a.js", "length": 5000}, {"source": "a.js?", "length": 5000}]}});
        assert_eq!(judge(&[elsewhere]).verdict, Verdict::Pass);
    }

    #[test]
    fn names_start_at_the_innermost_package() {
        assert_eq!(
            name("a/node_modules/b/node_modules/c/d.js"),
            "node_modules/c/d.js"
        );
        assert_eq!(name("webpack:///./src/a.js?"), "webpack:///./src/a.js");
        assert!(is_overhead("webpack:///webpack/bootstrap 1f"));
        assert!(is_overhead("webpack:///external \"jQuery\""));
    }
}
