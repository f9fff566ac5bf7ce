//! The house rules that a program can keep: who may know whom, and who does no IO.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The arrows of ARCHITECTURE.md.
const MAY_KNOW: [(&str, &[&str]); 18] = [
    ("catalog", &[]),
    ("bundle", &[]),
    ("trace", &[]),
    ("axe", &[]),
    ("entities", &[]),
    ("source", &[]),
    ("isolation", &[]),
    ("store", &[]),
    ("engine", &["bundle", "catalog", "entities", "trace"]),
    ("field", &["catalog", "engine"]),
    ("link", &["catalog"]),
    (
        "browser",
        &["axe", "bundle", "catalog", "isolation", "source"],
    ),
    ("report", &["bundle", "catalog", "engine", "trace"]),
    ("seam", &["bundle"]),
    ("server", &["catalog", "engine", "report", "seam", "store"]),
    ("agent", &["browser", "bundle", "catalog", "engine", "link"]),
    ("remote", &["agent", "bundle", "seam"]),
    (
        "cli",
        &[
            "agent", "browser", "bundle", "catalog", "engine", "field", "link", "remote", "report",
            "seam", "server", "store", "trace",
        ],
    ),
];

/// Crates that do no IO, read no clock and roll no dice.
const PURE: [&str; 8] = [
    "catalog", "bundle", "entities", "source", "trace", "engine", "report", "seam",
];

/// Signs of the outside world, none of which a pure crate may show outside its tests.
const OUTSIDE: [&str; 9] = [
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
fn no_crate_knows_one_that_it_may_not() {
    let rules: BTreeMap<_, _> = MAY_KNOW.into_iter().collect();
    for dir in crates() {
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        let allowed = rules
            .get(name.as_str())
            .unwrap_or_else(|| panic!("crates/{name} is not in ARCHITECTURE.md's table"));
        for known in dependencies(&dir) {
            assert!(allowed.contains(&known.as_str()), "{name} knows {known}");
        }
    }
}

#[test]
fn pure_crates_touch_nothing_outside() {
    for name in PURE {
        for file in sources(&workspace().join("crates").join(name).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for line in code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
            {
                for sign in OUTSIDE {
                    assert!(!line.contains(sign), "{}: {line}", file.display());
                }
            }
        }
    }
}

#[test]
fn no_file_is_named_after_nothing() {
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

/// Our own crates among a manifest's ordinary dependencies.
fn dependencies(dir: &Path) -> Vec<String> {
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
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found
}
