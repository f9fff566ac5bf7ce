//! Installs the npm packages of package.json, at the versions and checksums of the lock file, and
//! writes the embedded files to OUT_DIR.
//!
//! `PLUMBLINE_NODE_MODULES` may name a `node_modules` directory that already has the packages, for
//! builds without a network.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use serde_json::Value;

const NODE_MODULES_VARIABLE: &str = "PLUMBLINE_NODE_MODULES";
const AXE: &str = "axe-core";
const ENTITIES: &str = "third-party-web";
const FEATURES: &str = "web-features";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=package.json");
    println!("cargo::rerun-if-changed=package-lock.json");
    println!("cargo::rerun-if-env-changed={NODE_MODULES_VARIABLE}");
    match generate() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("cargo::error={reason}");
            ExitCode::FAILURE
        }
    }
}

fn generate() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let modules = match env::var_os(NODE_MODULES_VARIABLE) {
        Some(directory) => PathBuf::from(directory),
        None => install(&manifest, &out)?,
    };
    let axe_version = check_version(&manifest, &modules, AXE)?;
    let entities_version = check_version(&manifest, &modules, ENTITIES)?;
    let features_version = check_version(&manifest, &modules, FEATURES)?;
    let copies = [
        (AXE, "axe.min.js", "axe.min.js"),
        (AXE, "LICENSE", "axe-license.txt"),
        (AXE, "LICENSE-3RD-PARTY.txt", "axe-bundled-licenses.txt"),
        (ENTITIES, "LICENSE", "entities-license.txt"),
    ];
    for (package, from, to) in copies {
        fs::copy(modules.join(package).join(from), out.join(to))
            .map_err(|e| format!("{package} has no readable {from}: {e}"))?;
    }
    let entities = modules.join(ENTITIES).join("dist/entities-nostats.json");
    let table = domain_table(&read_json(&entities)?)?;
    fs::write(out.join("entities.tsv"), table).map_err(|e| format!("entities.tsv: {e}"))?;
    let features = modules.join(FEATURES).join("data.json");
    let table = feature_table(&read_json(&features)?)?;
    fs::write(out.join("features.tsv"), table).map_err(|e| format!("features.tsv: {e}"))?;
    println!("cargo::rustc-env=AXE_VERSION={axe_version}");
    println!("cargo::rustc-env=ENTITIES_VERSION={entities_version}");
    println!("cargo::rustc-env=FEATURES_VERSION={features_version}");
    Ok(())
}

/// Returns the installed version of a package, which must be the one of package.json.
fn check_version(manifest: &Path, modules: &Path, package: &str) -> Result<String, String> {
    let required = read_json(&manifest.join("package.json"))?;
    let required = required["dependencies"][package]
        .as_str()
        .unwrap_or_default();
    let installed = read_json(&modules.join(package).join("package.json"))?;
    let installed = installed["version"].as_str().unwrap_or_default();
    if installed != required {
        return Err(format!(
            "{} has {package} {installed}, but crates/vendored/package.json requires {required}",
            modules.display()
        ));
    }
    Ok(installed.to_owned())
}

/// Returns a line `domain <TAB> name` for every domain, in the order of the data.
fn domain_table(entities: &Value) -> Result<String, String> {
    let entities = entities.as_array().ok_or("the entities are not a list")?;
    let mut table = String::new();
    for entity in entities {
        let name = entity["name"].as_str().ok_or("an entity has no name")?;
        for domain in entity["domains"].as_array().into_iter().flatten() {
            let domain = domain.as_str().ok_or("a domain is not text")?;
            table.push_str(&format!("{domain}\t{name}\n"));
        }
    }
    Ok(table)
}

/// Returns a line `id <TAB> date` for every feature with a status. The date is that on which the
/// feature became newly available, and empty for a feature of limited availability.
fn feature_table(data: &Value) -> Result<String, String> {
    let features = data["features"]
        .as_object()
        .ok_or("there are no features")?;
    let mut table = String::new();
    for (id, feature) in features {
        let status = &feature["status"];
        let date = match status["baseline"].as_str() {
            Some("high" | "low") => status["baseline_low_date"]
                .as_str()
                .ok_or_else(|| format!("the feature {id} has no date"))?,
            // Features that were moved or split have no status.
            _ if status.is_object() => "",
            _ => continue,
        };
        table.push_str(&format!("{id}\t{date}\n"));
    }
    Ok(table)
}

/// Runs npm in OUT_DIR, so that the source tree is not changed.
fn install(manifest: &Path, out: &Path) -> Result<PathBuf, String> {
    let work = out.join("npm");
    fs::create_dir_all(&work).map_err(|e| format!("cannot create {}: {e}", work.display()))?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(manifest.join(file), work.join(file))
            .map_err(|e| format!("cannot copy crates/vendored/{file}: {e}"))?;
    }
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let output = Command::new(npm)
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&work)
        .output()
        .map_err(|e| {
            format!(
                "cannot run npm ({e}). {AXE}, {ENTITIES} and {FEATURES} are installed from npm: install \
                 Node.js, or set {NODE_MODULES_VARIABLE} to a node_modules directory that has them"
            )
        })?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).replace('\n', " | ");
        return Err(format!(
            "npm ci failed: {stderr}. Without a network, set {NODE_MODULES_VARIABLE} to a \
             node_modules directory that has {AXE}, {ENTITIES} and {FEATURES}"
        ));
    }
    Ok(work.join("node_modules"))
}

fn read_json(path: &Path) -> Result<Value, String> {
    let text = fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("{name}: {e}"))
}
