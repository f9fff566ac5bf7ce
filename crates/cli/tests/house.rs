//! Rules of the codebase that a program can check: dependencies between crates, crates without IO,
//! file names, comments, licences, links in documents, and tests that documents name.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The dependencies between crates, as in the table of ARCHITECTURE.md.
const DEPENDENCIES: [(&str, &[&str]); 24] = [
    ("catalog", &[]),
    ("bundle", &[]),
    ("recording", &["bundle", "model"]),
    ("trace", &[]),
    ("vendored", &[]),
    ("source", &[]),
    ("clock", &[]),
    ("isolation", &[]),
    ("memory", &[]),
    ("perfetto", &[]),
    ("http", &[]),
    ("store", &["http", "seam"]),
    ("model", &["bundle", "catalog"]),
    (
        "engine",
        &["bundle", "catalog", "model", "source", "trace", "vendored"],
    ),
    ("field", &["catalog", "model"]),
    ("link", &["clock"]),
    ("traffic", &["link", "recording"]),
    (
        "browser",
        &[
            "bundle",
            "catalog",
            "clock",
            "isolation",
            "perfetto",
            "seam",
            "source",
            "trace",
            "vendored",
        ],
    ),
    ("report", &["bundle", "catalog", "model", "trace"]),
    ("seam", &["bundle", "catalog", "model", "recording"]),
    (
        "server",
        &[
            "bundle",
            "catalog",
            "model",
            "recording",
            "report",
            "seam",
            "store",
        ],
    ),
    (
        "agent",
        &[
            "browser",
            "bundle",
            "catalog",
            "clock",
            "engine",
            "link",
            "model",
            "recording",
            "seam",
            "traffic",
        ],
    ),
    ("remote", &["bundle", "http", "seam"]),
    (
        "cli",
        &[
            "agent",
            "browser",
            "bundle",
            "catalog",
            "engine",
            "field",
            "http",
            "link",
            "memory",
            "model",
            "recording",
            "remote",
            "report",
            "seam",
            "server",
            "store",
            "trace",
            "vendored",
        ],
    ),
];

/// The crates without IO, clocks and randomness.
const PURE: [&str; 11] = [
    "catalog",
    "bundle",
    "recording",
    "model",
    "vendored",
    "source",
    "perfetto",
    "trace",
    "engine",
    "report",
    "seam",
];

/// Names that pure crates may use in tests only.
const IMPURE_NAMES: [&str; 9] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "SystemTime",
    "Instant::now",
    "tokio",
    "getrandom",
    "println!",
];

#[test]
fn crates_have_exactly_the_listed_dependencies() {
    let mut listed: BTreeMap<_, _> = DEPENDENCIES.into_iter().collect();
    for dir in crates() {
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        let expected = listed
            .remove(name.as_str())
            .unwrap_or_else(|| panic!("crates/{name} is not in ARCHITECTURE.md's table"));
        let expected: BTreeSet<String> = expected.iter().copied().map(str::to_owned).collect();
        assert_eq!(dependencies(&dir), expected, "the dependencies of {name}");
    }
    assert!(listed.is_empty(), "there are no such crates: {listed:?}");
}

#[test]
fn pure_crates_use_no_io_clock_or_randomness() {
    for name in PURE {
        for file in sources(&workspace().join("crates").join(name).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            for line in without_test_items(&text) {
                for name in IMPURE_NAMES {
                    assert!(!line.contains(name), "{}: {line}", file.display());
                }
            }
        }
    }
}

/// Returns the lines of a file without comments and without items under `#[cfg(test)]`. Such an
/// item ends with the first line of the same indentation that closes it, as rustfmt writes it.
fn without_test_items(text: &str) -> Vec<&str> {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let mut lines = text.lines();
    let mut rest = Vec::new();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            lines.find(|end| {
                let is_end = end.trim().starts_with('}') || end.ends_with(['}', ';', ',']);
                indentation(end) == indentation(line) && is_end
            });
        } else if !line.trim_start().starts_with("//") {
            rest.push(line);
        }
    }
    rest
}

#[test]
fn code_after_a_test_item_is_searched_too() {
    let text = "use a;\n#[cfg(test)]\nmod testing;\nuse b;\n#[cfg(test)]\nmod tests {\n    \
                use c;\n}\n// d\nfn e() {}\n";
    assert_eq!(without_test_items(text), ["use a;", "use b;", "fn e() {}"]);
}

