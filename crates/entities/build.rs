//! Brings third-party-web from npm, at the version and checksum of the lock file, and keeps of it a table of
//! domains and who serves from them.
//!
//! `PLUMBLINE_NODE_MODULES` names a `node_modules` directory that already holds it, for builds without a
//! network.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use serde_json::Value;

const READY_MADE: &str = "PLUMBLINE_NODE_MODULES";
const PACKAGE: &str = "third-party-web";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=package.json");
    println!("cargo::rerun-if-changed=package-lock.json");
    println!("cargo::rerun-if-env-changed={READY_MADE}");
    match provide() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("cargo::error={reason}");
            ExitCode::FAILURE
        }
    }
}

fn provide() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let modules = match env::var_os(READY_MADE) {
        Some(ready_made) => PathBuf::from(ready_made),
        None => install(&here, &out)?,
    };
    let package = modules.join(PACKAGE);
    let asked = json(&here.join("package.json"))?;
    let asked = asked["dependencies"][PACKAGE].as_str().unwrap_or_default();
    let found = json(&package.join("package.json"))?;
    let found = found["version"].as_str().unwrap_or_default();
    if found != asked {
        return Err(format!(
            "{} holds {PACKAGE} {found}, but crates/entities/package.json asks for {asked}",
            modules.display()
        ));
    }
    let table = table(&json(&package.join("dist/entities-nostats.json"))?)?;
    fs::write(out.join("entities.tsv"), table).map_err(|e| format!("entities.tsv: {e}"))?;
    fs::copy(package.join("LICENSE"), out.join("LICENSE"))
        .map_err(|e| format!("{PACKAGE} has no readable LICENSE: {e}"))?;
    println!("cargo::rustc-env=ENTITIES_VERSION={found}");
    Ok(())
}

/// A line `domain <TAB> name` for every domain, in the order of the data.
fn table(entities: &Value) -> Result<String, String> {
    let entities = entities.as_array().ok_or("the entities are no list")?;
    let mut table = String::new();
    for entity in entities {
        let name = entity["name"].as_str().ok_or("an entity has no name")?;
        for domain in entity["domains"].as_array().into_iter().flatten() {
            let domain = domain.as_str().ok_or("a domain is no text")?;
            table.push_str(&format!("{domain}\t{name}\n"));
        }
    }
    Ok(table)
}

/// Runs npm in OUT_DIR, so that the source tree stays as it is.
fn install(here: &Path, out: &Path) -> Result<PathBuf, String> {
    let work = out.join("npm");
    fs::create_dir_all(&work).map_err(|e| format!("cannot create {}: {e}", work.display()))?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(here.join(file), work.join(file))
            .map_err(|e| format!("cannot copy crates/entities/{file}: {e}"))?;
    }
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let answer = Command::new(npm)
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&work)
        .output()
        .map_err(|e| {
            format!(
                "cannot run npm ({e}). {PACKAGE} comes from npm: install Node.js, or set {READY_MADE} to \
                 a node_modules directory that holds {PACKAGE}"
            )
        })?;
    if !answer.status.success() {
        let said = String::from_utf8_lossy(&answer.stderr).replace('\n', " | ");
        return Err(format!(
            "npm ci failed: {said}. Without a network, set {READY_MADE} to a node_modules directory that \
             holds {PACKAGE}"
        ));
    }
    Ok(work.join("node_modules"))
}

fn json(path: &Path) -> Result<Value, String> {
    let text = fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("{name}: {e}"))
}