#[test]
fn clippy_checks_the_pure_crates_as_such() {
    for name in PURE {
        let dir = workspace().join("crates").join(name);
        let configuration = fs::read_link(dir.join("clippy.toml")).unwrap();
        let expected = Path::new("../../tools/clippy-pure-crates.toml");
        assert_eq!(configuration, expected, "{name}");
        let code = fs::read_to_string(dir.join("src/lib.rs")).unwrap();
        for lint in ["macros", "methods", "types"] {
            assert!(
                code.contains(&format!("clippy::disallowed_{lint}")),
                "{name}"
            );
        }
    }
}

/// `make bless` updates the file. It has the crates of one target, so that it is the same on all
/// machines.
#[test]
fn the_list_of_licences_equals_the_committed_file() {
    let path = workspace().join("crates/cli/src/licenses.txt");
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--package", "plumbline"])
        .args(["--edges", "normal,no-proc-macro", "--prefix", "none"])
        .args([
            "--target",
            "x86_64-unknown-linux-gnu",
            "--format",
            "{p} ({l})",
        ])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let tree = String::from_utf8(output.stdout).unwrap();
    let is_foreign = |line: &&str| !line.starts_with("plumbline");
    let crates: BTreeSet<String> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(is_foreign)
        .map(|line| format!("{}\n", line.replacen(" v", " ", 1)))
        .collect();
    let list: String = crates.into_iter().collect();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &list).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == list,
        "crates/cli/src/licenses.txt is out of date: run `make bless`"
    );
}

/// The line after the title and an empty line is, for instance,
/// `Status: accepted, 15 November 2026.`
#[test]
fn every_decision_has_a_status_and_a_date_and_is_in_the_list() {
    let dir = workspace().join("docs/decisions");
    let list = fs::read_to_string(dir.join("README.md")).unwrap();
    let mut numbers = Vec::new();
    for file in files_with_extension(&dir, "md") {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "README.md" {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let status = text.lines().nth(2).unwrap_or_default();
        let words: Vec<_> = status.split('.').next().unwrap().split(' ').collect();
        let is_dated = status.starts_with("Status: ")
            && matches!(words[..], [.., day, _, year]
                if day.parse::<u8>().is_ok() && year.parse::<u16>().is_ok());
        assert!(is_dated, "{name}: no line `Status: STATUS, DATE.`");
        let number = name.split('-').next().unwrap().to_owned();
        let row = format!("| [{number}]({name}) |");
        assert!(list.contains(&row), "README.md: no row {row}");
        assert!(!numbers.contains(&number), "two decisions {number}");
        numbers.push(number);
    }
    assert_eq!(list.matches("\n| [").count(), numbers.len());
}

#[test]
fn no_file_has_a_meaningless_name() {
    for dir in crates() {
        for file in sources(&dir) {
            let stem = file.file_stem().unwrap().to_str().unwrap().to_owned();
            assert!(
                !["utils", "util", "helpers", "common", "manager", "misc"].contains(&stem.as_str()),
                "{}",
                file.display()
            );
        }
    }
}

#[test]
fn every_relative_link_in_a_markdown_file_has_a_target() {
    let mut broken = Vec::new();
    for file in files_with_extension(&workspace(), "md") {
        let prose = without_code(&fs::read_to_string(&file).unwrap());
        for link in prose.split("](").skip(1) {
            let link = link.split([')', ' ']).next().unwrap();
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() {
                file.clone()
            } else {
                file.parent().unwrap().join(path)
            };
            let is_markdown = target.extension().is_some_and(|end| end == "md");
            let has_anchor = || anchors(&target).iter().any(|other| other == anchor);
            if !target.exists() || (is_markdown && !anchor.is_empty() && !has_anchor()) {
                broken.push(format!("{}: {link}", file.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

/// Words with which a doc comment begins only if it continues a sentence that is not there.
const FRAGMENT_STARTS: [&str; 20] = [
    "And", "As", "Because", "But", "By", "Else", "From", "Nor", "Of", "Or", "So", "Than", "That",
    "Then", "What", "Where", "Which", "Who", "Whose", "With",
];

/// The maximum width of a line with a comment, in characters.
const MAX_COMMENT_COLUMNS: usize = 100;

#[test]
fn doc_comments_are_sentences_and_comments_fit_their_width() {
    let mut violations = Vec::new();
    for file in crates().iter().flat_map(|dir| sources(dir)) {
        let text = fs::read_to_string(&file).unwrap();
        let mut is_continued = false;
        for (number, line) in (1..).zip(text.lines()) {
            let code = line.trim_start();
            let place = format!("{}:{number}", file.display());
            if code.starts_with("//") && line.chars().count() > MAX_COMMENT_COLUMNS {
                violations.push(format!("{place}: wider than {MAX_COMMENT_COLUMNS} columns"));
            }
            let doc = code.strip_prefix("///").or(code.strip_prefix("//!"));
            // `make test` does not look for examples that could be run.
            if doc.is_some_and(|doc| doc.trim_start().starts_with("```")) {
                violations.push(format!("{place}: an example belongs into a test"));
            }
            let first_word = doc.and_then(|doc| doc.split_whitespace().next());
            if let Some(word) = first_word.filter(|_| !is_continued)
                && FRAGMENT_STARTS.contains(&word)
            {
                violations.push(format!("{place}: begins with \"{word}\""));
            }
            is_continued = doc.is_some();
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// The shortest name in SECURITY.md that is taken for the name of a test.
const MIN_TEST_NAME_CHARS: usize = 24;

#[test]
fn every_claim_of_the_security_document_names_tests_that_exist() {
    let document = fs::read_to_string(workspace().join("SECURITY.md")).unwrap();
    let claims = document.split("## What is not").next().unwrap();
    let code: String = crates()
        .iter()
        .flat_map(|dir| sources(dir))
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    for claim in claims.split("\n- ").skip(1) {
        let quoted = claim.split('`').skip(1).step_by(2);
        let is_test = |name: &&str| {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            name.len() >= MIN_TEST_NAME_CHARS && name.chars().all(is_plain)
        };
        let tests: Vec<_> = quoted.filter(is_test).collect();
        assert!(!tests.is_empty(), "no test for: {claim}");
        for test in tests {
            assert!(code.contains(&format!("fn {test}(")), "no test `{test}`");
        }
    }
}

/// Returns the text of a Markdown file without code blocks and code spans. A code span ends with
/// its paragraph at the latest.
fn without_code(markdown: &str) -> String {
    let mut is_block = false;
    let lines = markdown.lines().map(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        if is_block || is_fence { "" } else { line }
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    text.split("\n\n")
        .flat_map(|paragraph| paragraph.split('`').step_by(2))
        .collect()
}

/// Returns the anchors of a Markdown file's headings as GitHub generates them: letters, digits,
/// `_` and `-` in lower case, with `-` in place of spaces.
fn anchors(file: &Path) -> Vec<String> {
    let markdown = fs::read_to_string(file).unwrap();
    let mut is_block = false;
    let mut anchors = Vec::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        }
        let title = line.trim_start_matches('#');
        if !is_block && title.len() < line.len() {
            let allowed = title
                .trim()
                .chars()
                .filter(|c| c.is_alphanumeric() || " _-".contains(*c));
            anchors.push(allowed.collect::<String>().to_lowercase().replace(' ', "-"));
        }
    }
    anchors
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn crates() -> Vec<PathBuf> {
    fs::read_dir(workspace().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("Cargo.toml").exists())
        .collect()
}

/// Returns the workspace crates among the ordinary dependencies of a manifest.
fn dependencies(dir: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(dir.join("Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&text).unwrap();
    manifest
        .get("dependencies")
        .and_then(toml::Value::as_table)
        .into_iter()
        .flat_map(|table| table.keys())
        .filter_map(|name| name.strip_prefix("plumbline-"))
        .map(str::to_owned)
        .collect()
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    files_with_extension(dir, "rs")
}

/// Returns the files below a directory, without hidden directories, build output, installed
/// packages and data of a local server.
fn files_with_extension(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap_or_default();
        if path.is_dir() {
            let is_ours = !name.starts_with('.') && !["target", "node_modules"].contains(&name);
            if is_ours && path != workspace().join("data") {
                files.extend(files_with_extension(&path, extension));
            }
        } else if path.extension().is_some_and(|end| end == extension) {
            files.push(path);
        }
    }
    files
}
